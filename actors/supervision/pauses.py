"""Pure: what is paused, why and until when; how that is persisted; what a pause postpones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ..facts.records import MetaSet
from ..messages import Done, Refused
from ..spec.spec_changes import Changes
from ..spec.validation import LONGEST_S
from .worker import BackingOff, Failed, Idle, Rest, Stopping, SupervisedWorker, Up

ENABLED = "worker_enabled"
"""The setting that holds a pause of everything; `worker_enabled:ID` holds that of one worker."""
REASON = "pause_reason"
UNTIL = "pause_until_wall_ms"

EVERYTHING = ""
"""Stands among ids for the whole system."""


class ActivePause(msgspec.Struct, frozen=True):
    """One pause; without an end it lasts until an operator resumes."""

    reason: str = ""
    until_wall_ms: int | None = None


class Pauses(msgspec.Struct, frozen=True):
    """Which workers are paused."""

    by_id: Mapping[str, ActivePause] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_meta(cls, meta: Mapping[str, str]) -> Pauses:
        """The pauses that the former run persisted; a missing setting means enabled."""
        off = [key for key, value in meta.items() if value.strip().lower() == "false"]
        ids = [id_ for key in off if key.partition(":")[0] == ENABLED for id_ in [key.partition(":")[2]]]
        return cls(
            {
                id_: ActivePause(meta.get(_key(REASON, id_), ""), _number(meta.get(_key(UNTIL, id_))))
                for id_ in ids
            }
        )

    @property
    def everything(self) -> bool:
        """Whether the whole system is paused."""
        return EVERYTHING in self.by_id

    def of(self, component_id: str) -> ActivePause | None:
        """The pause that this worker is under: its own, else that of everything."""
        return self.by_id.get(component_id) or self.by_id.get(EVERYTHING)

    def holds(self, component_id: str) -> bool:
        """Whether this worker is paused."""
        return component_id in self.by_id or EVERYTHING in self.by_id

    def paused(self, ids: Iterable[str] | None, pause: ActivePause) -> tuple[Pauses, tuple[MetaSet, ...]]:
        """With these workers, or everything, paused; and the settings that persist it."""
        chosen = (EVERYTHING,) if ids is None else tuple(ids)
        records = [record for id_ in chosen for record in _settings(id_, pause)]
        return Pauses({**self.by_id, **dict.fromkeys(chosen, pause)}), tuple(records)

    def resumed(self, ids: Iterable[str] | None) -> tuple[Pauses, tuple[MetaSet, ...]]:
        """Without the pauses of these workers, or of everything; and the settings that persist it."""
        chosen = (EVERYTHING,) if ids is None else tuple(ids)
        records = [record for id_ in chosen for record in _settings(id_, None)]
        left = {id_: pause for id_, pause in self.by_id.items() if id_ not in chosen}
        return Pauses(left), tuple(records)

    def left_ms(self, wall_ms: int) -> dict[str, int]:
        """How long each pause that ends by itself still lasts; the whole system is EVERYTHING."""
        ends = {id_: pause.until_wall_ms for id_, pause in self.by_id.items()}
        return {id_: max(0, end - wall_ms) for id_, end in ends.items() if end is not None}

    def key(self, component_id: str) -> str:
        """The id of the pause that this worker is under: its own, or that of everything."""
        return component_id if component_id in self.by_id else EVERYTHING


def _key(name: str, id_: str) -> str:
    return f"{name}:{id_}" if id_ else name


def _settings(id_: str, pause: ActivePause | None) -> list[MetaSet]:
    until = None if pause is None or pause.until_wall_ms is None else str(pause.until_wall_ms)
    # A worker that is not paused has no setting: it may be removed and never return.
    enabled = None if id_ else "true"
    return [
        MetaSet(_key(ENABLED, id_), enabled if pause is None else "false"),
        MetaSet(_key(REASON, id_), pause.reason if pause is not None and pause.reason else None),
        MetaSet(_key(UNTIL, id_), until),
    ]


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


# ── what a pause, a stop or a failure postpones ──────────────────────────────────────────


def postponed(changes: Changes, workers: Iterable[tuple[SupervisedWorker, bool]]) -> Changes:
    """The changes, with the workers named that did not get a new process; pairs of worker and is-paused."""
    kinds = [(worker.id, _awaited(worker, paused)) for worker, paused in workers]

    def waiting(kind: str) -> tuple[str, ...]:
        return tuple(id_ for id_, awaited in kinds if awaited == kind)

    return replace(
        changes,
        stays_failed=waiting("stays_failed"),
        when_resumed=waiting("when_resumed"),
        when_started=waiting("when_started"),
        when_restarted=waiting("when_restarted"),
    )


def _awaited(worker: SupervisedWorker, paused: bool) -> str | None:
    """The field of `Changes` that says when a change takes effect; None if it does now."""
    match worker.phase:
        case Failed():
            return "stays_failed"
        case _ if paused and is_resumable(worker):
            return "when_resumed"
        case Up() | Stopping(relaunch=True):
            return None
        case BackingOff() | Idle(rest=Rest.HELD):
            return "when_restarted"
        case Stopping() | Idle():
            return "when_started"


def is_resumable(worker: SupervisedWorker) -> bool:
    """Whether the worker runs after the pause; a worker that is down for another reason stays down."""
    match worker.phase:
        case Up() | Stopping(relaunch=True):
            return True
        case Idle(rest=rest) | Stopping(rest=rest):
            return rest in (Rest.PAUSED, Rest.RESET)
        case BackingOff() | Failed():
            return False


def length_refusal(for_s: float | None) -> Refused | None:
    """Why a pause cannot last that long; None if it can."""
    if for_s is None or 0 < for_s <= LONGEST_S:
        return None
    return Refused(f"a pause lasts for more than 0 and at most {LONGEST_S:g} seconds, not {for_s:g}")


def start_refusal(workers: Iterable[SupervisedWorker], pauses: Pauses, verb: str) -> Refused | None:
    """Why the first paused worker of these is not started, and what starts it."""
    held = next((worker for worker in workers if pauses.holds(worker.id)), None)
    if held is None:
        return None
    # The pause of everything first: while it lasts, one worker cannot be resumed alone.
    whose = EVERYTHING if pauses.everything else held.id
    reason = pauses.by_id[whose].reason
    why = f" ({reason})" if reason else ""
    it, scope = ("it", "") if whose else ("everything", " with everything")
    then = "to start it" if is_resumable(held) else f"first, then {verb} it"
    return Refused(f"{held.id} is paused{scope}{why}; resume {it} {then}", paused=whose)


def start_reply(workers: Sequence[SupervisedWorker], pauses: Pauses) -> Done | Refused:
    """The reply to a request to start these workers."""
    running = [isinstance(worker.phase, Up) and worker.phase.pid is not None for worker in workers]
    return start_refusal(workers, pauses, "start") or Done(already=bool(running) and all(running))


def resume_reply(workers: Iterable[SupervisedWorker], pauses: Pauses, ids: Sequence[str] | None) -> Done:
    """The reply to a request to end the pause of these workers, or of everything."""
    is_paused = any(id_ in pauses.by_id for id_ in ids or (EVERYTHING,))
    # Workers that were reset wait for a resume, too, whether anything is paused or not.
    waits = any(worker.phase == Idle(Rest.RESET) and not pauses.holds(worker.id) for worker in workers)
    return Done(already=not is_paused and not waits)
