"""A host sends our actors what they do not know, or wrong values: it is refused, and nothing else changes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pykka
import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import python, sleeper
from tests.processes.waiting import PATIENCE_S, ended, eventually
from tests.virtual.faults import Mistake, at

from rekindle.actors import (
    AddWorker,
    Done,
    JobPolicy,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ReportStatus,
    RequestRefusedError,
    ResetWorker,
    RestartWorker,
    Status,
    StopPolicy,
    StopWorkers,
    System,
    UnknownWorkerError,
    WorkersStopped,
)
from rekindle.actors.messages import ActorReplaced, GatewayLost
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.actors.system.inboxes import Inbox
from rekindle.persistence import MemoryStore


@dataclass(frozen=True)
class DeployStarted:
    """An event of a host's own."""

    version: str


class Unspeakable:
    """An object without text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def dies_once_and_is_recorded(system: System, rows: Rows) -> bool:
    """Kill the worker; whether its death reaches the database, and nothing waits."""
    alive = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert alive.pid is not None
    os.kill(alive.pid, signal.SIGKILL)
    recorded = eventually(lambda: len(rows.deaths("sleeper")) == 1)
    report = system.report()
    return recorded and (report.degraded, report.unsaved) == (None, 0) and len(system.deaths()) == 1


@pytest.mark.parametrize(
    "message",
    [{"topic": "config-changed"}, "a text", None, 7, DeployStarted("1.2"), Unspeakable(), {}.keys()],
)
def test_a_message_to_all_actors_of_the_process_stops_nothing(run: Run, rows: Rows, message: object) -> None:
    system = run(sleeper())
    pykka.ActorRegistry.broadcast(message)
    pykka.ActorRegistry.broadcast(message)
    assert dies_once_and_is_recorded(system, rows)


WRONG: dict[str, Callable[[System], object]] = {
    "an event of the host's own type": lambda s: s.announce(DeployStarted("1.2")),  # type: ignore[arg-type]
    "an event with a wrong field": lambda s: s.announce(GatewayLost({"a": 1}, 5)),  # type: ignore[arg-type]
    "an order that is not an entry": lambda s: s.audit("restart"),  # type: ignore[arg-type]
    "a reason": lambda s: s.pause(reason=5),  # type: ignore[arg-type]
    "a length": lambda s: s.pause(for_s="10"),  # type: ignore[arg-type]
    "an id to pause": lambda s: s.pause(7),  # type: ignore[arg-type]
    "an id to reset": lambda s: s.reset(7),  # type: ignore[arg-type]
    "an id to restart": lambda s: s.restart(None),  # type: ignore[arg-type]
    "a spec": lambda s: s.add({"id": "x"}),  # type: ignore[arg-type]
    "specs": lambda s: s.change(["x"]),  # type: ignore[list-item]
    "a receiver": lambda s: s.subscribe(print),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_value_is_refused_in_the_caller_with_a_sentence(
    run: Run, rows: Rows, wrong: Callable[[System], object]
) -> None:
    system = run(sleeper())
    with pytest.raises(TypeError, match=r" must (be|have) | wrong type"):
        wrong(system)
    assert dies_once_and_is_recorded(system, rows)


def test_an_unknown_id_of_the_wrong_type_is_an_unknown_worker(run: Run) -> None:
    system = run(sleeper())
    with pytest.raises(LookupError, match="no worker is called 7"):
        system.status(7)  # type: ignore[arg-type]


def test_a_wrong_value_in_a_message_is_refused_in_the_reply(run: Run, rows: Rows) -> None:
    system = run(sleeper())
    inbox = Inbox()
    system.supervisor.tell(PauseWorkers(None, inbox, reason=5))  # type: ignore[arg-type]
    assert inbox.get(PATIENCE_S) == Refused("reason must be text (str), not 5")
    assert dies_once_and_is_recorded(system, rows)


@pytest.mark.parametrize(
    "name",
    ["HealthMonitor", "WorkerProxy", "PersistenceActor", "StoreWriter", "Broker", "JobDesk", "QueueWatch"],
)
def test_an_actor_that_is_stopped_from_outside_is_reported_and_goes_on(
    run: Run, rows: Rows, name: str
) -> None:
    others = {ref.actor_urn for ref in pykka.ActorRegistry.get_all()}
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    with system.events() as events:
        for ref in pykka.ActorRegistry.get_by_class_name(name):
            if ref.actor_urn not in others:
                ref.stop(timeout=PATIENCE_S)
        replaced = events.until(lambda event: isinstance(event, ActorReplaced), PATIENCE_S)
    assert replaced == ActorReplaced(name, "stopped from outside")
    before = system.status("sleeper").generation
    assert eventually(lambda: system.report().degraded is None)
    assert dies_once_and_is_recorded(system, rows)
    system.wait_until(
        "sleeper", lambda worker: worker.generation > before and worker.status is Status.HEALTHY, PATIENCE_S
    )
    assert [result.gone for result in system.stop()] == [True]


def test_a_supervisor_that_is_stopped_from_outside_kills_its_workers_and_the_system_can_be_stopped(
    run: Run,
) -> None:
    system = run(sleeper())
    pid = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    system.supervisor.stop(timeout=PATIENCE_S)
    assert eventually(lambda: ended(pid))
    with pytest.raises(RequestRefusedError, match="the supervisor has ended"):
        system.report()
    assert system.stop() == ()


def ask(system: System, message: object) -> Any:
    """The reply to a command, as a pykka programmer asks for it."""
    return system.supervisor.ask(message, timeout=PATIENCE_S)


def test_a_command_that_is_asked_is_answered(run: Run) -> None:
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert ask(system, RestartWorker("sleeper")) == Done()
    unknown = ask(system, RestartWorker("absent"))
    assert (unknown.unknown, unknown.reason) == ("absent", "no worker is called 'absent'")
    assert isinstance(ask(system, PauseWorkers(reason=5)), Refused)  # type: ignore[arg-type]
    report = ask(system, ReportStatus())
    assert [worker.component_id for worker in report.workers] == ["sleeper"]
    inbox = Inbox()
    stopped = ask(system, StopWorkers(("sleeper",), inbox))
    assert [result.gone for result in stopped.results] == [True]
    assert inbox.get(PATIENCE_S) == stopped, "the receiver that the command names is told, too"
    assert isinstance(ask(system, RemoveWorker("sleeper")), WorkersStopped)


def test_a_command_at_which_the_supervisor_raises_is_answered_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = run(sleeper())
    Mistake(Supervisor, at(ResetWorker), times=2).put_in(monkeypatch)
    refused = ask(system, ResetWorker("sleeper"))
    assert refused.reason.startswith("an internal error")
    assert ask(system, ResetWorker("sleeper")) == Done()


def test_a_receiver_that_asks_back_is_refused_at_once_and_nothing_waits(run: Run, rows: Rows) -> None:
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    refusals: list[tuple[str, float]] = []

    class Curious:
        def tell(self, _event: object) -> None:
            for call in (system.report, system.stop, lambda: system.restart("sleeper")):
                began = time.monotonic()
                try:
                    call()
                except RequestRefusedError as error:
                    refusals.append((str(error), time.monotonic() - began))

    system.subscribe(Curious())
    assert dies_once_and_is_recorded(system, rows)
    assert len(refusals) >= 3
    assert all("another thread" in text and took < 2.5 for text, took in refusals)


def test_a_fork_of_the_host_is_told_at_once_whose_the_system_is(run: Run) -> None:
    system = run(sleeper())
    child = os.fork()
    if child == 0:
        try:
            system.report()
        except RequestRefusedError as error:
            os._exit(7 if "before a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_subscription_before_the_system_is_open_is_refused_with_what_to_do() -> None:
    system = System([sleeper()], store=MemoryStore())
    with pytest.raises(RequestRefusedError, match="call `open` or `start` first"):
        system.subscribe(Inbox())
    system.stop()


def test_workers_that_are_added_and_removed_by_message_are_known_everywhere(run: Run, rows: Rows) -> None:
    system = run(sleeper())
    late = sleeper("late", stop=StopPolicy(ask_s=40.0, term_s=40.0, kill_s=5.0))
    served = python("wait", "server", jobs=JobPolicy(queues=("late",)))
    assert ask(system, AddWorker(late)) == Done()
    assert ask(system, AddWorker(served)) == Done()
    assert (system.spec("late"), system.queues) == (late, ("late",))
    assert system.enqueue("late", {}) == 1
    assert eventually(lambda: ("served_queues", '["late"]') in rows("SELECT key, value FROM rekindle_meta"))
    assert system._workers.longest_stop_s >= 80.0, "a stop of the system has the patience that it needs"
    assert isinstance(ask(system, RemoveWorker("server")), WorkersStopped)
    assert system.queues == ()
    with pytest.raises(UnknownWorkerError):
        system.spec("server")
