"""Pure: the lines of a worker's timeline that come from events, from the history of deaths, and from samples.

What two events say is shown once: a change to `dead` by the death that follows it, a further
occurrence of an alert by the death that it counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..facts.records import DeathRecord, EventRecord, UsageNoted
from .event_sentences import Level, recorded_death_sentences, sentences_of, usage_words


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a timeline."""

    at_wall_ms: int
    kind: str
    """As `Sentence.kind` names them."""
    text: str
    generation: int | None = None
    event_id: int | None = None
    """The event's number in the log; None for a sample, a job, and a death from the history."""


def entries_of(record: EventRecord) -> tuple[TimelineEntry, ...]:
    """What an event says, in the order in which it happened; nothing if another event says it."""
    fields: dict[str, Any] = msgspec.json.decode(record.payload)
    return tuple(
        TimelineEntry(
            at_wall_ms=record.at_wall_ms,
            kind=sentence.kind,
            text=sentence.text,
            generation=fields.get("generation"),
            event_id=record.id,
        )
        for sentence in sentences_of(record)
        if sentence.level is not Level.TRACE
    )


def entries_of_death(death: DeathRecord) -> tuple[TimelineEntry, ...]:
    """What a row of the history says of a death whose event has been deleted."""
    at, generation = death.died_at_wall_ms, death.generation
    return tuple(
        TimelineEntry(at_wall_ms=at, kind=each.kind, text=each.text, generation=generation)
        for each in recorded_death_sentences(death)
    )


def entry_of_usage(noted: UsageNoted) -> TimelineEntry:
    """What a worker used."""
    text = usage_words(noted)
    return TimelineEntry(at_wall_ms=noted.at_wall_ms, kind="sample", text=text, generation=noted.generation)
