"""A thread with a descriptor table of its own starts programs when the process has many descriptors."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from rekindle.actors.processes.spawn import lean_table
from rekindle.actors.processes.spawn.lean_table import LeanTable
from rekindle.actors.processes.spawn.posix_spawn import Program, start_process


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[LeanTable]:
    monkeypatch.setattr(lean_table, "MANY", 0)
    table = LeanTable()
    yield table
    table.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def _noting(threads: list[int]) -> Callable[[Sequence[int]], int]:
    def spawn(descriptors: Sequence[int]) -> int:
        threads.append(threading.get_native_id())
        return 1

    return spawn


def _links(descriptors: Sequence[int]) -> list[str]:
    return [os.readlink(f"/proc/thread-self/fd/{each}") for each in descriptors]


def test_the_thread_sees_the_descriptors_that_it_was_given_and_none_else(
    table: LeanTable, pipe: tuple[int, int]
) -> None:
    seen: list[list[str]] = []

    def spawn(descriptors: Sequence[int]) -> int:
        every = [int(each) for each in os.listdir("/proc/thread-self/fd")]
        seen.append(_links(descriptors))
        seen.append(_links([each for each in every if each < max(descriptors) and each not in descriptors]))
        return 7

    assert table.start(pipe, spawn) == 7
    assert seen[0] == _links(pipe)
    assert len(set(seen[1])) == 1  # the socket by which they came


def test_the_descriptors_of_the_process_are_left_alone(table: LeanTable, pipe: tuple[int, int]) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    table.start(pipe, lambda _: 1)
    held = sorted(os.listdir("/proc/self/fd"))
    table.close()
    assert len(held) == len(before) + 1  # the socket by which descriptors are handed over
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_an_error_reaches_the_caller_and_the_next_start_succeeds(
    table: LeanTable, pipe: tuple[int, int]
) -> None:
    def fail(descriptors: Sequence[int]) -> int:
        raise OSError(2, "no such file")

    with pytest.raises(OSError, match="no such file"):
        table.start(pipe, fail)
    assert table.start(pipe, lambda _: 5) == 5


def test_no_garbage_is_collected_on_the_thread(table: LeanTable, pipe: tuple[int, int]) -> None:
    """What is garbage may own a descriptor, which the thread would close in its own table."""
    enabled: list[bool] = []

    def spawn(descriptors: Sequence[int]) -> int:
        enabled.append(gc.isenabled())
        return 1

    table.start(pipe, spawn)
    assert enabled == [False]
    assert gc.isenabled()


def test_without_many_descriptors_the_caller_starts_the_program_itself(pipe: tuple[int, int]) -> None:
    seen: list[int] = []
    LeanTable().start(pipe, _noting(seen))
    assert seen == [threading.get_native_id()]


def test_where_a_thread_cannot_have_its_own_table_the_caller_starts_the_program(
    table: LeanTable, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(inbox: int) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(lean_table, "_leave_others", refuse)
    seen: list[int] = []
    for _ in range(2):
        table.start(pipe, _noting(seen))
    assert seen == [threading.get_native_id()] * 2


def test_a_program_gets_its_descriptors_and_no_others(
    table: LeanTable, pipe: tuple[int, int], tmp_path: Path
) -> None:
    written = tmp_path / "written"
    with written.open("wb") as output, open(os.devnull, "rb") as null:
        program = Program(["/bin/sh", "-c", "echo $(ls /proc/$$/fd) $REKINDLE_FD"], {"PATH": os.defpath})
        stdio = (null.fileno(), output.fileno(), output.fileno())
        pid = start_process(program, {}, stdio=stdio, handed={"REKINDLE_FD": pipe[1]}, table=table)
        _, status = os.waitpid(pid, 0)
    assert status == 0
    assert written.read_text().split()[:4] == ["0", "1", "2", "3"]
    assert written.read_text().split()[-1] == "3"
