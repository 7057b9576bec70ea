"""The circuit breaker with real workers: a file stands for the database, a port for its server."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    BreakerClosed,
    BreakerOpened,
    BreakerPolicy,
    RestartPolicy,
    Status,
    StopPolicy,
    WorkerSpec,
    WorkerStarted,
    command,
)
from rekindle.actors.breaker_prober import BreakerProber
from rekindle.actors.messages.internal.to_prober import Probe
from rekindle.actors.system.inboxes import Inbox
from rekindle.worker.guardian import marked_processes

IDS = ("w:0", "w:1", "w:2", "w:3")
FRUGAL = RestartPolicy(max_lifetime=1, initial_delay_s=0.05, min_delay_s=0.05)


def needing(file: Path, policy: BreakerPolicy) -> list[WorkerSpec]:
    """Workers that run while the file is there, and may die once in their lives."""
    script = f"while test -e {file}; do sleep 0.05; done; exit 1"
    return [
        WorkerSpec(
            id_, command("sh", "-c", script), restart=FRUGAL, stop=StopPolicy(ask_s=0.2), breaker=policy
        )
        for id_ in IDS
    ]


def test_workers_whose_database_goes_away_come_back_with_it(run: Run, tmp_path: Path) -> None:
    database = tmp_path / "database"
    database.touch()
    policy = BreakerPolicy(name="db", deaths=2, canary_delay_s=0.2, canary_max_delay_s=0.4, hold_s=0.5)
    system = run(*needing(database, policy))
    for id_ in IDS:
        system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    with system.events() as events:
        database.unlink()
        opened = events.until(lambda e: isinstance(e, BreakerOpened), PATIENCE_S)
        assert isinstance(opened, BreakerOpened)
        assert opened.workers == IDS
        # Three canaries die of it: each would have failed a worker that may be restarted once.
        for _ in range(3):
            events.until(lambda e: isinstance(e, WorkerStarted), PATIENCE_S)
        assert "held back: breaker db is open" in system.explain("w:3")
        (shown,) = system.report().breakers
        assert (shown.name, shown.open_for_s > 0) == ("db", True)
        assert (shown.canary is None) is not (shown.next_try_in_s is None)
        assert shown.held
        database.touch()
        closed = events.until(lambda e: isinstance(e, BreakerClosed), PATIENCE_S)
        assert isinstance(closed, BreakerClosed)
    assert system.report().breakers == ()
    for id_ in IDS:
        system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    assert sum(system.status(id_).restart_count for id_ in IDS) <= 1


def test_a_probe_finds_a_server_that_is_gone_and_that_is_back(run: Run, tmp_path: Path) -> None:
    database = tmp_path / "database"
    database.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        policy = BreakerPolicy(
            name="db",
            deaths=None,
            probe_tcp=f"127.0.0.1:{port}",
            probe_interval_s=0.1,
            canary_delay_s=0.1,
            hold_s=0.1,
        )
        system = run(*needing(database, policy))
        for id_ in IDS:
            system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
        events = system.events()
    opened = events.until(lambda e: isinstance(e, BreakerOpened), PATIENCE_S)
    assert isinstance(opened, BreakerOpened)
    assert "refused" in opened.reason
    with socket.create_server(("127.0.0.1", port)):
        assert isinstance(events.until(lambda e: isinstance(e, BreakerClosed), PATIENCE_S), BreakerClosed)
    events.close()


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        (BreakerPolicy(name="a", probe_command=("true",)), None),
        (BreakerPolicy(name="a", probe_command=("false",)), "false exited with code 1"),
        (BreakerPolicy(name="a", probe_command=("sleep", "9"), probe_timeout_s=0.1), "cut off after 0.1 s"),
        (BreakerPolicy(name="a", probe_call=lambda: None), None),
        (BreakerPolicy(name="a", probe_call=lambda: False), "said no"),
        (BreakerPolicy(name="a", probe_call=lambda: 1 // 0), "ZeroDivisionError"),
    ],
)
def test_a_probe_is_a_command_or_a_function_with_a_time_limit(
    policy: BreakerPolicy, wrong: str | None, no_traces: None
) -> None:
    prober, inbox = BreakerProber(), Inbox()
    prober.tell(Probe(policy, inbox))
    found = inbox.get(PATIENCE_S).wrong
    assert found is None if wrong is None else wrong in (found or "")
    prober.close(PATIENCE_S)


def test_a_function_that_never_returns_is_called_once_and_costs_one_thread(no_traces: None) -> None:
    """One more for every look would fill the host's process with threads in the end."""
    calls: list[int] = []
    returned = threading.Event()

    def hang() -> bool:
        calls.append(1)
        return returned.wait(PATIENCE_S)

    prober, inbox = BreakerProber(), Inbox()
    probe = Probe(BreakerPolicy(name="a", probe_call=hang, probe_timeout_s=0.01), inbox)
    said = []
    for _ in range(5):
        prober.tell(probe)
        said.append(inbox.get(PATIENCE_S).wrong)
    assert said == [
        "the function did not return within 0.01 s",
        *["the function has not returned from an earlier call"] * 4,
    ]
    assert len(calls) == 1
    returned.set()
    assert eventually(lambda: "rekindle-probe-call" not in {each.name for each in threading.enumerate()})
    prober.tell(Probe(BreakerPolicy(name="a", probe_call=lambda: True), inbox))
    assert inbox.get(PATIENCE_S).wrong is None, "it is called again once it has returned"
    prober.close(PATIENCE_S)


def test_a_probe_without_a_free_thread_is_answered_and_followed_by_others(
    monkeypatch: pytest.MonkeyPatch, no_traces: None
) -> None:
    """Without an answer there would be no further probe, and an open breaker would stay open."""
    prober, inbox = BreakerProber(), Inbox()
    probe = Probe(BreakerPolicy(name="a", probe_call=lambda: True), inbox)
    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", no_thread)
        prober.tell(probe)
    assert inbox.get(PATIENCE_S).wrong == "can't start new thread"
    prober.tell(probe)
    assert inbox.get(PATIENCE_S).wrong is None
    prober.close(PATIENCE_S)


def test_a_probe_without_a_free_descriptor_is_answered(
    monkeypatch: pytest.MonkeyPatch, no_traces: None
) -> None:
    prober, inbox = BreakerProber(), Inbox()
    probe = Probe(BreakerPolicy(name="a", probe_call=lambda: True), inbox)
    with monkeypatch.context() as scarce:
        scarce.setattr(os, "eventfd", no_descriptor)
        prober.tell(probe)
    assert inbox.get(PATIENCE_S).wrong == "[Errno 24] Too many open files"
    prober.tell(probe)
    assert inbox.get(PATIENCE_S).wrong is None
    prober.close(PATIENCE_S)


def test_a_look_that_outlasts_the_end_leaves_no_descriptor(no_traces: None) -> None:
    prober, released = BreakerProber(), threading.Event()
    prober.tell(Probe(BreakerPolicy(name="a", probe_call=released.wait, probe_timeout_s=60), Inbox()))
    assert eventually(lambda: "rekindle-probe-call" in {each.name for each in threading.enumerate()})
    prober.close(0.0)
    released.set()


def no_descriptor(_value: int, _flags: int) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_probe_that_hangs_ends_with_the_system(run: Run) -> None:
    policies = [
        BreakerPolicy(name=name, probe_command=("sleep", "1000"), probe_timeout_s=900.0) for name in "abc"
    ]
    system = run(*(sleeper(f"of-{policy.name}", breaker=policy) for policy in policies))
    assert eventually(lambda: len(marked_processes(system.mark)) == 6)
    assert system.strays() == ()
    mark = system.mark
    system.stop()
    assert marked_processes(mark) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "rekindle-probe"]
