"""The events in the journal of a virtual node: what its HistoryCourier ships."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ...deaths.death import Action, Cause, Death, Exit
from ...facts.records import EventPage, EventRecord
from ...messages import (
    Event,
    Published,
    WorkerDied,
    WorkerPlaced,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from ...messages.event_json import numbered


@dataclass(slots=True)
class VirtualEvents:
    """Numbered events, and the generations of the workers; both outlast the agent."""

    records: list[EventRecord] = field(default_factory=list)
    generations: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    open: set[str] = field(default_factory=set)
    """The workers whose latest process has not ended, as far as the journal knows."""
    latest: Published | None = None

    # ── the port ─────────────────────────────────────────────────────────────────────────

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """The events after a number; numbers begin at 1 and have no gaps."""
        found = tuple(self.records[after_id : after_id + limit])
        return EventPage(found, min(1, len(self.records)), len(self.records))

    def events_of(self, component_id: str, *, limit: int = 100) -> tuple[EventRecord, ...]:
        """The latest events about one worker, newest first."""
        found = [each for each in reversed(self.records) if each.component_id == component_id]
        return tuple(found[:limit])

    # ── what happens ─────────────────────────────────────────────────────────────────────

    def placed(self, worker: str, node: str, epoch: int, at_ms: int) -> None:
        """A worker is supervised under an epoch."""
        self._add(WorkerPlaced(worker, node, epoch), at_ms)

    def began(self, worker: str, at_ms: int) -> None:
        """A process begins."""
        self.generations[worker] += 1
        self.open.add(worker)
        self._add(WorkerStarted(worker, self.generations[worker], 1), at_ms)

    def crashed(self, worker: str, at_ms: int) -> None:
        """A process has ended by itself, and is counted."""
        self._died(worker, Cause.EXITED, Action.RESTART, at_ms)

    def stopped(self, worker: str, reason: str, at_ms: int) -> None:
        """A process has ended on request, if there was one."""
        if worker in self.open:
            self.open.discard(worker)
            generation = self.generations[worker]
            self._add(WorkerStopping(worker, generation, reason), at_ms)
            self._add(WorkerStopped(worker, generation, Exit(signal=15), None), at_ms)

    def lost(self, at_ms: int) -> None:
        """A new life of the agent finds processes that ended with the former one."""
        for worker in sorted(self.open):
            self._died(worker, Cause.SUPERVISOR_LOST, Action.RESTART_UNCOUNTED, at_ms)

    def _died(self, worker: str, cause: Cause, action: Action, at_ms: int) -> None:
        self.open.discard(worker)
        exit_ = Exit(code=1) if cause is Cause.EXITED else Exit()
        death = Death(component_id=worker, generation=self.generations[worker], cause=cause, exit=exit_)
        self._add(WorkerDied(death, action, "", 0.0, 0), at_ms)

    def _add(self, event: Event, at_ms: int) -> None:
        record = numbered(len(self.records) + 1, at_ms, event)
        self.records.append(record)
        self.latest = Published(record.id, at_ms, event, record)
