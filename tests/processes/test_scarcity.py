"""There is no descriptor left: that affects one worker, and it passes."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import python, sleeper
from tests.processes.waiting import PATIENCE_S

from rekindle.actors import RekindleError, Status, System
from rekindle.actors.processes.watch.epoll_loop import EpollLoop
from rekindle.persistence import open_store


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Meanwhile no descriptor is free, also after others are closed; open ones stay open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_worker_that_finds_no_descriptor_dies_of_it_and_is_back_when_there_are_some(
    run: Run, rows: Rows
) -> None:
    system = run(python("wait"), sleeper())
    neighbour = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with no_descriptor_left():
        os.kill(pid, signal.SIGKILL)
        system.wait_until("wait", lambda w: w.restart_count >= 3, PATIENCE_S)
        assert system.status("sleeper").pid == neighbour
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    causes = [cause for _, cause, *_ in rows.deaths("wait")]
    assert causes[:2] == ["signalled", "spawn_failed"]


def test_a_system_that_finds_no_descriptor_raises_and_leaves_no_thread(
    database: Path, no_traces: None
) -> None:
    system = System([sleeper()], store=open_store(database))
    with no_descriptor_left(), pytest.raises((OSError, RekindleError)):
        system.start()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rekindle-")]


def test_a_process_that_cannot_be_watched_does_not_run_on_unwatched(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel limits how many descriptors a user may watch."""
    refused = threading.Event()
    watch = EpollLoop.watch

    def scarce(loop: EpollLoop, descriptor: int, handler: Callable[[], object], **how: bool) -> None:
        if len(loop._handlers) > 2 and not refused.is_set():
            refused.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        watch(loop, descriptor, handler, **how)

    monkeypatch.setattr(EpollLoop, "watch", scarce)
    system = run(python("wait"))
    system.wait_until("wait", lambda w: w.restart_count >= 1, PATIENCE_S)
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert refused.is_set()
    assert [cause for _, cause, *_ in rows.deaths("wait")] == ["spawn_failed"]
