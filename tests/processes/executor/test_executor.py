"""The executor on real processes: one crash, one failed future."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

import pytest
from tests.processes.executor import tasks
from tests.processes.waiting import PATIENCE_S, ended, eventually

from rekindle.actors import RekindleExecutor, TaskError, WorkerCrashedError

S = PATIENCE_S


@pytest.fixture(scope="module")
def executor() -> Iterator[RekindleExecutor]:
    """Two workers that serve the tests of this file one after another."""
    with RekindleExecutor(2) as executor:
        yield executor


# ── crashes ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("how", "code", "number"),
    [
        ("exit", 7, None),
        ("clean", 0, None),
        ("kill", None, signal.SIGKILL),
        ("segv", None, signal.SIGSEGV),
        ("fork", 9, None),
    ],
)
def test_only_the_future_whose_task_ended_its_worker_fails_and_says_how(
    executor: RekindleExecutor, how: str, code: int | None, number: int | None
) -> None:
    before = [executor.submit(tasks.square, n) for n in range(5)]
    guilty = executor.submit(tasks.die, how)
    after = [executor.submit(tasks.square, n) for n in range(5)]
    assert [future.result(S) for future in (*before, *after)] == [n * n for n in range(5)] * 2
    error = guilty.exception(S)
    assert isinstance(error, WorkerCrashedError)
    assert (error.exit_code, error.signal) == (code, number)
    assert error.death.component_id in ("executor:0", "executor:1")
    assert f"going by {how}" in error.output
    assert error.task == "tests.processes.executor.tasks:die"
    if how == "segv":
        assert any("string_at" in line for line in error.output), "the Python line that did it"


def test_among_many_futures_exactly_the_guilty_ones_fail(executor: RekindleExecutor) -> None:
    """More crashes in a row than any budget of a worker's own: the tasks are to blame for them."""
    poison = set(range(10, 200, 23))
    futures: list[Future[Any]] = [
        executor.submit(tasks.die, "kill") if n in poison else executor.submit(tasks.square, n)
        for n in range(200)
    ]
    wait(futures, timeout=2 * S)
    assert {n for n, future in enumerate(futures) if future.exception(0) is not None} == poison
    assert [futures[n].result() for n in range(200) if n not in poison] == [
        n * n for n in range(200) if n not in poison
    ]


def test_a_worker_that_is_killed_between_tasks_costs_no_task(executor: RekindleExecutor) -> None:
    idle = executor.submit(tasks.pid).result(S)
    os.kill(idle, signal.SIGKILL)
    # Some of these may be sent to the dying one; it never began them.
    assert list(executor.map(tasks.square, range(50), timeout=S)) == [n * n for n in range(50)]
    assert eventually(lambda: ended(idle))


# ── what goes there and comes back ───────────────────────────────────────────────────────


def test_values_come_back_as_they_went(executor: RekindleExecutor) -> None:
    value: tuple[object, ...] = (
        1,
        2.5,
        None,
        True,
        "ä\ud800",
        b"\0x",
        [1, (2,)],
        {"a": {1, 2}},
        {1: (2, 3)},
        {"$tuple": []},
    )
    back = executor.submit(tasks.same, *value, named=value).result(S)
    assert back == (*value, {"named": value})


def test_partials_and_builtins_are_understood(executor: RekindleExecutor) -> None:
    assert executor.submit(partial(tasks.same, 1, a=2), 3, b=4).result(S) == (1, 3, {"a": 2, "b": 4})
    assert executor.submit(sum, [1, 2]).result(S) == 3


def test_tasks_find_the_hosts_environment(executor: RekindleExecutor) -> None:
    assert executor.submit(tasks.environment, "PYTEST_VERSION").result(S) == os.environ["PYTEST_VERSION"]
    assert executor.submit(tasks.environment, "REKINDLE_TASKS").result(S) is None


def test_an_exception_keeps_its_class_its_attributes_and_its_traceback(executor: RekindleExecutor) -> None:
    error = executor.submit(tasks.raise_odd).exception(S)
    assert isinstance(error, tasks.OddError)
    assert (error.left, str(error)) == (1, "1 is not 2")
    assert "in raise_odd" in str(error.__cause__)
    assert "worker/executor/tasks.py" not in str(error.__cause__)
    with pytest.raises(FileNotFoundError, match="/nonexistent") as missing:
        executor.submit(tasks.raise_missing).result(S)
    assert missing.value.errno == 2
    with pytest.raises(SystemExit, match="enough"):
        executor.submit(tasks.leave).result(S)


def test_an_exception_of_an_unknown_class_is_named(executor: RekindleExecutor) -> None:
    with pytest.raises(TaskError, match=r"raise_strange.<locals>.LocalError: not importable"):
        executor.submit(tasks.raise_strange).result(S)


def test_what_cannot_travel_is_refused_with_a_way_out(executor: RekindleExecutor) -> None:
    with pytest.raises(TypeError, match=r"(?s)lambda.*codec=cloudpickle"):
        executor.submit(lambda: 1)
    with pytest.raises(TypeError, match=r"argument 2\['p'\] is a tests\.processes\.executor\.tasks\.Point"):
        executor.submit(tasks.same, 1, {"p": tasks.Point(1)})
    with pytest.raises(TypeError, match=r"argument 'key' is a builtins\.object.*codec"):
        executor.submit(tasks.same, key=object())
    with pytest.raises(TypeError, match=r"the result is a builtins\.object.*codec"):
        executor.submit(tasks.opaque).result(S)
