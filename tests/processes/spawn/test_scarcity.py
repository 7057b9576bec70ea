"""There is no descriptor left: that affects one worker, and it passes."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, python, shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import HealthPolicy, RekindleError, Status, System
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.messages import Event, StartsHindered, StartsResumed
from rekindle.actors.processes.spawn.lean_table import MANY
from rekindle.actors.processes.watch.epoll_loop import EpollLoop
from rekindle.persistence import open_store

ONE_RESTART = replace(QUICK, max_lifetime=1)
"""Gives up at the second death."""


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Meanwhile no descriptor is free, also after others are closed; open ones stay open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_worker_that_finds_no_descriptor_waits_for_one_and_is_not_blamed(run: Run, rows: Rows) -> None:
    """It was given up for good within seconds, and with an immediate restart it looped without a delay."""
    system = run(python("wait", restart=ONE_RESTART), sleeper())
    neighbour = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with no_descriptor_left():
        os.kill(pid, signal.SIGKILL)
        waiting = system.wait_until("wait", lambda w: "Too many open files" in w.why, PATIENCE_S)
        assert system.status("sleeper").pid == neighbour
        assert (waiting.shown, waiting.pid, waiting.generation) == (ShownStatus.STARTING, None, 2)
    back = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert (back.generation, back.restart_count, back.why) == (2, 1, "")
    assert [cause for _, cause, *_ in rows.deaths("wait")] == ["signalled"]


def test_starts_that_find_no_descriptor_are_reported_once(run: Run) -> None:
    system = run(*(sleeper(f"s:{number}", restart=ONE_RESTART) for number in range(3)))
    pids = [system.wait_for(f"s:{number}", Status.HEALTHY, timeout_s=PATIENCE_S).pid for number in range(3)]
    told: list[Event] = []
    with system.events() as events:
        with no_descriptor_left():
            for pid in pids:
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
            for number in range(3):
                system.wait_until(f"s:{number}", lambda w: "Too many open files" in w.why, PATIENCE_S)
        while not (told and isinstance(told[-1], StartsResumed)):
            event = events.next(PATIENCE_S)
            told += [event] if isinstance(event, StartsHindered | StartsResumed) else []
    assert [type(event) for event in told] == [StartsHindered, StartsResumed]
    assert all(system.status(f"s:{number}").pid is not None for number in range(3))


def test_a_process_with_many_descriptors_starts_workers_as_any_other(run: Run, rows: Rows) -> None:
    """Starts move to a thread with a descriptor table of its own."""
    with ExitStack() as held:
        while held.enter_context(open(os.devnull)).fileno() < MANY:
            pass
        system = run(python("wait", restart=ONE_RESTART), shell("sh", "echo said; exec sleep 1000"))
        pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: rows.deaths("wait") == [(1, "signalled", None, 9, "restart")])
        system.wait_until("wait", lambda w: w.generation == 2 and w.status is Status.HEALTHY, PATIENCE_S)
        assert eventually(lambda: system.output("sh") == ("said",))
        system.stop()


def test_a_worker_that_ends_with_its_parent_is_started_by_the_thread_that_outlives_an_upgrade(
    run: Run,
) -> None:
    """The kernel takes the end of the thread that started it for the end of its parent."""
    with ExitStack() as held:
        while held.enter_context(open(os.devnull)).fileno() < MANY:
            pass
        system = run(python("wait"))
        pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
        (launcher,) = (each for each in threading.enumerate() if each.name == "rekindle-launcher")
        children = Path(f"/proc/self/task/{launcher.native_id}/children").read_text().split()
        assert str(pid) in children
        system.stop()


def test_the_time_to_become_healthy_begins_when_there_is_room(run: Run, rows: Rows) -> None:
    system = run(python("wait", restart=ONE_RESTART, health=HealthPolicy(startup_timeout_s=5.0)))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with no_descriptor_left():
        os.kill(pid, signal.SIGKILL)
        system.wait_until("wait", lambda w: "Too many open files" in w.why, PATIENCE_S)
        since = time.monotonic()
        assert eventually(lambda: time.monotonic() > since + 6)
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert [cause for _, cause, *_ in rows.deaths("wait")] == ["signalled"]


def test_a_worker_that_waits_for_a_descriptor_can_be_stopped_and_started(run: Run, rows: Rows) -> None:
    system = run(python("wait", restart=ONE_RESTART))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with no_descriptor_left():
        os.kill(pid, signal.SIGKILL)
        system.wait_until("wait", lambda w: "Too many open files" in w.why, PATIENCE_S)
        system.stop_worker("wait", timeout_s=PATIENCE_S)
        assert system.status("wait").shown is ShownStatus.STOPPED
    system.start_worker("wait")
    assert system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).restart_count == 1
    assert [cause for _, cause, *_ in rows.deaths("wait")] == ["signalled"]


def test_a_system_that_finds_no_descriptor_raises_and_leaves_no_thread(
    database: Path, no_traces: None
) -> None:
    before = set(threading.enumerate())
    system = System([sleeper()], store=open_store(database))
    with no_descriptor_left(), pytest.raises((OSError, RekindleError)):
        system.start()
    assert not [
        each for each in threading.enumerate() if each.name.startswith("rekindle-") and each not in before
    ]


def test_a_process_that_cannot_be_watched_does_not_run_on_unwatched(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel limits how many descriptors a user may watch."""
    refused = threading.Event()
    watch = EpollLoop.watch

    def scarce(loop: EpollLoop, descriptor: int, handler: Callable[[], object], **how: bool) -> None:
        if len(loop._handlers) > 1 and not refused.is_set():
            refused.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        watch(loop, descriptor, handler, **how)

    monkeypatch.setattr(EpollLoop, "watch", scarce)
    system = run(python("wait"))
    system.wait_until("wait", lambda w: w.restart_count >= 1, PATIENCE_S)
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert refused.is_set()
    assert [cause for _, cause, *_ in rows.deaths("wait")] == ["spawn_failed"]
