"""A warm process that is killed between a fork and its answer: the fork runs nothing, and is reaped."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator

import pytest
from tests.processes.conftest import unreaped
from tests.processes.supervisors import children_of
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors.processes.channel import channel_pair
from rekindle.actors.processes.spawn.posix_spawn import Program
from rekindle.actors.processes.spawn.warm.warm_process import FORK, KNOWN, WarmProcess
from rekindle.actors.processes.watch.reaper import reap


@pytest.fixture
def warm(no_traces: None) -> Iterator[WarmProcess]:
    """A warm process that is ready."""
    argv = [sys.executable, "-m", "rekindle.worker.warm", "json", " " * 200]
    placeholders = {"REKINDLE_WORKER": "-" * 64, "REKINDLE_GENERATION": "-" * 20}
    process = WarmProcess(Program(argv, {**os.environ, **placeholders}, None, None))
    select.select([process.channel.fileno()], [], [], PATIENCE_S)
    process.take_first_answer()
    assert process.is_ready, process.problem
    yield process
    process.channel.close()
    os.close(process.pidfd)


def forks_of(warm: WarmProcess) -> list[int]:
    """Its forks: our children in its process group."""
    return [pid for pid in children_of(os.getpid()) if pid != warm.pid and _group(pid) == warm.pid]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def kill(warm: WarmProcess) -> None:
    os.kill(warm.pid, signal.SIGKILL)
    assert reap(warm.pidfd, wait=True) is not None


def test_a_fork_whose_pid_never_arrived_ends_at_its_gate_and_is_reaped(warm: WarmProcess) -> None:
    gate, peer = channel_pair()
    with peer:
        warm.channel.hand_over(FORK, [peer.fileno()])
    assert eventually(lambda: len(forks_of(warm)) == 1)
    kill(warm)
    assert not warm.reap_lost(), "it waits at its gate"
    gate.close()
    assert eventually(warm.reap_lost)
    assert unreaped() == {}


def test_a_fork_that_was_killed_as_well_is_reaped(warm: WarmProcess) -> None:
    gate, peer = channel_pair()
    with peer:
        warm.channel.hand_over(FORK, [peer.fileno()])
    assert eventually(lambda: len(forks_of(warm)) == 1)
    (fork,) = forks_of(warm)
    os.kill(fork, signal.SIGKILL)
    kill(warm)
    gate.close()
    assert eventually(warm.reap_lost)
    assert unreaped() == {}


def test_a_known_fork_leaves_the_group_and_is_not_reaped_as_a_lost_one(warm: WarmProcess) -> None:
    standby = warm.stand_by()
    assert eventually(lambda: os.getpgid(standby.pid) == standby.pid)
    kill(warm)
    assert warm.reap_lost()
    standby.end()
    assert reap(standby.pidfd, wait=True) is not None
    standby.close()


def test_a_child_of_the_host_is_never_reaped(warm: WarmProcess) -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    assert eventually(lambda: child in unreaped())
    kill(warm)
    assert eventually(warm.reap_lost)
    assert os.waitpid(child, 0) == (child, 0)


def test_a_fork_does_not_begin_before_it_is_known(warm: WarmProcess) -> None:
    gate, peer = channel_pair()
    with peer:
        warm.channel.hand_over(FORK, [peer.fileno()])
    assert eventually(lambda: len(forks_of(warm)) == 1)
    (fork,) = forks_of(warm)
    gate.send(KNOWN)
    assert eventually(lambda: os.getpgid(fork) == fork)
    gate.close()
    assert os.waitpid(fork, 0) == (fork, 0), "it ends without a request"
    kill(warm)
    assert warm.reap_lost()
