"""The life of an executor on real processes: its start, its end, and what is left of it."""

from __future__ import annotations

import gc
import pickle
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from tests.processes.executor import tasks
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    ExecutorBrokenError,
    RekindleExecutor,
    TaskTimeoutError,
    WorkerCrashedError,
    WorkerStatus,
)
from rekindle.persistence import MemoryStore
from rekindle.worker.guardian import marked_processes

S = PATIENCE_S


def test_a_guilty_task_is_tried_again_as_often_as_it_may(tmp_path: Path, no_traces: None) -> None:
    with RekindleExecutor(1, crash_retries=2) as executor:
        saved = executor.submit(tasks.die_until, 2, str(tmp_path / "a"))
        lost = executor.submit(tasks.die_until, 3, str(tmp_path / "b"))
        assert saved.result(S) == 2
        error = lost.exception(S)
        assert isinstance(error, WorkerCrashedError)
        assert [death.exit.code for death in error.deaths] == [1, 1, 1]
        assert "crash 3 of this task" in str(error)
        again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own
        assert again.deaths == error.deaths


def test_a_codec_of_the_hosts_choice_carries_any_object(no_traces: None) -> None:
    with RekindleExecutor(1, codec=pickle) as executor:
        moved = executor.submit(tasks.Point(1).moved, 2).result(S)
        assert (type(moved), moved.x) == (tasks.Point, 3)
        error = executor.submit(tasks.die, "exit").exception(S)
        assert isinstance(error, WorkerCrashedError)


def test_every_process_is_initialized_and_replaced_after_its_share(no_traces: None) -> None:
    with RekindleExecutor(1, initializer=tasks.greet, initargs=("hello",), max_tasks_per_child=2) as executor:
        pids = [executor.submit(tasks.pid).result(S) for _ in range(5)]
        assert executor.submit(tasks.greeted).result(S) == "hello"
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_an_initializer_that_fails_breaks_the_executor_and_leaves_no_caller_waiting(no_traces: None) -> None:
    with RekindleExecutor(2, initializer=tasks.refuse) as executor:
        futures = [executor.submit(tasks.square, n) for n in range(3)]
        for future in futures:
            with pytest.raises(ExecutorBrokenError, match="exit code 3"):
                future.result(S)
        with pytest.raises(ExecutorBrokenError):
            executor.submit(tasks.square, 1)


def test_shutdown_finishes_what_was_submitted_and_takes_no_more(tmp_path: Path, no_traces: None) -> None:
    executor = RekindleExecutor(1)
    mark = executor.submit(tasks.mark)
    futures = [executor.submit(tasks.square, n) for n in range(20)]
    executor.shutdown()
    assert [future.result(0) for future in futures] == [n * n for n in range(20)]
    assert marked_processes(mark.result(0)) == []
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(tasks.square, 1)
    executor.shutdown()


def test_shutdown_can_cancel_what_has_not_begun_and_need_not_wait(tmp_path: Path, no_traces: None) -> None:
    began, end = tmp_path / "began", tmp_path / "end"
    executor = RekindleExecutor(1)
    running = executor.submit(tasks.touch_and_wait_for, str(began), str(end))
    waiting = [executor.submit(tasks.square, n) for n in range(3)]
    assert eventually(began.exists)
    assert waiting[2].cancel()
    assert not running.cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting[0].result(S)
    end.touch()
    assert running.result(S) == "done"


def test_an_executor_that_is_dropped_finishes_and_goes(tmp_path: Path, no_traces: None) -> None:
    executor = RekindleExecutor(1)
    future = executor.submit(tasks.square, 3)
    del executor
    gc.collect()
    assert future.result(S) == 9


def test_an_executor_that_was_never_used_starts_nothing(no_traces: None) -> None:
    with RekindleExecutor(64):
        pass


def test_deaths_are_stored_where_the_host_wants_them(no_traces: None) -> None:
    store = MemoryStore()
    with RekindleExecutor(1, store=store, name="pool") as executor:
        executor.submit(tasks.die, "exit").exception(S)
        executor.submit(tasks.square, 1).result(S)
    [death] = store.deaths("pool:0")
    assert death.exit_code == 7


@pytest.mark.parametrize(
    ("arguments", "why"), [({"max_workers": 0}, "max_workers"), ({"crash_retries": -1}, "crash_retries")]
)
def test_numbers_that_make_no_sense_are_refused(arguments: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RekindleExecutor(**arguments)  # type: ignore[arg-type]


# ── time limits ──────────────────────────────────────────────────────────────────────────


def test_a_task_that_runs_for_too_long_fails_alone_and_its_process_is_replaced(no_traces: None) -> None:
    with RekindleExecutor(1) as executor:
        pid = executor.submit(tasks.pid).result(S)
        slow = executor.with_options(timeout=0.2).submit(time.sleep, 1000)
        next_one = executor.submit(tasks.pid)
        error = slow.exception(S)
        assert isinstance(error, TaskTimeoutError)
        assert isinstance(error, TimeoutError)
        assert str(error) == "time:sleep: it ran for longer than 0.2 s; its worker executor:0 was killed"
        assert next_one.result(S) != pid


def test_the_time_of_a_task_begins_when_it_begins(no_traces: None) -> None:
    with RekindleExecutor(1) as executor:
        limited = executor.with_options(timeout=20.0)
        assert list(limited.map(tasks.square, range(50))) == [n * n for n in range(50)]
        waits = limited.submit(tasks.square, 2)
        assert waits.result(S) == 4


def test_options_are_those_of_one_view_of_the_executor(tmp_path: Path, no_traces: None) -> None:
    with RekindleExecutor(1) as executor:
        patient = executor.with_options(crash_retries=1)
        assert patient.submit(tasks.die_until, 1, str(tmp_path / "a")).result(S) == 1
        crashed = executor.submit(tasks.die_until, 1, str(tmp_path / "b"))
        assert isinstance(crashed.exception(S), WorkerCrashedError)
        with pytest.raises(ValueError, match="timeout must be more than 0 s, not 0"):
            executor.with_options(timeout=0)


def test_a_scheduled_task_has_options_of_its_own_and_every_argument_that_its_function_takes(
    tmp_path: Path, no_traces: None
) -> None:
    with RekindleExecutor(1) as executor:
        slow = executor.schedule(time.sleep, [1000], timeout=0.2)
        assert isinstance(slow.exception(S), TaskTimeoutError)
        assert executor.schedule(tasks.with_timeout, ["x"], {"timeout": 3}, timeout=S).result(S) == ["x", 3]
        assert executor.schedule(tasks.die_until, [1, str(tmp_path / "a")], crash_retries=1).result(S) == 1
        with pytest.raises(ValueError, match="timeout must be more than 0 s, not -1"):
            executor.schedule(tasks.pid, timeout=-1)


def test_a_timeout_of_submit_is_the_function_s_own_or_limits_the_time_of_the_task(no_traces: None) -> None:
    with RekindleExecutor(1) as executor:
        for each in (executor, executor.with_options(timeout=S)):
            assert each.submit(tasks.with_timeout, "x", timeout=3).result(S) == ["x", 3]
            slow = each.submit(tasks.sleeps, 1000, timeout=0.2)  # type: ignore[call-arg]
            assert isinstance(slow.exception(S), TaskTimeoutError)
            assert each.submit(tasks.square, 2, timeout=None).result(S) == 4  # type: ignore[call-arg]
            with pytest.raises(ValueError, match="timeout must be more than 0 s, not 0"):
                each.submit(tasks.square, 2, timeout=0)  # type: ignore[call-arg]


def workers_of(executor: RekindleExecutor) -> tuple[WorkerStatus, ...]:
    assert executor._dispatcher is not None
    assert executor._dispatcher._system is not None
    return executor._dispatcher._system.report().workers


# ── warm starts ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("warm", "note"),
    [
        (True, "forked from its warm process"),
        (["tests.processes.executor.tasks", "tests.processes.executor.noisy_import"], "a thread running"),
        (False, ""),
    ],
)
def test_processes_are_forked_from_a_warm_one_where_that_is_safe(
    warm: bool | list[str], note: str, no_traces: None
) -> None:
    with RekindleExecutor(2, warm=warm) as executor:
        assert executor.submit(tasks.square, 3).result(S) == 9
        assert isinstance(executor.submit(tasks.die, "kill").exception(S), WorkerCrashedError)
        assert list(executor.map(tasks.square, range(9))) == [n * n for n in range(9)]
        assert eventually(lambda: all(note in worker.start_note for worker in workers_of(executor)))


def test_a_codec_that_cannot_write_a_closure_is_named_with_one_that_can(no_traces: None) -> None:
    number = 3
    executor = RekindleExecutor(1, codec=pickle)
    with pytest.raises(TypeError, match=r"the codec pickle cannot write this call: .*codec=cloudpickle"):
        executor.submit(lambda: number)
