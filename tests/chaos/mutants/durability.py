"""Mistakes in what outlasts the supervisor, and in what is written."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors import supervision
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.rules.outbox import Outbox
from rekindle.actors.runtime.resilient_actor import tell
from rekindle.actors.supervision import on_health, pauses, restart_wait
from rekindle.actors.supervision.pauses import Pauses
from rekindle.actors.supervisor.breakers import Breakers
from rekindle.actors.supervisor.links import Links
from rekindle.actors.supervisor.pending.pause_ends import PauseEnds


def loses_what_it_could_not_write(patch: pytest.MonkeyPatch) -> None:
    """A record that the store refused is gone."""
    right = PersistenceActor._failed

    def failed(self: PersistenceActor, error: Any) -> None:
        self._in_flight = None
        right(self, error)

    patch.setattr(PersistenceActor, "_failed", failed)


def forgets_a_delay_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A supervisor that starts again starts everything at once."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        return right(spec, replace(known, restart_due_wall_ms=None), world)

    patch.setattr(supervision, "remembered", remembered)


def forgets_the_streak_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A supervisor that starts again begins with the shortest delay."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        return right(spec, replace(known, streak_count=0), world)

    patch.setattr(supervision, "remembered", remembered)


def forgets_a_failure_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A failed worker starts again with the supervisor."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        return right(spec, replace(known, failed_at_wall_ms=None), world)

    patch.setattr(supervision, "remembered", remembered)


def forgets_recent_deaths_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A sliding window is empty after a restart of the supervisor."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        return right(spec, replace(known, recent_deaths_wall_ms=()), world)

    patch.setattr(supervision, "remembered", remembered)


def begins_again_with_generation_one(patch: pytest.MonkeyPatch) -> None:
    """Generations start over with each supervisor."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        step = right(spec, known, world)
        return replace(step, worker=replace(step.worker, generation=0))

    patch.setattr(supervision, "remembered", remembered)


def keeps_a_pause_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    """A pause is not persisted."""
    patch.setattr(pauses, "_settings", lambda _id, _pause: [])


def forgets_a_pause_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A persisted pause is not read."""
    patch.setattr(Pauses, "from_meta", classmethod(lambda cls, _meta: cls()))


def never_ends_a_pause(patch: pytest.MonkeyPatch) -> None:
    """A pause with a length lasts until an operator resumes."""
    patch.setattr(PauseEnds, "arm", lambda _self: None)


def never_ends_a_pause_of_a_former_run(patch: pytest.MonkeyPatch) -> None:
    """The end of a pause is forgotten with the supervisor."""
    patch.setattr(PauseEnds, "restore", lambda _self, _left: None)


def forgets_an_open_breaker_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """All workers start at once after a restart in the middle of an outage."""
    patch.setattr(Breakers, "restore", lambda self, _meta: self.watch())


def leaves_a_closed_breaker_in_the_store(patch: pytest.MonkeyPatch) -> None:
    """The next supervisor finds a breaker open that was closed."""
    right = Breakers._persist

    def persist(self: Breakers, record: Any, event: Any) -> None:
        if record.value is None:
            tell(self._persistence, event)
        else:
            right(self, record, event)

    patch.setattr(Breakers, "_persist", persist)


def publishes_an_event_twice(patch: pytest.MonkeyPatch) -> None:
    """Each event that follows a commit is sent to the Broker a second time."""
    right = Outbox.ready

    def ready(self: Outbox) -> Any:
        found = right(self)
        return (*found, *found[-1:])

    patch.setattr(Outbox, "ready", ready)


def loses_the_events_of_a_failed_commit(patch: pytest.MonkeyPatch) -> None:
    """A batch that is put back returns without its events."""
    right = PersistenceActor._put_back

    def put_back(self: PersistenceActor) -> None:
        if self._in_flight is not None:
            self._in_flight.events.clear()
        right(self)

    patch.setattr(PersistenceActor, "_put_back", put_back)


def loses_the_event_of_a_stop(patch: pytest.MonkeyPatch) -> None:
    """The end of a worker that was stopped is not published."""
    right = Links.keep_and_announce

    def announce(self: Any, effects: Any) -> None:
        kept = [each for each in effects if type(getattr(each, "event", None)).__name__ != "WorkerStopped"]
        right(self, tuple(kept))

    patch.setattr(Links, "keep_and_announce", announce)


def announces_a_death_twice(patch: pytest.MonkeyPatch) -> None:
    """An event that comes with a record is numbered twice."""
    right = PersistenceActor._take_one

    def take(self: PersistenceActor, item: Any) -> None:
        right(self, item)
        if type(item).__name__ == "WorkerDied":
            right(self, item)

    patch.setattr(PersistenceActor, "_take_one", take)


def numbers_begin_again(patch: pytest.MonkeyPatch) -> None:
    """A supervisor numbers its events from 1."""
    patch.setattr("rekindle.actors.persistence_actor.Outbox", lambda _last: Outbox(0))


def forgets_what_ended_with_the_supervisor(patch: pytest.MonkeyPatch) -> None:
    """That a process was started is not persisted, so the next supervisor does not know that it ended."""
    right = PersistenceActor._add

    def add(self: PersistenceActor, record: Any) -> None:
        if type(record).__name__ != "GenerationStarted":
            right(self, record)

    patch.setattr(PersistenceActor, "_add", add)


def never_reserves_further_generations(patch: pytest.MonkeyPatch) -> None:
    """The mark of the generations in the store is not moved on."""
    patch.setattr(restart_wait, "_moved_mark", lambda _worker: ())
