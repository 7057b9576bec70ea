"""Pure: timeline entries from events, recorded deaths and samples.

Facts that two events report are shown once: a change to `dead` as the death that follows it, a
repeated alert as the death that it counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..facts.records import DeathRecord, EventRecord, UsageNoted
from .event_sentences import sentences_of
from .sentences.death_sentences import recorded_death_sentences
from .sentences.sentence import Level
from .sentences.usage_sentences import usage_words


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a timeline."""

    at_wall_ms: int
    kind: str
    """One of the kinds of `Sentence.kind`."""
    text: str
    generation: int | None = None
    event_id: int | None = None
    """The event's number; None for a sample, a job, or a recorded death."""
    node: str | None = None
    """The node of a cluster on which it happened, if the question was asked of a node."""


def entries_of(record: EventRecord) -> tuple[TimelineEntry, ...]:
    """The entries of an event, in order; empty if another event reports the same."""
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
    """The entries of a recorded death whose event has been deleted."""
    at, generation = death.died_at_wall_ms, death.generation
    return tuple(
        TimelineEntry(at_wall_ms=at, kind=each.kind, text=each.text, generation=generation)
        for each in recorded_death_sentences(death)
    )


def entry_of_usage(noted: UsageNoted) -> TimelineEntry:
    """The entry of a sample."""
    text = usage_words(noted)
    return TimelineEntry(at_wall_ms=noted.at_wall_ms, kind="sample", text=text, generation=noted.generation)
