"""The life of an executor on real processes: its start, its end, and what is left of it."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from tests.processes.executor import tasks
from tests.processes.supervisors import IMPORT_PATH
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


# ── programs ─────────────────────────────────────────────────────────────────────────────


def program(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a host to its end."""
    file = folder / "program.py"
    file.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_program_that_ends_without_shutdown_finishes_its_tasks_and_leaves_nothing(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os, sys
        from rekindle.actors import RekindleExecutor

        def note(file):
            with open(file, "a") as kept:
                kept.write("x")
            return os.environ["REKINDLE_SYSTEM"]

        if __name__ == "__main__":
            executor = RekindleExecutor(2)
            first = executor.submit(note, sys.argv[1])
            for _ in range(9):
                executor.submit(note, sys.argv[1])
            print(first.result())
        """,
        str(tmp_path / "notes"),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "notes").read_text() == "x" * 10
    assert marked_processes(ran.stdout.strip()) == []


def test_a_program_without_a_main_guard_gets_an_error(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        from rekindle.actors import RekindleExecutor

        def one():
            return 1

        with RekindleExecutor(1) as executor:
            print(executor.submit(one).result(30))
        """,
    )
    assert ran.returncode == 1
    assert "if __name__ == '__main__':" in ran.stderr


def test_a_function_below_the_main_guard_gets_an_error_that_says_so(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        from rekindle.actors import RekindleExecutor

        if __name__ == "__main__":
            def one():
                return 1

            with RekindleExecutor(1) as executor:
                print(repr(executor.submit(one).exception(30)))
        """,
    )
    assert "does not find __main__:one: define it outside of `if __name__ ==" in ran.stdout


INTRUDE = """
import socket, struct, sys
line = socket.socket(socket.AF_UNIX)
line.settimeout(20)
try:
    line.connect(sys.argv[1])
    line.sendall(struct.pack(">BQQ", 1, 0, 5000) + b"x")
    print(line.recv(1))
except (ConnectionError, PermissionError):
    print(b"")
"""


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(
            "nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another")
        ),
        None,
    ],
)
def test_only_our_workers_are_listened_to(user: str | None, no_traces: None) -> None:
    """Another user cannot reach the socket, and a stranger of our own announces no long message."""
    with RekindleExecutor(1) as executor:
        assert executor.submit(tasks.square, 2).result(S) == 4
        assert executor._dispatcher is not None
        # Ours may lie where another user cannot read it.
        python = sys.executable if user is None else "/usr/bin/python3"
        argv = [python, "-c", INTRUDE, executor._dispatcher.address]
        intruder = subprocess.run(argv, user=user, capture_output=True, text=True, timeout=S, check=True)
        assert intruder.stdout == "b''\n"
        assert executor.submit(tasks.square, 3).result(S) == 9


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_another_user_finds_no_socket_of_an_executor_that_it_could_block(no_traces: None) -> None:
    """Every user could reach a socket without a file; a descriptor sent to it blocked the executor."""
    with RekindleExecutor(1) as executor:
        assert executor.submit(tasks.square, 2).result(S) == 4
        mine = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
        inodes = {name[8:-1] for name in mine if name.startswith("socket:[")}
        lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
        names = [words[7] for words in lines if len(words) > 7 and words[6] in inodes]
        assert executor._dispatcher is not None
        assert executor._dispatcher.address in names
        assert [name for name in names if name.startswith("@")] == []
        folder = Path(executor._dispatcher.address).parent
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


SLOW = """
import os, sys, time
from rekindle.actors import RekindleExecutor

def hang(file):
    with open(file, "w") as note:
        note.write(os.environ["REKINDLE_SYSTEM"])
    time.sleep(1000)

if __name__ == "__main__":
    {begin}
        running = executor.submit(hang, sys.argv[1])
        waiting = executor.submit(hang, sys.argv[1])
        {wait}
"""
WITH = "with RekindleExecutor(1) as executor:"


@pytest.mark.parametrize(
    ("begin", "wait"),
    [
        (WITH, "running.result()"),
        (WITH, "pass"),
        ("executor = RekindleExecutor(1)\n    if True:", "running.result()"),
        ("executor = RekindleExecutor(1)\n    if True:", "pass"),
    ],
    ids=["in a with block", "while a with block ends", "without one", "while the program ends"],
)
def test_ctrl_c_ends_a_program_whose_task_runs(tmp_path: Path, begin: str, wait: str) -> None:
    """It waited for the task, for as long as that takes."""
    file, note = tmp_path / "program.py", tmp_path / "note"
    file.write_text(SLOW.format(begin=begin, wait=wait))
    with subprocess.Popen(
        [sys.executable, str(file), str(note)],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as host:
        assert eventually(lambda: note.exists() and note.read_text())
        os.killpg(host.pid, signal.SIGINT)  # as a terminal does
        _, error = host.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in error
    # A KeyboardInterrupt that the interpreter swallows at its end, in an exit handler, ends it as usual.
    assert host.returncode == (0 if begin != WITH and wait == "pass" else -signal.SIGINT)
    assert marked_processes(note.read_text()) == []


def test_what_a_task_prints_is_seen_on_the_host_s_own_streams(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os, subprocess, sys
        from rekindle.actors import RekindleExecutor

        def talk(number):
            print("task", number)
            subprocess.run(["echo", "child"], check=True)
            print("problem", number, file=sys.stderr)

        if __name__ == "__main__":
            with RekindleExecutor(2) as executor:
                list(executor.map(talk, range(3)))
        """,
    )
    assert ran.returncode == 0
    assert sorted(ran.stdout.splitlines()) == ["child"] * 3 + ["task 0", "task 1", "task 2"]
    assert sorted(ran.stderr.splitlines()) == ["problem 0", "problem 1", "problem 2"]


def test_what_a_task_prints_can_be_left_to_the_evidence(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os
        from rekindle.actors import RekindleExecutor

        def talk():
            print("task")
            os._exit(1)

        if __name__ == "__main__":
            with RekindleExecutor(1, show_output=False) as executor:
                print(executor.submit(talk).exception().output)
        """,
    )
    assert (ran.stdout, ran.stderr) == ("('task',)\n", "")


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
