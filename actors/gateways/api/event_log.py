"""Pure: reads the event log with a filter, in pages of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...facts.records import EventPage, EventRecord
from ...messages.topics import Topics, event_topic

PAGE = 500
MOST_PAGES = 20
"""A filter that matches almost nothing must not read the whole log for one response."""

Read = Callable[[int, int], EventPage]


@dataclass(frozen=True, slots=True)
class FilteredEvents:
    """The matching events, and where to read on."""

    events: tuple[EventRecord, ...]
    oldest: int
    newest: int
    next_after: int


def read_log(read: Read, after: int | None, limit: int, topics: Topics) -> FilteredEvents:
    """The events after a number, or the latest ones, that match the topics; oldest first."""
    return _latest(read, limit, topics) if after is None else _following(read, after, limit, topics)


def _following(read: Read, after: int, limit: int, topics: Topics) -> FilteredEvents:
    found: list[EventRecord] = []
    page = EventPage((), 0, 0)
    for _ in range(MOST_PAGES):
        page = read(after, PAGE)
        for record in page.events:
            after = record.id
            if _is_chosen(topics, record):
                found.append(record)
                if len(found) == limit:
                    return FilteredEvents(tuple(found), page.oldest, page.newest, after)
        if len(page.events) < PAGE:
            break
    return FilteredEvents(tuple(found), page.oldest, page.newest, after)


def _latest(read: Read, limit: int, topics: Topics) -> FilteredEvents:
    span = read(0, 0)
    found: list[EventRecord] = []
    end = span.newest
    for _ in range(MOST_PAGES):
        if len(found) >= limit or end < max(span.oldest, 1):
            break
        begin = max(end - PAGE, 0)
        page = read(begin, end - begin)
        found = [each for each in page.events if each.id <= end and _is_chosen(topics, each)] + found
        end = begin
    return FilteredEvents(tuple(found[-limit:]), span.oldest, span.newest, span.newest)


def _is_chosen(topics: Topics, record: EventRecord) -> bool:
    return topics.choose(event_topic(record.type, record.component_id))
