"""The Broker: publishes events, and owns the current state of every topic.

The persistence actor hands it events that are in the store (while the store is unavailable, events
from memory with the same numbers), and notices in their places among them. Each changes the
current states and is sent to the subscribers that asked for it.

A subscriber is anything with `tell`: a host's pykka ref, or the inbox of a gateway. One that is
gone or raises does not affect the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from loguru import logger

from .messages import ActorReplaced, Event, Published, Snapshot, StateChanged, is_event
from .messages.internal.to_broker import (
    BrokerMessage,
    Notice,
    Publish,
    Subscribe,
    Unnumbered,
    Unsubscribe,
)
from .messages.topics import Topics, event_topic
from .ports import Receiver
from .rules.current_states import CurrentStates
from .runtime.resilient_actor import ResilientActor, tell

RECENT = 256
"""How many events a new subscriber can get from memory; older ones are in the store."""

MOST_UNSAVED = 10_000
"""How many events that are not in the store are held in memory during an outage."""

MOST_UNFOLDED = 1000
"""How many changes may wait before the current states are brought up to date without a request."""


class _Subscriber(msgspec.Struct, frozen=True):
    receiver: Receiver
    topics: Topics | None
    """None: every event, without number and states."""


class _Change(NamedTuple):
    """Something published, as the current states take it."""

    item: Event | Notice
    at_wall_ms: int
    event_id: int | None


class _News(msgspec.Struct, frozen=True):
    """What one published item means to subscribers."""

    event: Event | None
    published: Published | None
    """None: it has no number."""
    changes: tuple[StateChanged, ...]


class Broker(ResilientActor):
    """Publishes every event to the subscribers that asked for it."""

    def __init__(self, *, persistence: Receiver, last_id: int = 0, began_wall_ms: int = 0) -> None:
        super().__init__(persistence=persistence)
        self._queue: deque[Published | Unnumbered] = deque()
        self._taken: Publish | None = None
        """The latest message that was queued; after an exception it is handled again."""
        self._recent: deque[Published] = deque()
        self._last_id = last_id
        """The number of the latest published event."""
        self._persisted_id = last_id
        self._current = CurrentStates(began_wall_ms)
        self._unfolded: list[_Change] = []
        """What is published and not in the current states yet: no subscriber needs them."""
        self._subscribers: tuple[_Subscriber, ...] = ()
        self._has_topics = False
        """Whether a subscriber follows states."""

    def handle(self, message: BrokerMessage) -> None:
        """Publish, or change the list of subscribers."""
        match message:
            case Publish():
                self._take(message)
                while self._queue:
                    self._publish(self._queue.popleft())
            case Subscribe(receiver=receiver, topics=topics):
                self._subscribe(receiver, topics)
            case Unsubscribe(receiver=receiver):
                self._unsubscribe(receiver)
            case unknown:
                self.unexpected(unknown)

    def dropped(self, message: BrokerMessage) -> None:
        """Publish with the next message what could not be published with this one."""
        if isinstance(message, Publish):
            self._take(message)

    def reports_replacement(self, message: Any) -> bool:
        """Not while publishing such a report: it would lead to the next one without end."""
        items = message.items if isinstance(message, Publish) else ()
        return not any(
            isinstance(each, Published) and isinstance(each.event, ActorReplaced) for each in items
        )

    # ── events and states ────────────────────────────────────────────────────────────────

    def _take(self, message: Publish) -> None:
        if message is not self._taken:
            self._taken = message
            self._queue.extend(message.items)
            self._persisted_id = message.persisted_id

    def _publish(self, item: Published | Unnumbered) -> None:
        if isinstance(item, Published):
            self._remember(item)
            event: Event | None = item.event
            changes = self._changes(_Change(item.event, item.at_wall_ms, item.id))
            self._tell_all(_News(event, item, changes))
            return
        event = item.item if is_event(item.item) else None
        changes = self._changes(_Change(item.item, item.at_wall_ms, None))
        if event is not None or changes:
            self._tell_all(_News(event, None, changes))

    def _remember(self, published: Published) -> None:
        self._last_id = published.id
        recent = self._recent
        recent.append(published)
        for _ in range(2):  # after an outage there are more than one too many
            if len(recent) > RECENT and (recent[0].id <= self._persisted_id or len(recent) > MOST_UNSAVED):
                recent.popleft()

    def _changes(self, change: _Change) -> tuple[StateChanged, ...]:
        """Which states change; computed later if no subscriber follows states, since a restart may wait."""
        if self._has_topics:
            return self._current.take(change.item, change.at_wall_ms, change.event_id)
        self._unfolded.append(change)
        if len(self._unfolded) >= MOST_UNFOLDED:
            self._fold()
        return ()

    def _fold(self) -> None:
        """Bring the current states up to date."""
        unfolded, self._unfolded = self._unfolded, []
        for change in unfolded:
            self._current.take(change.item, change.at_wall_ms, change.event_id)

    def _tell_all(self, news: _News) -> None:
        gone = [each for each in self._subscribers if not _took(each, news)]
        for each in gone:
            self._unsubscribe(each.receiver)

    # ── subscribers ──────────────────────────────────────────────────────────────────────

    def _subscribe(self, receiver: Receiver, patterns: tuple[str, ...] | None) -> None:
        topics = None if patterns is None else Topics(patterns)
        self._unsubscribe(receiver)
        self._subscribers += (_Subscriber(receiver, topics),)
        if topics is not None:
            self._has_topics = True
            self._fold()
            recent = tuple(each for each in self._recent if topics.choose(_topic(each)))
            tell(receiver, Snapshot(self._last_id, self._current.states(topics.choose), recent))

    def _unsubscribe(self, receiver: Receiver) -> None:
        self._subscribers = tuple(each for each in self._subscribers if each.receiver is not receiver)
        self._has_topics = any(each.topics is not None for each in self._subscribers)


def _took(subscriber: _Subscriber, news: _News) -> bool:
    try:
        return all(tell(subscriber.receiver, each) for each in _chosen(subscriber.topics, news))
    except BaseException as error:  # noqa: BLE001  # SystemExit of one must not silence the others
        logger.opt(exception=error).warning("broker: a subscriber raised and gets no more events")
        return False


def _chosen(topics: Topics | None, news: _News) -> Iterator[Event | Published | StateChanged]:
    if topics is None:
        if news.event is not None:
            yield news.event
        return
    if news.published is not None and topics.choose(_topic(news.published)):
        yield news.published
    yield from (each for each in news.changes if topics.choose(each.topic))


def _topic(published: Published) -> str:
    return event_topic(published.record.type, published.record.component_id)
