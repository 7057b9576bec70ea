"""Records to try a store with, and what it answers."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.records import DeathRecord, EventRecord, RememberedWorker
from rekindle.actors.ports import Store

NOW = 1_790_000_000_000
TAG = "worker:tag:0"

_RESTARTED = DeathRecord(
    component_id=TAG,
    generation=1,
    died_at_wall_ms=NOW,
    cause=Cause.SIGNALLED,
    exit_code=None,
    signal=9,
    uptime_ms=3_000,
    job=None,
    action=Action.RESTART,
    reason="Restart #1 with 1s backoff",
    delay_ms=1_000,
)


def death(generation: int = 1, **changes: object) -> DeathRecord:
    """A death that leads to a restart, unless `changes` say otherwise."""
    return replace(_RESTARTED, generation=generation, **changes)


def final_death(generation: int = 1, **changes: object) -> DeathRecord:
    """A death after which the worker is given up."""
    changes = {"action": Action.MARK_FAILED, "reason": "too many restarts", "delay_ms": 0, **changes}
    return death(generation, **changes)


def known(store: Store, component_id: str = TAG) -> RememberedWorker:
    """What the store remembers of a worker; a missing one looks like a new one."""
    return store.load().workers.get(component_id, RememberedWorker())


def event(number: int, **changes: object) -> EventRecord:
    """A numbered event."""
    plain = EventRecord(id=number, at_wall_ms=NOW, type="worker_started", component_id=TAG, payload="{}")
    return replace(plain, **changes)
