"""Which deaths are the same crash."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.deaths.test_findings import STACKS, TRACEBACK

from rekindle.actors.deaths.crash_groups import Crashed, crash_of, grouped
from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.deaths.stack_traces import Trace, read

ONE = Exit(code=1)


def crash(words: str = TRACEBACK, exit_: Exit = ONE) -> str:
    return crash_of(Finding.EXCEPTION, Cause.EXITED, exit_, words)


def test_lines_that_moved_and_other_values_are_the_same_crash() -> None:
    moved = TRACEBACK.replace("line 9", "line 12").replace("disk full", "disk of 4711 is full")
    assert crash(moved) == crash()


@pytest.mark.parametrize(
    "other",
    [
        TRACEBACK.replace("OSError", "ValueError"),
        TRACEBACK.replace("in save", "in load"),
        TRACEBACK.replace("disk.py", "tape.py"),
        STACKS,
        "",
    ],
)
def test_another_exception_or_another_way_there_is_another_crash(other: str) -> None:
    assert crash(other) != crash()


def test_another_code_or_signal_is_another_crash() -> None:
    ends = (ONE, Exit(code=2), Exit(signal=signal.SIGSEGV), Exit())
    assert len({crash("", exit_) for exit_ in ends}) == len(ends)


def not_started(detail: str) -> str:
    return crash_of(Finding.NOT_STARTED, Cause.SPAWN_FAILED, Exit(), "", detail)


def test_a_start_that_failed_for_another_reason_is_another_crash() -> None:
    details = (
        "[Errno 2] No such file or directory: 'pyhton3'",
        "[Errno 2] No such file or directory, for its working directory: '/nowhere'",
        "[Errno 22] there is no such user: 'nobody2'",
        "[Errno 13] Permission denied: '/etc/passwd'",
    )
    assert len({not_started(detail) for detail in details}) == len(details)


def test_a_start_that_failed_at_another_path_is_the_same_crash() -> None:
    words = "[Errno 2] No such file or directory: {!r}"
    paths = ("/tmp/run-1/x", "/tmp/run-2/x", "/tmp/it's/x")
    assert len({not_started(words.format(path)) for path in paths}) == 1


def test_a_worker_that_hangs_anywhere_in_the_same_loop_is_the_same_crash() -> None:
    stack = "Current thread 0x00007f0ffaa38b80 (most recent call first):\n{}" + "".join(
        f'  File "/srv/{name}.py", line 1 in {name}\n' for name in ("d", "c", "b", "a")
    )
    deeper = '  File "/srv/e.py", line 2 in e\n'
    words = [stack.format(""), stack.format(deeper)]
    crashes = {crash_of(Finding.HUNG, Cause.HEARTBEAT_LOST, Exit(), each) for each in words}
    assert len(crashes) == 1


def test_of_chained_exceptions_the_last_one_counts() -> None:
    chained = TRACEBACK + "\nDuring handling of the above exception, another exception occurred:\n\n"
    chained += 'Traceback (most recent call last):\n  File "/srv/x.py", line 1, in x\nKeyError: 3\n'
    assert (read(chained).exception, read(chained).kind) == ("KeyError: 3", "KeyError")


@given(st.text(max_size=500))
def test_any_output_of_a_worker_is_read_without_harm(text: str) -> None:
    assert isinstance(read(text), Trace)
    assert len(crash_of(Finding.UNKNOWN, Cause.UNKNOWN, Exit(), text)) == 12


def test_groups_count_their_deaths_from_the_first_to_the_last() -> None:
    deaths = [
        Crashed(name, Finding.EXIT, f"{name} {at}", at, generation)
        for name, at, generation in (("a", 40, 4), ("b", 30, 3), ("a", 20, 2), ("a", 10, 1))
    ]
    first, second = grouped(deaths)
    assert (first.crash, first.times, first.first_wall_ms, first.last_wall_ms) == ("a", 3, 10, 40)
    assert (first.sentence, first.last_generation) == ("a 40", 4)
    assert (second.crash, second.times) == ("b", 1)
