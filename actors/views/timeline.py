"""Pure: a worker's timeline from events, samples, jobs and recorded deaths.

    events of the worker ───────┐
    events of the system ───────┼─▶ entries, newest first ─▶ mean time between failures
    samples, jobs, old deaths ──┘

Events keep the order of their numbers, even if the clock jumped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice

import msgspec

from ..facts.jobs import JobView
from ..facts.records import DeathRecord, EventRecord, Lives, UsageNoted
from .timeline_entries import TimelineEntry, entries_of, entries_of_death, entry_of_usage
from .timeline_jobs import with_jobs

_WIDE = frozenset(
    {
        "pause_began",
        "pause_ended",
        "store_degraded",
        "store_recovered",
        "stood_down",
        "events_lost",
        "supervision_stalled",
    }
)
"""Events about the system, shown for every worker."""

_SHARED = frozenset({"breaker_opened", "breaker_closed"})
"""Events that name the workers they concern."""


class Failures(msgspec.Struct, frozen=True):
    """How often a worker died, and its mean time between failures."""

    deaths: int
    mean_between_ms: int | None
    """Total uptime, including the current life, divided by deaths; None without a death."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one worker, newest first."""

    id: str
    entries: tuple[TimelineEntry, ...]
    shown: Failures
    """Over the deaths among the entries."""
    ever: Failures
    """Over all recorded deaths."""
    more: bool
    """Whether there are more entries than requested."""
    source: str = ""
    """Where this comes from, in a sentence, if not from this supervisor alone."""


class TimelineSources(msgspec.Struct, frozen=True, kw_only=True):
    """The records about a worker, newest first."""

    own: Sequence[EventRecord] = ()
    system: Sequence[EventRecord] = ()
    """Events about the system."""
    usages: Sequence[UsageNoted] = ()
    jobs: Sequence[JobView] = ()
    deaths: Sequence[DeathRecord] = ()
    lives: Lives = Lives()


def timeline(component_id: str, known: TimelineSources, *, limit: int, running_ms: int = 0) -> Timeline:
    """The timeline of a worker that has been running for `running_ms`."""
    found = tuple(islice(_merged(component_id, known), limit + 1))
    entries = found[:limit]
    dead = {each.generation for each in entries if each.kind == "death"}
    shown = _uptimes(known, dead)
    return Timeline(
        id=component_id,
        entries=entries,
        shown=failures(shown, running_ms),
        ever=failures(known.lives, running_ms),
        more=len(found) > limit,
    )


def failures(lives: Lives, running_ms: int = 0) -> Failures:
    """The mean time between failures; the current life counts with its uptime so far."""
    mean = None if not lives.deaths else round((lives.uptime_ms + running_ms) / lives.deaths)
    return Failures(lives.deaths, mean)


def _merged(component_id: str, known: TimelineSources) -> Iterator[TimelineEntry]:
    system = (each for each in known.system if _concerns(each, component_id))
    events = tuple(_newest_first((*known.own, *system)))
    dead = {each.generation for each in events if each.kind == "death"}
    old = [entries_of_death(death)[::-1] for death in known.deaths if death.generation not in dead]
    samples = [entry_of_usage(each) for each in known.usages]
    happened = merge(
        events, samples, [entry for pair in old for entry in pair], key=lambda each: -each.at_wall_ms
    )
    yield from with_jobs(happened, known.jobs)


def _newest_first(records: Iterable[EventRecord]) -> Iterator[TimelineEntry]:
    """The entries; a `worker_failed` that repeats the decision before it is left out."""
    given_up: set[int | None] = set()
    entries: list[TimelineEntry] = []
    for record in sorted(records, key=lambda each: each.id):
        found = entries_of(record)
        if record.type == "worker_failed" and given_up & {each.generation for each in found}:
            continue
        given_up |= {each.generation for each in found if each.kind == "failed"}
        entries += found
    return reversed(entries)


def _concerns(record: EventRecord, component_id: str) -> bool:
    if record.type in _SHARED:
        return component_id in msgspec.json.decode(record.payload).get("workers", ())
    return record.type in _WIDE


def _uptimes(known: TimelineSources, generations: set[int | None]) -> Lives:
    uptimes = {death.generation: death.uptime_ms for death in known.deaths}
    for record in known.own:
        if record.type == "worker_died":
            fields = msgspec.json.decode(record.payload)
            uptimes[fields["generation"]] = fields["uptime_ms"]
    lasted = [uptimes[each] for each in generations if each is not None and each in uptimes]
    return Lives(len(lasted), sum(lasted))
