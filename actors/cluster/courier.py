"""The Courier of a node: what its journal says of the counters of workers, told to the cluster.

It owns the tenures of this node. At the first `ShipDue` it ships what former lives of the agent have counted
and could not tell; then it follows the events of the journal. It tells the store each tenure that has
changed, until the store has it, and the Agent when a worker has ended for good. It ends with its system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from msgspec.structs import replace

from ..messages import (
    ClusterEvent,
    Event,
    LateDeathsMerged,
    Published,
    RunEvent,
    WorkerDied,
    WorkerFailed,
    WorkerPlaced,
    WorkerRemoved,
)
from ..messages.event_json import event_of
from ..ports import Receiver, Runtime, Store
from ..runtime.resilient_actor import ResilientActor, tell
from ..spec.deployment.assigned import Assigned
from ..supervision.on_schedule import META
from .cluster_messages import Changed, JournalShipped, KeepTenure, StoreAway, TenureStopped
from .cluster_ports import TenureStore
from .courier_messages import CourierMessage, GuardedUntil, ShipDue, TenureBegan, TenuresRead
from .facts.tenures import Tenure
from .rules.suspects.lapses import Lapses
from .rules.tenure_counters import merged
from .rules.tenure_news import CountedEvent, after_event

TOPICS = tuple(
    f"event:{each}:*"
    for each in (
        *("worker_died", "worker_failed", "worker_reset", "failure_lifted", "worker_removed"),
        *("status_changed", "schedule_changed", "run_due", "run_started", "run_succeeded", "run_failed"),
        *("run_stopped", "run_skipped", "run_missed"),
    )
)
AGAIN_S = 0.5
MOST_EVENTS = 10_000
"""Of one worker, at the start."""


class Courier(ResilientActor):
    """Ships the tenures of one node."""

    lane: ClassVar[str] = "journal"
    """It reads the journal, and a slow disk must not delay the lease, which the Agent renews."""

    def __init__(
        self,
        node_id: str,
        *,
        runtime: Runtime,
        store: TenureStore,
        journal: Store,
        epochs: Mapping[str, Assigned],
        agent: Callable[[], Receiver],
        former_until_ms: int | None = None,
        node: str = "",
        announce: Callable[[ClusterEvent], None] = lambda event: None,
    ) -> None:
        """Take the ports; `epochs` are the latest ones of former lives, by worker; `node` is the name.

        `former_until_ms` is when the right of the former life ended, by the clock of this machine.
        """
        super().__init__()
        self._node_id = node_id
        self._runtime, self._store, self._journal = runtime, store, journal
        self._epochs, self._agent = epochs, agent
        self._node, self._announce = node, announce
        self._tenures: dict[str, Tenure] = {}
        """By worker: its tenure on this node."""
        self._unshipped: dict[tuple[str, int], Tenure] = {}
        self._lapses = Lapses(former_until_ms)
        """When the workers had no right to run: their deaths do not count."""
        self._is_shipped = False
        self._is_waiting = False

    def recover(self) -> None:
        """Try again what is not shipped."""
        self._is_waiting = False
        self._ship_later()

    def handle(self, message: CourierMessage) -> None:
        """Take one message."""
        match message:
            case TenuresRead():
                self._replay(message)
            case TenureBegan(tenure=tenure):
                self._began(tenure)
            case GuardedUntil(wall_ms=until_ms, at_ms=at_ms):
                self._lapses = self._lapses.guarded(until_ms, at_ms)
            case Published(event=WorkerRemoved(component_id=id_)):
                self._ended(id_)
            case Published(event=event) if isinstance(event, CountedEvent):
                self._note(event, message)
            case Published(event=event) if isinstance(event, RunEvent):
                self._note_run(event.component_id)
            case Changed(change=KeepTenure(tenure=tenure), late=late):
                if late:
                    self._announce(LateDeathsMerged(tenure.component_id, self._node, late))
                self._shipped(tenure)
            case StoreAway():
                self._ship_later()
            case ShipDue():
                self._ship_again()
            case _:
                pass  # other news of the topics

    # ── former lives ─────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        keys = tuple((id_, assigned.epoch) for id_, assigned in self._epochs.items())
        if keys:
            self._store.tenures(keys, self.actor_ref)
        else:
            self._finish_start()

    def _replay(self, read: TenuresRead) -> None:
        """Count what the journal has and the store does not know."""
        if self._is_shipped:
            return
        known = {(each.component_id, each.epoch): each for each in read.tenures}
        timetables = self._timetables()
        for id_, assigned in self._epochs.items():
            stored = known.get((id_, assigned.epoch))
            tenure = stored or Tenure(component_id=id_, epoch=assigned.epoch, node_id=self._node_id)
            now = replace(self._replayed(tenure), timetable=timetables.get(id_, tenure.timetable))
            if now != stored:
                self._ship(now)
        self._epochs = {}
        if not self._unshipped:
            self._finish_start()

    def _replayed(self, tenure: Tenure) -> Tenure:
        records = self._journal.events_of(tenure.component_id, limit=MOST_EVENTS)
        since = next((each.id for each in records if _begins(event_of(each), tenure.epoch)), 0)
        for record in sorted(records, key=lambda each: each.id):
            event = event_of(record) if record.id > since else None
            if isinstance(event, CountedEvent):
                counts = self._counts(event, record.at_wall_ms)
                tenure = after_event(tenure, record.id, record.at_wall_ms, event, counts=counts)
        return tenure

    def _finish_start(self) -> None:
        if not self._is_shipped:
            self._is_shipped = True
            tell(self._agent(), JournalShipped())

    # ── this life ────────────────────────────────────────────────────────────────────────

    def _began(self, tenure: Tenure) -> None:
        """Go on with a tenure; one of this epoch may be known here, and newer."""
        key = tenure.component_id, tenure.epoch
        for known in (self._tenures.get(tenure.component_id), self._unshipped.get(key)):
            if known is not None and known.epoch == tenure.epoch:
                tenure = merged(tenure, known)
        self._tenures[tenure.component_id] = tenure
        self._ship(tenure)

    def _timetables(self) -> dict[str, str]:
        """What the journal has of schedules, by worker."""
        meta = self._journal.load().meta
        return {key.removeprefix(META): text for key, text in meta.items() if key.startswith(META)}

    def _note_run(self, component_id: str) -> None:
        """A run has changed the timetable, which the journal has since the same commit."""
        tenure = self._tenures.get(component_id)
        if tenure is not None:
            after = replace(tenure, timetable=self._timetables().get(component_id))
            self._tenures[component_id] = after
            self._ship(after)

    def _note(self, event: CountedEvent, published: Published) -> None:
        tenure = self._tenures.get(event.component_id)
        if tenure is None:
            return
        counts = self._counts(event, published.at_wall_ms)
        after = after_event(tenure, published.id, published.at_wall_ms, event, counts=counts)
        if after != tenure:
            self._tenures[event.component_id] = after
            self._ship(after)

    def _counts(self, event: CountedEvent, at_ms: int) -> bool:
        """Whether it may count against the worker: the guardian has not killed it."""
        return not (isinstance(event, WorkerDied | WorkerFailed) and self._lapses.caused(event, at_ms))

    def _ended(self, component_id: str) -> None:
        tenure = self._tenures.pop(component_id, None)
        if tenure is not None:
            news = TenureStopped(component_id=component_id, epoch=tenure.epoch, tenure=tenure)
            tell(self._agent(), news)

    # ── shipping ─────────────────────────────────────────────────────────────────────────

    def _ship(self, tenure: Tenure) -> None:
        self._unshipped[tenure.component_id, tenure.epoch] = tenure
        self._store.change(KeepTenure(tenure), self.actor_ref)

    def _shipped(self, tenure: Tenure) -> None:
        key = tenure.component_id, tenure.epoch
        if self._unshipped.get(key) == tenure:
            del self._unshipped[key]
        if not self._unshipped and not self._epochs:
            self._finish_start()

    def _ship_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._runtime.timers.after(AGAIN_S, self.actor_ref, ShipDue())

    def _ship_again(self) -> None:
        self._is_waiting = False
        if self._epochs or not self._is_shipped:
            self._begin()
        for tenure in tuple(self._unshipped.values()):
            self._store.change(KeepTenure(tenure), self.actor_ref)


def _begins(event: Event | None, epoch: int) -> bool:
    return isinstance(event, WorkerPlaced) and event.epoch == epoch
