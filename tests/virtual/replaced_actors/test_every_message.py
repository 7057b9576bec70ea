"""Each of our actors raises once at every kind of message that it handles: each is replaced in place, and the
worker's life goes on as if nothing had happened.

The kinds are found by running that life once without a mistake, so a new message is covered by itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake
from tests.virtual.simulated_system import SimulatedSystem, W, lives, uptimes

from rekindle.actors.broker import Broker
from rekindle.actors.facts.health_status import Status
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.messages import ActorReplaced, StatusChanged, StopResult
from rekindle.actors.messages.internal.to_persistence import Persist
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.runtime.resilient_actor import ResilientActor
from rekindle.actors.simulation import Behaviour, dies_after
from rekindle.actors.store_writer import StoreWriter
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.actors.worker_proxy import WorkerProxy

ACTORS: tuple[type[ResilientActor], ...] = (
    Supervisor,
    HealthMonitor,
    WorkerProxy,
    PersistenceActor,
    StoreWriter,
    Broker,
)


class Moment(NamedTuple):
    """One kind of message at one class of actors."""

    actor: type[ResilientActor]
    kind: str

    def __str__(self) -> str:
        return f"{self.actor.__name__}-{self.kind}"


def kind_of(message: Any) -> str:
    """The type of a message; two types that carry very different things are told apart by their content."""
    name = type(message).__name__
    if isinstance(message, StatusChanged):
        return f"{name}:{message.new}"
    if isinstance(message, Persist):
        return f"{name}:{type(message.items[0]).__name__}"
    return name


def life_of_a_worker(system: SimulatedSystem) -> tuple[StopResult, ...]:
    """Start it, let it die once and come back, stop it, start it again."""
    system.start().run_to(60)
    assert system.starts() == [0, 4]
    assert system.status().status is Status.HEALTHY
    stopped = system.stop(within=40)
    system.start().run(30)
    return stopped


def system_of_one_life(new_system: SystemFactory) -> SimulatedSystem:
    deaf = Behaviour(ignores_request=True)
    return new_system(scripts=lives(dies_after(3), then=deaf), seed=3)


@cache
def moments() -> list[Moment]:
    """Every kind of message that our actors handle in that life."""
    found: dict[Moment, None] = {}
    factory = SystemFactory()
    with pytest.MonkeyPatch.context() as patch:
        for actor in ACTORS:
            _note_messages(patch, actor, found)
        life_of_a_worker(system_of_one_life(factory))
        factory.close()
    return list(found)


def _note_messages(patch: pytest.MonkeyPatch, actor: type[ResilientActor], found: dict[Moment, None]) -> None:
    handle = actor.handle

    def handle_and_note(self: ResilientActor, message: Any) -> None:
        found[Moment(actor, kind_of(message))] = None
        handle(self, message)

    patch.setattr(actor, "handle", handle_and_note)


def test_the_life_reaches_every_actor_and_the_messages_that_matter() -> None:
    assert {moment.actor for moment in moments()} == set(ACTORS)
    kinds = {str(moment) for moment in moments()}
    assert kinds >= {
        "Supervisor-StatusChanged:dead",
        "Supervisor-BackoffElapsed",
        "HealthMonitor-FrameReceived",
        "WorkerProxy-LadderElapsed",
        "PersistenceActor-CommitBatch",
        "StoreWriter-Commit",
        "Broker-Publish",
    }


@pytest.mark.parametrize("moment", moments(), ids=str)
@pytest.mark.parametrize(
    "error", [RuntimeError("a mistake"), SystemExit(1), KeyboardInterrupt()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_actor_that_raises_once_goes_on_as_if_nothing_had_happened(
    new_system: SystemFactory,
    monkeypatch: pytest.MonkeyPatch,
    moment: Moment,
    error: BaseException,
    after: bool,
) -> None:
    mistake = Mistake(
        moment.actor, lambda message: kind_of(message) == moment.kind, error=error, after=after
    ).put_in(monkeypatch)
    system = system_of_one_life(new_system)
    (stopped,) = life_of_a_worker(system)
    assert mistake.made == 1
    assert (stopped.gone, stopped.killed) == (True, False)
    assert system.status().status is Status.HEALTHY
    assert system.status().restart_count == system.stored().restart_count == 1
    assert [each.exit_code for each in system.memory.deaths(W)] == [1]
    assert [event.actor for _, event in system.events(ActorReplaced)] == [moment.actor.__name__]


SENT_ONCE = {
    "Declare",
    "StartWorkers",
    "ReportStatus",
    "CompleteReport",
    "StopWorkers",
    "Attend",
    "Subscribe",
    "Persist:MirrorWiped",
}
"""Messages that are not repeated: commands of a host, and what is sent once at the beginning."""


@pytest.mark.parametrize("moment", [each for each in moments() if each.kind not in SENT_ONCE], ids=str)
def test_a_message_that_always_raises_is_dropped_and_its_content_is_found_out(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    Mistake(moment.actor, lambda message: kind_of(message) == moment.kind, times=2).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(200)
    assert system.status().status is Status.HEALTHY
    assert system.processes.alive(W)
    assert system.stored().restart_count == system.status().restart_count == system.status().generation - 1
    (stopped,) = system.stop(within=40)
    assert stopped.gone
    assert not system.processes.alive(W)
