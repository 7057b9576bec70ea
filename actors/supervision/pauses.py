"""Pure: what is paused, why, until when, and how that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from ..facts.records import MetaSet

ENABLED = "worker_enabled"
"""The setting that holds a pause of everything; `worker_enabled:ID` holds that of one worker."""
REASON = "pause_reason"
UNTIL = "pause_until_wall_ms"

EVERYTHING = ""
"""Stands among ids for the whole system."""


class Pause(msgspec.Struct, frozen=True):
    """One pause; without an end it lasts until somebody resumes."""

    reason: str = ""
    until_wall_ms: int | None = None


class Pauses(msgspec.Struct, frozen=True):
    """Which workers are held back."""

    by_id: Mapping[str, Pause] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_meta(cls, meta: Mapping[str, str]) -> Pauses:
        """What a former run left: a setting that is absent means enabled."""
        off = [key for key, value in meta.items() if value.strip().lower() == "false"]
        ids = [id_ for key in off if key.partition(":")[0] == ENABLED for id_ in [key.partition(":")[2]]]
        return cls(
            {id_: Pause(meta.get(_key(REASON, id_), ""), _number(meta.get(_key(UNTIL, id_)))) for id_ in ids}
        )

    @property
    def everything(self) -> bool:
        """Whether the whole system is paused."""
        return EVERYTHING in self.by_id

    def of(self, component_id: str) -> Pause | None:
        """The pause that holds this worker back, its own before that of everything."""
        return self.by_id.get(component_id) or self.by_id.get(EVERYTHING)

    def holds(self, component_id: str) -> bool:
        """Whether this worker is held back."""
        return component_id in self.by_id or EVERYTHING in self.by_id

    def paused(self, ids: Iterable[str] | None, pause: Pause) -> tuple[Pauses, tuple[MetaSet, ...]]:
        """With these workers, or everything, paused; and the settings that keep it."""
        chosen = (EVERYTHING,) if ids is None else tuple(ids)
        records = [record for id_ in chosen for record in _settings(id_, pause)]
        return Pauses({**self.by_id, **dict.fromkeys(chosen, pause)}), tuple(records)

    def resumed(self, ids: Iterable[str] | None) -> tuple[Pauses, tuple[MetaSet, ...]]:
        """Without the pauses of these workers, or of everything; and the settings that keep it."""
        chosen = (EVERYTHING,) if ids is None else tuple(ids)
        records = [record for id_ in chosen for record in _settings(id_, None)]
        left = {id_: pause for id_, pause in self.by_id.items() if id_ not in chosen}
        return Pauses(left), tuple(records)

    def left_ms(self, wall_ms: int) -> dict[str, int]:
        """How long each pause that ends by itself still lasts; the whole system is EVERYTHING."""
        ends = {id_: pause.until_wall_ms for id_, pause in self.by_id.items()}
        return {id_: max(0, end - wall_ms) for id_, end in ends.items() if end is not None}

    def key(self, component_id: str) -> str:
        """Whose pause holds this worker back: its own, or that of everything."""
        return component_id if component_id in self.by_id else EVERYTHING


def _key(name: str, id_: str) -> str:
    return f"{name}:{id_}" if id_ else name


def _settings(id_: str, pause: Pause | None) -> list[MetaSet]:
    until = None if pause is None or pause.until_wall_ms is None else str(pause.until_wall_ms)
    # Of a worker that is not paused nothing is kept: it may be removed, and come back never.
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
