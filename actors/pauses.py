"""Pure: what is paused, as it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .records import MetaSet

ENABLED = "worker_enabled"
"""The setting that holds a pause of everything; `worker_enabled:ID` holds that of one worker."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Which workers are held back."""

    everything: bool = False
    workers: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def from_meta(cls, meta: Mapping[str, str]) -> Pauses:
        """What a former run left: a setting that is absent means enabled."""
        off = {key for key, value in meta.items() if value.strip().lower() == "false"}
        prefix = f"{ENABLED}:"
        return cls(
            ENABLED in off, frozenset(key.removeprefix(prefix) for key in off if key.startswith(prefix))
        )

    def holds(self, component_id: str) -> bool:
        """Whether this worker is held back."""
        return self.everything or component_id in self.workers

    def changed(self, ids: Iterable[str] | None, *, paused: bool) -> tuple[Pauses, tuple[MetaSet, ...]]:
        """With these workers, or everything, paused or not; and the settings that keep it."""
        value = "false" if paused else "true"
        if ids is None:
            return Pauses(paused, self.workers), (MetaSet(ENABLED, value),)
        chosen = frozenset(ids)
        workers = self.workers | chosen if paused else self.workers - chosen
        records = tuple(MetaSet(f"{ENABLED}:{id_}", value) for id_ in sorted(chosen))
        return Pauses(self.everything, workers), records
