"""Pure: a rollout has a ready process in place of each that it replaces, and only its spares beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..scenarios.history import Announced, Ended, Spawned, SpawnRefused, SupervisorStarted
from .promise import Promise

LONGEST_S = 600.0
"""A rollout of one worker ends within this time, whatever happens to it."""


@dataclass(slots=True)
class _Rollout:
    """A rollout under way, as its events tell of it."""

    workers: tuple[str, ...]
    spares: tuple[str, ...]
    ready: set[str] = field(default_factory=set)
    living: set[str] = field(default_factory=set)


class Rollouts(Promise):
    """No worker is replaced unless a spare is ready for it; spares exist only during a rollout."""

    rule: ClassVar[str] = "a rollout has no gap"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._under_way: list[_Rollout] = []

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is announced of rollouts, and the lives of spares."""
        return {
            SupervisorStarted: lambda _entry: self._under_way.clear(),
            Announced: self._announced,
            Spawned: self._spawned,
            SpawnRefused: self._spawned,
            Ended: self._ended,
        }

    def _spawned(self, entry: Spawned | SpawnRefused) -> Iterator[str]:
        if entry.worker in self.facts.workers:
            return
        rollout = self._of_spare(entry.worker)
        if rollout is None:
            yield f"{entry.worker} starts, which is not a worker and not a spare of a rollout"
        elif isinstance(entry, Spawned):
            if entry.worker in rollout.living:
                yield f"{entry.worker} starts while another process of it lives"
            rollout.living.add(entry.worker)

    def _ended(self, entry: Ended) -> None:
        rollout = self._of_spare(entry.worker)
        if rollout is not None:
            rollout.living.discard(entry.worker)
            rollout.ready.discard(entry.worker)

    def _announced(self, entry: Announced) -> Iterator[str]:
        match entry.event:
            case "rollout_started":
                begun = _Rollout(_ids(entry.old), _ids(entry.about))
                self._under_way.append(begun)
                self.by(begun.spares, entry.at + LONGEST_S, lambda: self._endless(begun))
            case "status_changed" if (rollout := self._of_spare(entry.worker)) is not None:
                (rollout.ready.add if entry.new == "healthy" else rollout.ready.discard)(entry.worker or "")
            case "rollout_advanced" if entry.new == "replace":
                yield from self._replaced(_ids(entry.about))
            case "rollout_ended":
                yield from self._over()
            case _:
                pass

    def _replaced(self, workers: tuple[str, ...]) -> Iterator[str]:
        rollout = next((each for each in self._under_way if {*workers} <= {*each.workers}), None)
        if rollout is None:
            yield f"{', '.join(workers)} is replaced without a rollout"
        elif len(rollout.ready) < len(workers) and not self.facts.an_actor_raised:
            yield f"{', '.join(workers)} is replaced while {len(rollout.ready)} spares are ready"

    def _over(self) -> Iterator[str]:
        """The one that has ended is the one whose spares are gone."""
        gone = [each for each in self._under_way if not each.living]
        if not gone and not self.facts.an_actor_raised:
            left = [id_ for each in self._under_way for id_ in each.living]
            yield f"a rollout is over and its spares are left: {', '.join(left)}"
        for rollout in gone[:1]:
            self._under_way.remove(rollout)
            self.done(rollout.spares)

    def _endless(self, rollout: _Rollout) -> str | None:
        return (
            f"the rollout of {', '.join(rollout.workers)} does not end"
            if rollout in self._under_way
            else None
        )

    def _of_spare(self, id_: str | None) -> _Rollout | None:
        return next((each for each in self._under_way if id_ in each.spares), None)


def _ids(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))
