"""The process table by itself, where a mistake would hit the host: descriptors and their numbers."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import shell, sleeper, worker
from tests.processes.supervisors import guardian_of
from tests.processes.waiting import eventually

from rekindle.actors import Exit, RestartPolicy, Status, System, WorkerSpec, command
from rekindle.actors.deaths.evidence import Fingerprint
from rekindle.actors.messages.internal.to_proxy import (
    ProcessExited,
    ProcessFound,
    ProcessStarted,
    SpawnFailed,
)
from rekindle.actors.ports import Control, SpawnRequest
from rekindle.actors.processes import ended_processes
from rekindle.actors.processes.child import Child
from rekindle.actors.processes.fingerprints import Fingerprints
from rekindle.actors.processes.process_table import RealProcesses
from rekindle.actors.processes.spawn import launcher
from rekindle.actors.runtime.thread_runtime import RealClock
from rekindle.actors.system.inboxes import Inbox
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes

ROUNDS = 4
"""Less than the renewals that a guardian is granted."""


def test_an_order_after_the_end_is_written_to_no_file_of_the_host(tmp_path: Path, no_traces: None) -> None:
    """It woke the thread by a number that stood for something else by then."""
    processes = RealProcesses(RealClock(), guarded=False)
    assert processes.close()
    with ExitStack() as stack:
        files = [stack.enter_context((tmp_path / str(n)).open("wb", buffering=0)) for n in range(10)]
        processes.signal("absent", 1, signal.SIGTERM)
        processes.forget("absent")
        assert [os.fstat(file.fileno()).st_size for file in files] == [0] * 10


def test_closing_twice_and_asking_afterwards_is_harmless(no_traces: None) -> None:
    processes = RealProcesses(RealClock(), guarded=False)
    assert processes.close()
    assert processes.close()
    assert (processes.output("absent"), processes.condition("absent")) == ((), "gone")
    assert processes.strays(timeout_s=0.0) == ()


def test_workers_and_guardian_killed_in_the_same_instant_all_come_back(run: Run, rows: Rows) -> None:
    """A guardian that inherits the number of a closed descriptor must not get its news: it
    would be let go of, and would take that for the end of the supervisor."""
    ids = [f"s:{n}" for n in range(8)]
    system = run(*map(sleeper, ids))

    def pids(generation: int) -> list[int]:
        workers = system.report().workers
        healthy = [w for w in workers if w.status is Status.HEALTHY and w.generation == generation]
        return [w.pid for w in healthy if w.pid is not None]

    for generation in range(1, ROUNDS + 1):
        assert eventually(lambda generation=generation: len(pids(generation)) == 8)  # type: ignore[misc]
        guardian = guardian_of(os.getpid())
        assert guardian is not None
        for pid in (guardian, *pids(generation)):
            os.kill(pid, signal.SIGKILL)
        assert eventually(lambda old=guardian: guardian_of(os.getpid()) not in (None, old))  # type: ignore[misc]
    assert eventually(lambda: len(pids(ROUNDS + 1)) == 8)
    for id_ in ids:
        assert [row[0] for row in rows.deaths(id_)] == list(range(1, ROUNDS + 1))


PATIENCE_S = 20.0


@pytest.fixture
def processes(no_traces: None) -> Iterator[RealProcesses]:
    processes = RealProcesses(RealClock(), guarded=False)
    yield processes
    assert processes.close()


def test_an_order_for_one_that_is_being_started_waits_until_it_is_there(processes: RealProcesses) -> None:
    news, found = Inbox(), Inbox()
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    processes.report("s", found)
    processes.signal("s", 1, signal.SIGKILL)
    answer: ProcessFound = found.get(PATIENCE_S)
    assert answer.generation == 1
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    ended: ProcessExited = news.get(PATIENCE_S)
    assert ended.exit == Exit(signal=signal.SIGKILL)


def test_no_process_starts_after_the_end_of_the_lease_of_its_node(no_traces: None) -> None:
    """A start that was under way, or a back-off that ends when a machine wakes up."""
    processes, news = RealProcesses(RealClock()), Inbox()
    processes.set_lease(time.clock_gettime(time.CLOCK_BOOTTIME) - 1.0)
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    refused = news.get(PATIENCE_S)
    assert isinstance(refused, SpawnFailed)
    assert refused.scarce  # so it is tried again, and not counted
    processes.set_lease(time.clock_gettime(time.CLOCK_BOOTTIME) + 60.0)
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    assert processes.close()


def test_orders_to_one_that_is_being_started_keep_their_order(
    processes: RealProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause that waited for the start of all other workers came after the resume, and stayed."""
    news, heard = Inbox(), Inbox()
    monkeypatch.setattr(Child, "send", lambda _child, control: heard.tell(control))
    monkeypatch.setattr(launcher, "MOST_UNREGISTERED", 1)
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    for number in range(20):
        processes.spawn(SpawnRequest(sleeper(f"s:{number}"), 1, observer=Inbox(), monitor=Inbox()))
    processes.send("s", 1, Control.PAUSE)
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    processes.send("s", 1, Control.RESUME)
    assert [heard.get(PATIENCE_S) for _ in range(2)] == [Control.PAUSE, Control.RESUME]


def test_an_end_in_the_middle_of_deaths_and_starts_leaves_nothing(tmp_path: Path, no_traces: None) -> None:
    """A death that came between the order to end and the last start ended the watch too early."""
    at_once = RestartPolicy(
        max_in_window=None, max_lifetime=None, initial_delay_s=0.0, min_delay_s=0.0, max_delay_s=0.0
    )
    for number in range(10):
        specs = [worker(f"w:{n}", command("true"), restart=at_once) for n in range(3)]
        system = System(specs, store=open_store(tmp_path / f"{number}.db"), guarded=False)
        system.start()
        system.wait_until("w:0", lambda w: w.restart_count >= 5, PATIENCE_S)
        system.stop(timeout_s=0.0)


def test_what_one_began_that_finds_no_descriptor_does_not_live_on(
    processes: RealProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scarce(_pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    news = Inbox()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", scarce)
        processes.spawn(SpawnRequest(shell("s", "sleep 999 & sleep 998"), 1, observer=news, monitor=Inbox()))
        failed: SpawnFailed = news.get(PATIENCE_S)
    assert "Too many open files" in failed.error
    assert eventually(lambda: not marked_processes(processes.mark))


def test_an_end_where_the_host_ignores_sigchld_is_an_end(no_traces: None) -> None:
    """The status of the quick one is lost, and so is every descriptor that could stand for it."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        processes = RealProcesses(RealClock(), guarded=False)
        for number in range(20):
            quick = worker(f"w:{number}", command("true"))
            processes.spawn(SpawnRequest(quick, 1, observer=Inbox(), monitor=Inbox()))
        assert processes.close()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_shutdown_while_many_workers_start_leaves_no_process(no_traces: None) -> None:
    processes, news = RealProcesses(RealClock(), guarded=False), Inbox()
    for number in range(50):
        processes.spawn(SpawnRequest(sleeper(f"s:{number}"), 1, observer=news, monitor=Inbox()))
    assert processes.close()
    told = [news.get(PATIENCE_S) for _ in range(50)]
    refused = [each for each in told if isinstance(each, SpawnFailed)]
    ended = [each for each in told if isinstance(each, ProcessExited)]
    while len(refused) + len(ended) < 50:
        ended += [each for each in [news.get(PATIENCE_S)] if isinstance(each, ProcessExited)]
    assert {each.error for each in refused} <= {"the system is closing"}
    assert {each.exit for each in ended} <= {Exit(signal=signal.SIGKILL)}


def test_a_worker_that_is_being_started_is_not_a_stray(processes: RealProcesses) -> None:
    news = Inbox()
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    assert processes.strays() == ()
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    assert processes.strays() == ()


def test_what_is_open_does_not_grow_with_deaths_and_starts(processes: RealProcesses) -> None:
    def live_once(generation: int) -> None:
        news = Inbox()
        processes.spawn(SpawnRequest(sleeper("s"), generation, observer=news, monitor=Inbox()))
        assert isinstance(news.get(PATIENCE_S), ProcessStarted)
        processes.signal("s", generation, signal.SIGKILL)
        assert isinstance(news.get(PATIENCE_S), ProcessExited)

    before = len(os.listdir("/proc/self/fd"))
    for generation in range(1, 21):
        live_once(generation)
    # Both pipes of the next process are open.
    assert eventually(lambda: len(os.listdir("/proc/self/fd")) == before + 4)


class HungFiles(Fingerprints):
    """The files are on a file system that hangs until the test ends."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def of(self, spec: WorkerSpec) -> Fingerprint:
        self.answers.wait()
        return super().of(spec)


def test_a_death_is_reported_while_the_file_system_of_its_code_hangs(no_traces: None) -> None:
    files, news = HungFiles(), Inbox()
    processes = RealProcesses(RealClock(), guarded=False, fingerprints=files)
    processes.spawn(SpawnRequest(sleeper("s"), 1, observer=news, monitor=Inbox()))
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    processes.signal("s", 1, signal.SIGKILL)
    ended: ProcessExited = news.get(PATIENCE_S)
    assert ended.remains is not None
    assert ended.remains.fingerprint.version is None
    assert processes.close()
    files.answers.set()


def test_a_death_waits_a_moment_for_the_lookup_of_its_code(
    no_traces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_processes, "WAIT_S", PATIENCE_S)
    files, news = HungFiles(), Inbox()
    processes = RealProcesses(RealClock(), guarded=False, fingerprints=files)
    processes.spawn(SpawnRequest(shell("s", "exit 3"), 1, observer=news, monitor=Inbox()))
    assert isinstance(news.get(PATIENCE_S), ProcessStarted)
    assert eventually(lambda: processes.condition("s") == "gone")
    files.answers.set()
    ended: ProcessExited = news.get(PATIENCE_S)
    assert ended.remains is not None
    assert ended.remains.fingerprint.code
    assert processes.close()
