"""A log without a reader: an unread pipe, a terminal after Ctrl-S."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run

from rekindle.cli.supervise.line_writer import LineWriter

LOUD = """
[worker.loud]
command = ["yes", "what a flood this is"]
[worker.calm]
command = ["sleep", "1000"]
restart = { initial_delay_s = 0.01, min_delay_s = 0 }
"""


class Pipe:
    """A pipe whose reader is in no hurry."""

    def __init__(self) -> None:
        self.reads, self.writes = os.pipe()

    def is_full(self) -> bool:
        return not select.select([], [self.writes], [], 0)[1]

    def close(self) -> None:
        os.close(self.reads)
        os.close(self.writes)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe that is closed at the end."""
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_an_unread_log_delays_neither_restarts_nor_the_stop(run: Run, pipe: Pipe) -> None:
    running = run(LOUD, stderr=pipe.writes)
    calm = running.wait_for("worker:calm:0", status="healthy")
    assert eventually(pipe.is_full)
    os.kill(calm["pid"], signal.SIGKILL)
    running.wait_for("worker:calm:0", status="healthy", generation=2)
    running.signal(signal.SIGTERM)
    assert running.end() == 0


def test_lines_that_found_no_room_are_counted_where_they_are_missing(run: Run, pipe: Pipe) -> None:
    running = run('[worker.loud]\ncommand = ["seq", "30000"]\ncount = 4\n', "--log-json", stderr=pipe.writes)
    for number in range(4):  # twice 5,000 lines each
        running.wait_for(f"worker:loud:{number}", generation=2)
    with open(pipe.reads, closefd=False) as log:
        told = next(line for line in log if "lines were dropped" in line)
    assert json.loads(told)["level"] == "WARNING"


def test_the_last_line_tells_what_was_dropped_before_the_end(pipe: Pipe) -> None:
    os.set_blocking(pipe.writes, False)
    os.write(pipe.writes, b"x" * 2**20)
    writer = LineWriter(pipe.writes, most_lines=2)
    for number in range(1000):
        writer.write(f"line {number}\n")
    os.read(pipe.reads, 2**20)  # now there is room
    writer.stop()
    *lines, last = os.read(pipe.reads, 2**20).decode().splitlines()
    assert last.endswith(f"log: {1000 - len(lines)} lines were dropped")


def test_a_reader_who_has_gone_ends_nothing(run: Run) -> None:
    reads, writes = os.pipe()
    running = run(LOUD, stderr=writes)
    os.close(writes)
    os.close(reads)
    running.wait_for("worker:calm:0", status="healthy")
    assert running.stop() == 0


def test_a_flood_of_short_lines_does_not_hold_up_the_death_of_another_worker(run: Run) -> None:
    flood = LOUD.replace('"yes", "what a flood this is"]', '"yes"]\ncount = 3')
    running = run(flood, stderr=subprocess.DEVNULL)
    calm = running.wait_for("worker:calm:0", status="healthy")["pid"]
    os.kill(calm, signal.SIGKILL)
    # It was ten seconds when 64 kB were taken at a time.
    assert eventually(lambda: running.worker("worker:calm:0").get("pid") != calm, 4.0)


QUICK = """
[worker.quick]
command = ["sh", "-c", "echo hello; exit 1"]
count = 4
restart = { initial_delay_s = 0.01, min_delay_s = 0, max_delay_s = 0.01, max_in_window = 5 }
"""


@pytest.mark.parametrize("options", [(), ("--log-json",)])
def test_the_log_shows_a_start_before_the_output_of_its_process(run: Run, options: tuple[str, ...]) -> None:
    """The output was read on one thread, and its start was published by another."""
    running = run(QUICK, *options)
    for number in range(4):
        running.wait_for(f"worker:quick:{number}", shown="failed")
    assert running.stop() == 0
    for number in range(4):
        ours = [line for line in running.text().splitlines() if f"worker:quick:{number} " in line]
        kinds = ["output" if "| hello" in line else "start" for line in ours if is_start_or_output(line)]
        assert kinds == ["start", "output"] * 6, running.text()


def is_start_or_output(line: str) -> bool:
    return "| hello" in line or " started" in line
