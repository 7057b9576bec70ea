"""Pure: what the events of a node's journal say of the processes of its workers.

worker_placed   ─▶ the epoch of those that follow
worker_started  ─▶ a life begins
worker_stopping ─▶ whose fault its end will be: an operator's, or the node's if it is fenced
worker_stopped  ─▶ it ended on request
worker_died     ─▶ it ended by itself; a death without a start is a start that failed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ....deaths.death import HUNG, Action, Cause, Exit
from ....deaths.findings import Finding
from ....facts.records import EventRecord
from ....messages import WorkerDied, WorkerPlaced, WorkerStarted, WorkerStopped, WorkerStopping
from ....messages.event_json import event_of, event_type
from ....supervision.worker import StopReason
from ...facts.node_lives import Fault, NodeLife
from ...facts.tenures import TenureEnd
from .attribution import ProcessEnding, fault
from .lapses import Lapses

_HARD_WORDS = ("ENOSPC", "EIO", "EROFS", "EMFILE", "ENFILE", "ENOMEM")
_HARD_TEXTS = (
    "No space left on device",
    "Input/output error",
    "Read-only file system",
    "Too many open files",
    "Cannot allocate memory",
)

NO_LAPSES = Lapses()

LifeEvent = WorkerPlaced | WorkerStarted | WorkerStopping | WorkerStopped | WorkerDied
TYPES = frozenset(map(event_type, (WorkerPlaced, WorkerStarted, WorkerStopping, WorkerStopped, WorkerDied)))


class LifeBook(msgspec.Struct, frozen=True):
    """What is known of the workers of one node, after some of its events."""

    node_id: str
    epochs: Mapping[str, int] = {}
    """By worker."""
    living: Mapping[str, NodeLife] = {}
    """By worker: its latest process."""

    def lacks(self, records: Iterable[EventRecord]) -> frozenset[str]:
        """The workers in these events whose epoch is not known."""
        ids = {each.component_id for each in records if each.type in TYPES and each.component_id}
        return frozenset(ids - self.epochs.keys())

    def knowing(self, epochs: Mapping[str, int]) -> LifeBook:
        """The book with these epochs."""
        return replace(self, epochs={**epochs, **self.epochs})


def read(
    book: LifeBook, records: Iterable[EventRecord], lapses: Lapses = NO_LAPSES
) -> tuple[LifeBook, tuple[NodeLife, ...]]:
    """The book after these events, and the lives that they have begun or ended."""
    epochs, living = dict(book.epochs), dict(book.living)
    changed: dict[tuple[str, int], NodeLife] = {}
    for record in records:
        event = event_of(record) if record.type in TYPES else None
        if isinstance(event, WorkerPlaced):
            epochs[event.component_id] = event.epoch
        elif isinstance(event, LifeEvent):
            id_ = event.component_id
            known = living.get(id_)
            if known is None or known.generation != event.generation:
                known = NodeLife(
                    node_id=book.node_id,
                    component_id=id_,
                    generation=event.generation,
                    epoch=epochs.get(id_, 0),
                    began_ms=record.at_wall_ms,
                )
            living[id_] = changed[id_, event.generation] = _after(known, event, record.at_wall_ms, lapses)
    return replace(book, epochs=epochs, living=living), tuple(changed.values())


def _after(life: NodeLife, event: LifeEvent, at_ms: int, lapses: Lapses) -> NodeLife:
    match event:
        case WorkerStopping(reason=reason):
            return replace(life, fault=Fault.NODE if reason == StopReason.FENCED else Fault.OPERATOR)
        case WorkerStopped() if life.ended_ms is None:
            return replace(life, ended_ms=at_ms, cause="stopped", fault=life.fault or Fault.OPERATOR)
        case WorkerDied():
            return _died(life, event, at_ms, is_fenced=lapses.caused(event, at_ms))
        case _:
            return life


def _died(life: NodeLife, event: WorkerDied, at_ms: int, *, is_fenced: bool) -> NodeLife:
    death = event.death
    is_lost = is_fenced or death.cause is Cause.SUPERVISOR_LOST
    by_itself = not is_lost and not death.ended_well and event.action != Action.RESTART_UNCOUNTED
    return replace(
        life,
        began_ms=min(life.began_ms, at_ms - death.uptime_ms),
        ended_ms=at_ms,
        cause=death.cause.value,
        fault=fault(
            ProcessEnding(
                node=life.node_id,
                at_ms=at_ms,
                how=TenureEnd.LOST if is_lost else None,
                has_status=death.exit != Exit() or death.cause in HUNG,
            )
        ),
        counted=event.action == Action.RESTART and not is_fenced,
        died=by_itself,
        is_hard=by_itself and _is_hard(event),
    )


def _is_hard(event: WorkerDied) -> bool:
    """Whether the machine has killed it, or has no room for it; by the text of the error."""
    if event.finding is Finding.OUT_OF_MEMORY:
        return True
    is_start = event.death.cause is Cause.SPAWN_FAILED
    return is_start and any(word in event.death.detail for word in (*_HARD_WORDS, *_HARD_TEXTS))
