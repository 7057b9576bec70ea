"""The Broker: the way of every event, and the current state of everything.

Every event comes here first. It gets its number and goes on to the persistence actor, together
with the records that it belongs to; once it is in the store it changes the current state and is told to
everyone who listens. While the store is away events are told from memory, with the same numbers.

Owns the numbers, the states of all topics, and the list of listeners. A listener is anything
with `tell`: a host's pykka ref, or an edge's inbox. One that is gone or that raises costs the
others nothing.

An event that comes alone waits a moment for a record to go with: a commit of its own would hold
up the commit of a death that comes just after it. What workers use goes into the store with
whatever goes there next; where nothing happens, once in a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from loguru import logger

from .facts.records import Record
from .messages import (
    Event,
    Passing,
    Published,
    ResourcesSampled,
    Snapshot,
    StateChanged,
    StoodDown,
    StoreDegraded,
    is_event,
)
from .messages.internal import Flush, JobChanged, KeepTogether
from .messages.internal.to_broker import (
    BrokerMessage,
    EventsDue,
    EventsKept,
    EventsOverdue,
    Notice,
    QueuesSeen,
    Subscribe,
    Unsubscribe,
    WorkerForgotten,
    WorkerKnown,
)
from .messages.topics import Topics, event_topic
from .ports import Receiver, Runtime, Timer
from .rules.current_states import Current
from .rules.outbox import Outbox
from .runtime.resilient_actor import ResilientActor, tell

SAVE_TIMEOUT_S = 2.0
"""How long an event waits for the store before it is told from memory."""

SAMPLES_WAIT_S = 300.0
"""How long what workers use waits at the most for something else to go into the store with."""

MOST_UNFOLDED = 1000
"""So much may have happened before the current state is brought up to date, though nobody asks."""


class _Listener(msgspec.Struct, frozen=True):
    receiver: Receiver
    topics: Topics | None
    """None: every event, as it is."""


class _Told(NamedTuple):
    """Something that was told, as the current state takes it."""

    said: Event | Notice
    at_wall_ms: int
    event_id: int | None


class _News(msgspec.Struct, frozen=True):
    """What is to be told of one entry of the outbox."""

    event: Event | None
    published: Published | None
    """None: it has no number."""
    changes: tuple[StateChanged, ...]


class Broker(ResilientActor):
    """Numbers every event, has it kept, and tells it to everyone who asked for it."""

    def __init__(
        self, *, runtime: Runtime, persistence: Receiver, last_id: int = 0, linger_s: float = 0.0
    ) -> None:
        super().__init__()
        self.broker = self.actor_ref
        self._runtime = runtime
        self._linger_s = linger_s
        self._persistence = persistence
        self._outbox = Outbox(last_id)
        self._current = Current()
        self._unfolded: list[_Told] = []
        """What was told and is not in the current state yet: nobody has asked for it."""
        self._taken: object = None
        """The last message whose events were numbered; if we raise it comes again."""
        self._unsent: list[Record] = []
        self._sampled_at: float | None = None
        """Since when what a worker uses has waited among them."""
        self._listeners: tuple[_Listener, ...] = ()
        self._are_topics_heard = False
        self._due: Timer | None = None
        self._overdue: Timer | None = None

    def handle(self, message: BrokerMessage) -> None:
        """Take an event, or tell what is in the store."""
        match message:
            case KeepTogether(items=items):
                self._take(message, items)
                self._send()
                self._publish()
            case EventsKept(last_id=last_id):
                self._outbox.kept(last_id)
                self._outbox.from_memory = False
                self._publish()
            case EventsDue():
                self._due = None
                self._send()
            case EventsOverdue():
                self._overdue = None
                self._wait_no_longer()
            case Subscribe(receiver=receiver, topics=topics):
                self._subscribe(receiver, topics)
            case Unsubscribe(receiver=receiver):
                self._leave(receiver)
            case Flush():
                self._send()
                tell(self._persistence, message)
            case Passing():
                self._note_usage(message)
                self._publish()
            case WorkerKnown() | WorkerForgotten() | JobChanged() | QueuesSeen():
                clock = self._runtime.clock
                self._outbox.note(message, clock.wall_ms(), clock.monotonic())
                self._publish()
            case event:
                self._take(event, (event,))
                self._send_soon()
                self._publish()

    # ── on the way to the store ──────────────────────────────────────────────────────────

    def dropped(self, message: BrokerMessage) -> None:
        """Restart history must not depend on us: have the records kept at least."""
        if isinstance(message, KeepTogether):
            records = tuple(item for item in message.items if not is_event(item))
            tell(self._persistence, KeepTogether(records))

    def _take(self, message: object, items: tuple[Record | Event, ...]) -> None:
        """Number the events among these, once."""
        if message is self._taken:
            return
        self._unsent += [self._numbered(each) for each in items]
        self._taken = message
        if isinstance(message, StoreDegraded | StoodDown):
            self._outbox.from_memory = True

    def _send_soon(self) -> None:
        if not self._linger_s:
            self._send()
        elif self._due is None:
            self._due = self._runtime.timers.after(self._linger_s, self.actor_ref, EventsDue())

    def _numbered(self, item: Record | Event) -> Record:
        if not is_event(item):
            return item
        clock = self._runtime.clock
        return self._outbox.take(item, clock.wall_ms(), clock.monotonic())

    def _note_usage(self, sampled: ResourcesSampled) -> None:
        """Have it kept with whatever is kept next; no commit is worth a sample."""
        now = self._runtime.clock.monotonic()
        self._outbox.note(sampled, sampled.at_wall_ms, now)
        self._unsent.append(sampled.noted)
        self._sampled_at = now if self._sampled_at is None else self._sampled_at
        if now - self._sampled_at >= SAMPLES_WAIT_S:
            self._send()

    def _send(self) -> None:
        items, self._unsent, self._sampled_at = tuple(self._unsent), [], None
        if items and not tell(self._persistence, KeepTogether(items)):
            self._outbox.from_memory = True

    # ── on the way to the listeners ──────────────────────────────────────────────────────

    def _publish(self) -> None:
        for entry, published in self._outbox.ready():
            told = _Told(entry.said, entry.at_wall_ms, None if published is None else published.id)
            event = entry.said if is_event(entry.said) else None
            changes = self._changes(told)
            if event is not None or changes:
                self._tell_all(_News(event, published, changes))
        self._mind_the_time()

    def _changes(self, told: _Told) -> tuple[StateChanged, ...]:
        """What changes by this; while nobody listens to topics it is left for later, and for nobody.

        A restart waits for whatever we do here.
        """
        if self._are_topics_heard:
            return self._current.take(told.said, told.at_wall_ms, told.event_id)
        self._unfolded.append(told)
        if len(self._unfolded) >= MOST_UNFOLDED:
            self._fold()
        return ()

    def _fold(self) -> None:
        """Bring the current state up to date."""
        unfolded, self._unfolded = self._unfolded, []
        for told in unfolded:
            self._current.take(told.said, told.at_wall_ms, told.event_id)

    def _tell_all(self, news: _News) -> None:
        gone = [each for each in self._listeners if not _took(each, news)]
        for each in gone:
            self._leave(each.receiver)

    def _mind_the_time(self) -> None:
        """Have the wait for the store end at some time; one timer serves all that wait."""
        since = self._outbox.oldest_wait
        if since is not None and self._overdue is None:
            delay = max(0.0, since + SAVE_TIMEOUT_S - self._runtime.clock.monotonic())
            self._overdue = self._runtime.timers.after(delay, self.actor_ref, EventsOverdue())

    def _wait_no_longer(self) -> None:
        since = self._outbox.oldest_wait
        if since is not None and self._runtime.clock.monotonic() >= since + SAVE_TIMEOUT_S:
            self._outbox.from_memory = True
        self._publish()

    # ── who listens ──────────────────────────────────────────────────────────────────────

    def _subscribe(self, receiver: Receiver, patterns: tuple[str, ...] | None) -> None:
        topics = None if patterns is None else Topics(patterns)
        self._leave(receiver)
        self._listeners += (_Listener(receiver, topics),)
        if topics is not None:
            self._are_topics_heard = True
            self._fold()
            recent = tuple(each for each in self._outbox.recent if topics.choose(_topic(each)))
            tell(receiver, Snapshot(self._outbox.last_told, self._current.states(topics.choose), recent))

    def _leave(self, receiver: Receiver) -> None:
        self._listeners = tuple(each for each in self._listeners if each.receiver is not receiver)
        self._are_topics_heard = any(each.topics is not None for each in self._listeners)


def _took(listener: _Listener, news: _News) -> bool:
    try:
        return all(tell(listener.receiver, each) for each in _chosen(listener.topics, news))
    except BaseException as error:  # noqa: BLE001  # one that wants to exit must not silence the others
        logger.opt(exception=error).warning("a listener ended over an event")
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
