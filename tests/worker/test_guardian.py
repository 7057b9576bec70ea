"""What becomes of the processes of a supervisor that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rekindle.worker.guardian import limit_mark, marked_processes, marked_start, sweep

Script = Callable[[str], list[str]]
Spawn = Callable[..., "subprocess.Popen[bytes]"]

SLEEP = ["sleep", "1000"]
DEADLINE_S = 20.0


@pytest.fixture
def spawn(environment: dict[str, str]) -> Iterator[Spawn]:
    """Starts a process with changes to the environment of the system, and ends it at last."""
    with ExitStack() as stack:

        def spawn(command: list[str], **changes: str) -> subprocess.Popen[bytes]:
            process = stack.enter_context(
                subprocess.Popen(command, env=environment | changes, stdout=subprocess.PIPE)
            )
            stack.callback(process.kill)
            return process

        yield spawn


@pytest.fixture
def guardian(mark: str, script: Script) -> Iterator[subprocess.Popen[bytes]]:
    """A guardian of this test's processes, as a supervisor starts it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("REKINDLE_")}
    command = script("guardian.py")
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=env, start_new_session=True) as process:
        assert process.stdin is not None
        process.stdin.write(f"{mark}\n".encode())
        process.stdin.flush()
        yield process


def test_a_marked_process_is_killed_when_the_pipe_closes(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    stray = spawn(SLEEP)
    guardian.communicate(timeout=DEADLINE_S)
    assert (guardian.returncode, stray.wait(DEADLINE_S)) == (0, -signal.SIGKILL)


def test_a_grandchild_in_a_session_of_its_own_is_killed_too(
    guardian: subprocess.Popen[bytes], spawn: Spawn, gone: Callable[[int], bool]
) -> None:
    """F8, F10: its parent has gone, its group and session are new; the mark is what it keeps."""
    parent = spawn(["bash", "-c", "setsid sh -c 'echo $$; exec sleep 1000' & wait"])
    assert parent.stdout is not None
    grandchild = int(parent.stdout.readline())
    parent.kill()
    parent.wait(DEADLINE_S)
    guardian.communicate(timeout=DEADLINE_S)
    assert gone(grandchild)


def test_a_process_with_a_clean_environment_is_known_by_its_limit(
    guardian: subprocess.Popen[bytes], spawn: Spawn, mark: str, gone: Callable[[int], bool]
) -> None:
    """Redis and nginx overwrite their environment, and outlived the supervisor."""
    limit = f"--rttime={limit_mark(mark, 5)}:"
    parent = spawn(["prlimit", limit, "bash", "-c", "setsid env -i sh -c 'echo $$; exec sleep 1000' & wait"])
    assert parent.stdout is not None
    daemon = int(parent.stdout.readline())
    assert (marked_start(daemon, mark), marked_start(daemon, mark[::-1])) == (5, None)
    guardian.communicate(timeout=DEADLINE_S)
    assert gone(daemon)


def test_processes_that_are_replaced_while_the_guardian_kills_are_killed_as_well(
    guardian: subprocess.Popen[bytes], spawn: Spawn, mark: str
) -> None:
    stray = spawn(["bash", "-c", "echo; while :; do setsid sleep 1000 & wait $!; done"])
    assert stray.stdout is not None
    stray.stdout.readline()
    guardian.communicate(timeout=DEADLINE_S)
    assert guardian.returncode == 0
    assert marked_processes(mark) == []


def test_a_stopped_process_and_one_that_ignores_sigterm_are_killed(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    stubborn = spawn(["sh", "-c", "trap '' TERM; echo; while :; do sleep 1000; done"])
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    stopped = spawn(SLEEP)
    stopped.send_signal(signal.SIGSTOP)
    guardian.communicate(timeout=DEADLINE_S)
    assert {stubborn.wait(DEADLINE_S), stopped.wait(DEADLINE_S)} == {-signal.SIGKILL}


@pytest.mark.parametrize("other", ["", "0", "{mark}0", "x{mark}"])
def test_a_process_with_another_mark_is_left_alone(
    guardian: subprocess.Popen[bytes], spawn: Spawn, mark: str, other: str
) -> None:
    stranger = spawn(SLEEP, REKINDLE_SYSTEM=other.format(mark=mark), NOTE=f"REKINDLE_SYSTEM={mark}")
    guardian.communicate(timeout=DEADLINE_S)
    assert guardian.returncode == 0
    assert stranger.poll() is None


def test_a_guardian_that_receives_done_leaves_everything_alone(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    bystander = spawn(SLEEP)
    guardian.communicate(b"done\n", timeout=DEADLINE_S)
    assert guardian.returncode == 0
    assert bystander.poll() is None


def test_a_last_word_that_is_cut_short_is_none(guardian: subprocess.Popen[bytes], spawn: Spawn) -> None:
    stray = spawn(SLEEP)
    guardian.communicate(b"don", timeout=DEADLINE_S)
    assert stray.wait(DEADLINE_S) == -signal.SIGKILL


def test_other_words_on_the_pipe_mean_nothing(guardian: subprocess.Popen[bytes], spawn: Spawn) -> None:
    bystander = spawn(SLEEP)
    guardian.communicate(b"hello\n" * 100 + b"done\n", timeout=DEADLINE_S)
    assert bystander.poll() is None


def test_marked_processes_are_listed_with_the_worker_they_belong_to(spawn: Spawn, mark: str) -> None:
    first = spawn(SLEEP, REKINDLE_WORKER="worker:tag:0")
    second = spawn(SLEEP, REKINDLE_WORKER="worker:library:3")
    expected = {(first.pid, "worker:tag:0"), (second.pid, "worker:library:3")}
    assert set(marked_processes(mark)) == expected


def test_a_process_that_has_ended_is_not_listed_although_it_is_not_reaped(
    spawn: Spawn, mark: str, gone: Callable[[int], bool]
) -> None:
    zombie = spawn(SLEEP)
    zombie.send_signal(signal.SIGKILL)
    assert gone(zombie.pid)
    assert marked_processes(mark) == []


def test_processes_are_killed_by_number_where_the_kernel_has_no_pidfd(
    spawn: Spawn, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = spawn(SLEEP)
    with monkeypatch.context() as patch:
        patch.delattr(os, "pidfd_open")
        assert sweep(mark, within_s=DEADLINE_S)
    assert stray.wait(DEADLINE_S) == -signal.SIGKILL


def lease(guardian: subprocess.Popen[bytes], seconds: float) -> None:
    """Tell the guardian until when the workers may run."""
    assert guardian.stdin is not None
    until = time.clock_gettime(time.CLOCK_BOOTTIME) + seconds
    guardian.stdin.write(f"lease {until:.3f}\n".encode())
    guardian.stdin.flush()


def test_a_guardian_kills_the_workers_of_a_frozen_supervisor_when_their_lease_ends(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    """The pipe stays open and the supervisor lives: it only says nothing."""
    worker = spawn(SLEEP)
    lease(guardian, 0.2)
    assert worker.wait(DEADLINE_S) == -signal.SIGKILL
    assert guardian.poll() is None


def test_the_end_of_a_lease_spares_the_workers_of_the_node_itself(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    ours = spawn(SLEEP, REKINDLE_WORKER="system:ray:0")
    worker = spawn(SLEEP, REKINDLE_WORKER="worker:web:0")
    lease(guardian, 0.2)
    assert worker.wait(DEADLINE_S) == -signal.SIGKILL
    assert ours.poll() is None
    guardian.communicate(timeout=DEADLINE_S)  # the supervisor is gone: nothing is spared
    assert ours.wait(DEADLINE_S) == -signal.SIGKILL


def test_a_lease_that_is_renewed_in_time_ends_no_worker(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    worker = spawn(SLEEP)
    lease(guardian, DEADLINE_S)
    for _ in range(1000):  # more than the guardian keeps of what it received
        lease(guardian, 1000.0)
    assert guardian.stdin is not None
    guardian.stdin.write(b"done\n")
    guardian.communicate(timeout=DEADLINE_S)
    assert guardian.returncode == 0
    worker.kill()
    worker.wait(DEADLINE_S)


def test_workers_run_again_under_a_later_lease_and_end_with_it(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    for _ in range(2):
        worker = spawn(SLEEP)
        lease(guardian, 0.2)
        assert worker.wait(DEADLINE_S) == -signal.SIGKILL


def test_a_guardian_with_a_lease_still_acts_when_the_supervisor_is_gone(
    guardian: subprocess.Popen[bytes], spawn: Spawn
) -> None:
    worker = spawn(SLEEP)
    lease(guardian, 1000.0)
    guardian.communicate(timeout=DEADLINE_S)
    assert (guardian.returncode, worker.wait(DEADLINE_S)) == (0, -signal.SIGKILL)
