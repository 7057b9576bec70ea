"""The HistoryCourier of a node: the events of its journal, told to the cluster in their order.

It owns how far the journal was shipped. It asks the store how far that is, then ships one page after the
other, and with each page the lives of processes that its events have begun or ended (`life_news`).
A page whose answer is lost is shipped again, which changes nothing. Nothing waits for it: what the store
does not take stays in the journal. It ends with its system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from loguru import logger

from ..errors import StoreError
from ..facts.node_figures import NodeFigures
from ..facts.records import EventRecord
from ..messages import ClusterEvent, Published, ShipCaughtUp, ShipLagged, WorkerPlaced
from ..messages.event_json import event_of, event_type
from ..messages.topics import ALL_EVENTS
from ..ports import Clock, Runtime, Store
from ..runtime.resilient_actor import ResilientActor
from ..spec.deployment.assigned import Assigned
from .cluster_messages import StoreAway
from .cluster_ports import HistoryStore
from .courier_messages import GuardedUntil, HistoryMessage, JournalKept, ShipDue, ShipJournal
from .rules.suspects import life_news
from .rules.suspects.lapses import Lapses
from .rules.suspects.life_news import LifeBook

TOPICS = (ALL_EVENTS,)
AGAIN_S = 0.5
PAGE = 500
MOST_EVENTS = 10_000
"""Of one worker, when its epoch is looked up."""
FORGET_EVERY_S = 3600.0
LAGS_S = 30.0
"""People are told if the store lacks events that are so old."""
_PLACED = event_type(WorkerPlaced)


class HistoryCourier(ResilientActor):
    """Ships the journal of one node."""

    lane: ClassVar[str] = "journal"
    """It reads the journal, and a slow disk must not delay the lease, which the Agent renews."""

    def __init__(
        self,
        node_id: str,
        *,
        runtime: Runtime,
        store: HistoryStore,
        journal: Store,
        epochs: Mapping[str, Assigned],
        keep_days: float,
        former_until_ms: int | None = None,
        clock: Clock | None = None,
        node: str = "",
        announce: Callable[[ClusterEvent], None] = lambda event: None,
        figures: NodeFigures | None = None,
    ) -> None:
        """Take the ports; `epochs` are the latest ones of former lives, by worker; `node` is the name.

        `former_until_ms` is when the right of the former life ended, by the clock of this machine.
        """
        super().__init__()
        self._node_id = node_id
        self._runtime, self._store, self._journal = runtime, store, journal
        self._epochs, self._keep_days, self._clock = epochs, keep_days, clock or runtime.clock
        self._up_to: int | None = None
        """The number of the last event that the store has; None: not known yet."""
        self._under_way: ShipJournal | None = None
        self._book, self._lapses = LifeBook(node_id), Lapses(former_until_ms)
        self._is_waiting = False
        self._forgot_at: float | None = None
        self._node, self._announce, self._figures = node, announce, figures or NodeFigures()
        self._behind_since: float | None = None
        """Since when the store has not had everything."""
        self._lags = False
        """Whether it has said that the store gets the journal too late."""

    def recover(self) -> None:
        """Ask again how far the journal was shipped."""
        self._up_to, self._under_way, self._is_waiting = None, None, False
        self._book = LifeBook(self._node_id)
        self._again()

    def handle(self, message: HistoryMessage) -> None:
        """Take one message."""
        match message:
            case Published():
                self._ship()
            case GuardedUntil(wall_ms=until_ms, at_ms=at_ms):
                self._lapses = self._lapses.guarded(until_ms, at_ms)
            case JournalKept(up_to=up_to):
                self._kept(up_to)
            case StoreAway():
                if (
                    self._figures.unshipped_since_ms is None
                ):  # it is not known how far the journal was shipped
                    self._figures.unshipped_since_ms = self._clock.wall_ms()
                self._look_at_lag()
                self._again()
            case ShipDue():
                self._is_waiting = False
                self._resume()
            case _:
                pass  # other news of the topics

    def _resume(self) -> None:
        if self._up_to is None:
            self._store.shipped_up_to(self._node_id, self.actor_ref)
        elif self._under_way is not None:
            self._store.ship(self._under_way, self.actor_ref)
        else:
            self._ship()

    def _kept(self, up_to: int) -> None:
        if self._up_to is None or up_to > self._up_to:
            self._up_to, self._under_way = up_to, None
        self._ship()
        self._look_at_lag()

    def _ship(self) -> None:
        """Ship the next page, if there is one and none is under way."""
        if self._up_to is None or self._under_way is not None or self._is_waiting:
            return
        try:
            page = self._journal.events(self._up_to, PAGE)
            self._figures.unshipped_since_ms = page.events[0].at_wall_ms if page.events else None
            if not page.events:
                return
            self._book = self._book.knowing(self._epochs_of(page.events))
        except StoreError as error:
            logger.debug("cluster: the journal cannot be read; trying again: {}", str(error))
            self._again()
            return
        self._book, lives = life_news.read(self._book, page.events, self._lapses)
        self._under_way = ShipJournal(
            node_id=self._node_id, records=page.events, lives=lives, keep_days=self._forgets()
        )
        self._store.ship(self._under_way, self.actor_ref)

    def _look_at_lag(self) -> None:
        """Say once that the store lacks old events although this node has tried for long; and its end."""
        now = self._clock.monotonic()
        if self._figures.unshipped_since_ms is None:
            if self._lags:
                self._announce(ShipCaughtUp(self._node))
            self._lags, self._behind_since = False, None
            return
        if self._behind_since is None:
            self._behind_since = now
        lag_s = self._figures.ship_lag_s(self._clock.wall_ms())
        if not self._lags and min(lag_s, now - self._behind_since) >= LAGS_S:
            self._lags = True
            self._announce(ShipLagged(self._node, lag_s))

    def _epochs_of(self, records: tuple[EventRecord, ...]) -> dict[str, int]:
        """Under which epochs workers ran that were placed before these events."""
        return {id_: self._epoch_of(id_, records[0].id) for id_ in self._book.lacks(records)}

    def _epoch_of(self, component_id: str, before: int) -> int:
        for record in self._journal.events_of(component_id, limit=MOST_EVENTS):
            if record.id < before and record.type == _PLACED:
                event = event_of(record)
                return event.epoch if isinstance(event, WorkerPlaced) else 0
        known = self._epochs.get(component_id)
        return 0 if known is None else known.epoch

    def _forgets(self) -> float | None:
        """For how many days the store keeps history, once an hour."""
        now = self._clock.monotonic()
        if self._forgot_at is not None and now - self._forgot_at < FORGET_EVERY_S:
            return None
        self._forgot_at = now
        return self._keep_days

    def _again(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._runtime.timers.after(AGAIN_S, self.actor_ref, ShipDue())
