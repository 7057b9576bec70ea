"""The note of the jobs that a worker has begun."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rekindle.actors.processes.spawn.pipes import BEGUN_JOBS_SIZE, CRASH_DUMP_SIZE, crash_dump_file
from rekindle.worker import begun_jobs, crash_dump


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The file that a supervisor hands to its worker."""
    fd = crash_dump_file()
    monkeypatch.setattr(crash_dump, "file_descriptor", fd)
    yield fd
    os.close(fd)


def noted(file: int) -> tuple[tuple[int, int], ...] | None:
    """What the supervisor reads."""
    return begun_jobs.read(os.pread(file, BEGUN_JOBS_SIZE, CRASH_DUMP_SIZE))


def test_the_latest_execution_of_each_thread_is_read(file: int) -> None:
    note = begun_jobs.noted_by(3)
    assert noted(file) == ()
    note(0, (5, 1))
    note(2, (7, 2))
    note(0, (8, 1))
    assert noted(file) == ((8, 1), (7, 2))


def test_the_sizes_of_both_sides_agree() -> None:
    assert (BEGUN_JOBS_SIZE, CRASH_DUMP_SIZE) == (begun_jobs.SIZE, crash_dump.CRASH_DUMP_SIZE)


def test_nothing_is_known_of_a_worker_that_notes_nothing_or_overwrote_the_note(file: int) -> None:
    assert noted(file) is None
    begun_jobs.noted_by(1)(0, (5, 1))
    os.pwrite(file, b"a long stack", CRASH_DUMP_SIZE)
    assert noted(file) is None


def test_without_a_supervisor_nothing_is_noted() -> None:
    begun_jobs.noted_by(1)(0, (5, 1))
    begun_jobs.noted_by(10_000)(0, (5, 1))
