"""The output of a worker: every line at a bearable rate, the last ones of a flood."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import pytest

from rekindle.actors.processes.spawn.pipes import Descriptors
from rekindle.actors.processes.watch.allowance import Allowance
from rekindle.actors.processes.watch.epoll_loop import EpollLoop
from rekindle.actors.processes.watch.output_tail import MOST_LINES
from rekindle.actors.processes.watch.transcript import Transcript
from rekindle.actors.processes.watch.worker_output import (
    BURST,
    BYTES_BURST,
    LARGE_PIPE_SIZE,
    WorkerOutput,
)


class Written:
    """A process's output, and the end that it writes to."""

    def __init__(self, descriptors: Descriptors) -> None:
        self.transcript = Transcript()
        self.output = WorkerOutput("w", 1, (descriptors.ours[0], descriptors.ours[1]), self.transcript)
        self._stdout = descriptors.theirs[0]

    def write(self, data: bytes) -> None:
        os.write(self._stdout, data)

    def texts(self) -> list[str]:
        return [line.text for line in self.output.tail.last()]


def allow(written: Written, *, lines: float = BURST, size: float = BYTES_BURST) -> None:
    """Let so many lines and bytes be logged, and no more later."""
    written.output._lines = Allowance(0, lines, 0.0)
    written.output._bytes = Allowance(0, size, 0.0)


class Timers:
    """A loop that makes no call by itself."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def after(self, _: float, call: Callable[[], None]) -> None:
        self.due.append(call)

    def make_calls(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()


@pytest.fixture
def written() -> Iterator[Written]:
    descriptors = Descriptors.with_output()
    yield Written(descriptors)
    descriptors.close()


def test_everything_was_taken_of_one_that_wrote_nothing(written: Written) -> None:
    assert written.output.finish_at_once()


def test_one_with_unread_output_has_to_be_drained(written: Written) -> None:
    written.write(b"one\ntwo")
    assert not written.output.finish_at_once()
    written.output.drain()
    assert written.texts() == ["one", "two"]
    assert written.output.finish_at_once()


def test_one_whose_output_is_just_read_has_to_be_drained_and_is_not_waited_for(written: Written) -> None:
    with written.output._busy:
        assert not written.output.finish_at_once()


@pytest.mark.parametrize("size", [4096, 64_000, 2100, 100])
def test_a_pipe_that_was_full_gets_more_room_whatever_the_writer_writes_at_a_time(
    written: Written, size: int
) -> None:
    os.set_blocking(written._stdout, False)
    with suppress(BlockingIOError):
        while os.write(written._stdout, bytes(size)) == size:
            pass
    written.output.drain()
    assert fcntl.fcntl(written._stdout, fcntl.F_GETPIPE_SZ) == LARGE_PIPE_SIZE


def test_lines_of_a_flood_are_counted_and_the_last_ones_kept(written: Written) -> None:
    allow(written, lines=0)
    written.write(b"begun ")
    written.write(b"".join(b"%d\n" % number for number in range(5000)) + b"rest")
    written.output.drain()
    assert written.texts() == [*map(str, range(5001 - MOST_LINES, 5000)), "rest"]
    assert written.transcript.newest == 5001
    assert written.transcript.after(0).lost == 5001 - MOST_LINES - 1


def test_as_many_lines_as_are_allowed_are_logged_before_a_flood_is_counted(
    written: Written, logs: list[str]
) -> None:
    allow(written, lines=3)
    written.write(b"".join(b"%d\n" % number for number in range(1000)))
    written.output.drain()
    assert [line.partition(" | ")[2].strip() for line in logs if " | " in line] == ["0", "1", "2"]
    assert any("997 of its lines are left out" in line for line in logs)


def test_output_without_line_ends_is_left_out_above_a_number_of_bytes(
    written: Written, logs: list[str]
) -> None:
    allow(written, size=10_000)
    for _ in range(5):
        written.write(b"x" * 60_000)
        written.output._read(written.output._open[0])
    written.output.drain()
    logged = [line for line in logs if " | " in line]
    assert [line.count("x") for line in logged] == [4096, 4096]
    assert any("3 of its lines are left out" in line for line in logs)
    assert len(written.texts()) == 5, "the last lines are kept"


def test_a_short_line_is_logged_beside_long_ones_that_are_left_out(written: Written, logs: list[str]) -> None:
    allow(written, size=10)
    written.write("ä".encode() * 20 + b"\nshort\n")
    written.output.drain()
    assert [line.partition(" | ")[2].strip() for line in logs if " | " in line] == ["short"]
    assert any("1 of its lines are left out" in line for line in logs)


def test_a_long_flood_is_held_by_one_timer_which_ends_with_it(written: Written, logs: list[str]) -> None:
    allow(written, lines=0)
    timers = Timers()
    loop = cast("EpollLoop", timers)
    for _ in range(20):
        written.write(b"line\n" * 500)
        written.output._on_readable(loop, written.output._open[0])
        assert len(timers.due) == 1
        timers.make_calls()
    written.output._noticed_at = 0.0
    timers.make_calls()
    assert timers.due == []
    told = [int(line.split(": ")[-1].split()[0]) for line in logs if "left out" in line]
    assert sum(told) == 20 * 500


def test_a_line_that_is_cut_by_a_pause_in_a_flood_is_whole(written: Written) -> None:
    allow(written, lines=0)
    for piece in (b"one\ntw", b"o\nthree\n"):
        written.write(piece)
        written.output._read(written.output._open[0])
        written.output._take_floods()
    assert written.texts() == ["one", "two", "three"]


def test_a_reader_never_sees_a_number_twice() -> None:
    transcript = Transcript()
    threads = [
        threading.Thread(target=lambda: [transcript.take("w", 1, "out", "x", 0) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [line.number for line in transcript.after(0).lines]
    assert numbers == sorted(set(numbers))
    assert transcript.newest == 2000
