"""Which workers stop, and in which order: a worker stops before the workers it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec

from .. import supervision
from . import group_rules as groups
from .handed_over_worker import WaitingStop
from .worker import Stopping, StopReason, SupervisedWorker, Up, WorkerStep

Change = Callable[[SupervisedWorker], WorkerStep]


class _Stop(msgspec.Struct, frozen=True):
    """How a worker stops, and whether the workers that wait for it stop first."""

    change: Change
    in_order: bool
    falls: bool = False
    """Because of another member of its group, after which it starts again."""


class StopOrder:
    """Stops that are decided; each is carried out when no running worker needs it."""

    def __init__(self) -> None:
        self._stops: dict[str, _Stop] = {}
        self._unkillable: set[str] = set()
        """Workers whose end is not waited for."""

    def __contains__(self, component_id: str) -> bool:
        return component_id in self._stops

    def __bool__(self) -> bool:
        return bool(self._stops)

    def stop(self, ids: Iterable[str], change: Change, *, in_order: bool) -> None:
        """Have these stop so, each in its turn; or at once."""
        self._stops.update((id_, _Stop(change, in_order)) for id_ in ids)

    def pause(self, ids: Iterable[str]) -> None:
        """Have these pause; a stop that is decided outlasts the pause."""
        for id_ in ids:
            self._stops.setdefault(id_, _Stop(supervision.pause, in_order=True))

    def fall(self, ids: Iterable[str], change: Change) -> None:
        """Have these stop because another member of their group died; a stop that is decided stays."""
        for id_ in ids:
            self._stops.setdefault(id_, _Stop(change, in_order=True, falls=True))

    def falling(self, members: Iterable[SupervisedWorker]) -> set[str]:
        """Those of these members that stop, or will, because another member of their group died."""
        return {
            worker.id
            for worker in members
            if (isinstance(worker.phase, Stopping) and worker.phase.reason is StopReason.GROUP)
            or ((stop := self._stops.get(worker.id)) is not None and stop.falls)
        } - self._unkillable

    def unpause(self, component_id: str) -> None:
        """Its pause is over before its turn came."""
        if (stop := self._stops.get(component_id)) is not None and stop.change is supervision.pause:
            del self._stops[component_id]

    def outlived(self, component_id: str) -> None:
        """It survived SIGKILL: its end is not waited for."""
        self._unkillable.add(component_id)

    def at_rest(self, component_id: str) -> None:
        """It has ended, after all."""
        self._unkillable.discard(component_id)

    def ready(self, workers: Mapping[str, SupervisedWorker]) -> list[str]:
        """Those whose turn it is."""
        if not self._stops:
            return []
        needed = {id_ for worker in workers.values() if self._is_ending(worker) for id_ in worker.spec.after}
        return [
            id_
            for id_, stop in self._stops.items()
            if not stop.in_order or id_ not in needed or not _is_of_use(workers.get(id_))
        ]

    def take(self, component_id: str) -> Change:
        """How it stops; it is removed from the stops that wait."""
        return self._stops.pop(component_id).change

    # ── an upgrade of the supervisor ─────────────────────────────────────────────────────

    def known(self) -> tuple[tuple[WaitingStop, ...], tuple[str, ...]]:
        """The stops that wait, and the workers whose end is not waited for."""
        waiting = tuple(_waiting(id_, stop) for id_, stop in self._stops.items())
        return waiting, tuple(sorted(self._unkillable))

    def take_over(self, stops: Iterable[WaitingStop], unkillable: Iterable[str]) -> None:
        """Go on with what the former program had decided."""
        self._unkillable.update(unkillable)
        for each in stops:
            match each.kind:
                case "pause":
                    self.pause((each.component_id,))
                case "fall":
                    change = partial(groups.fall, culprit=each.culprit, down=each.down)
                    self.fall((each.component_id,), change)
                case _:
                    change = partial(supervision.stop, urgency=each.urgency, reason=each.reason)
                    self.stop((each.component_id,), change, in_order=each.in_order)

    def _is_ending(self, worker: SupervisedWorker) -> bool:
        """Whether it is stopping or will stop, so that the workers it needs must stay until then."""
        if worker.id in self._stops:
            return True
        phase = worker.phase
        if not isinstance(phase, Stopping):
            return False
        returns_at_once = phase.relaunch and phase.reason is not StopReason.GROUP
        return not returns_at_once and worker.id not in self._unkillable


def _is_of_use(worker: SupervisedWorker | None) -> bool:
    """Whether it has a process that others may need; a worker without one is not started now."""
    return worker is not None and isinstance(worker.phase, Up) and worker.phase.pid is not None


def _waiting(component_id: str, stop: _Stop) -> WaitingStop:
    if not isinstance(stop.change, partial):
        return WaitingStop(component_id=component_id, kind="pause")
    kind = "fall" if stop.falls else "stop"
    return WaitingStop(component_id=component_id, kind=kind, in_order=stop.in_order, **stop.change.keywords)
