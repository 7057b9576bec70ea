"""The policies of your workers on a virtual clock: the real supervisor, scripted workers, no waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rekindle.actors import WorkerSpec
from rekindle.actors.simulation import (
    Behaviour,
    History,
    Outcome,
    Role,
    Scenario,
    VirtualSystem,
    lines,
    run_virtual,
)
from rekindle.persistence import MemoryStore

from .failure_report import LAST

Lives = Behaviour | Sequence[Behaviour] | Mapping[str, Behaviour | Sequence[Behaviour]]
"""What all workers do, in every life or in one after the other; or a mapping from ids to that."""


LIVES_ON = Behaviour()


def scenario_of(workers: Iterable[WorkerSpec | Scenario], lives: Lives = LIVES_ON) -> Scenario:
    """A scenario with these workers, each with these lives; or the scenario itself.

    Raises:
        ValueError: a scenario was given together with something else.
    """
    given = tuple(workers)
    if len(given) == 1 and isinstance(given[0], Scenario):
        return given[0]
    specs = [each for each in given if isinstance(each, WorkerSpec)]
    if len(specs) != len(given):
        raise ValueError("pass either one scenario or the specs of workers")
    return Scenario("test", roles=tuple(Role(spec, _lives_of(spec.id, lives)) for spec in specs))


def _lives_of(id_: str, lives: Lives) -> tuple[Behaviour, ...]:
    own = lives.get(id_, LIVES_ON) if isinstance(lives, Mapping) else lives
    return (own,) if isinstance(own, Behaviour) else tuple(own)


class VirtualTime:
    """Starts systems in virtual time; the fixture `virtual_time`."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._systems: list[VirtualSystem] = []

    def __call__(self, *workers: WorkerSpec | Scenario, lives: Lives = LIVES_ON) -> VirtualSystem:
        """Start these workers, or the workers of a scenario.

        Args:
            workers: specs of workers, whose policies apply and whose programs do not run; or a scenario.
            lives: what the workers do instead, in the words of `rekindle.actors.simulation`.
        """
        system = VirtualSystem(scenario_of(workers, lives), self._seed, store=MemoryStore())
        self._systems.append(system)
        return system

    def close(self) -> None:
        """End every system."""
        while self._systems:
            self._systems.pop().close()

    def sections(self) -> Iterator[tuple[str, str]]:
        """What happened, for the report of a failed test."""
        for system in self._systems:
            yield from sections_of(system.history, system.scenario.ids)
            if system.violations:
                yield "rekindle: violated invariants", "\n".join(str(each) for each in system.violations)


def play(scenario: Scenario, seed: int) -> Outcome:
    """Run a whole scenario under a seed."""
    return run_virtual(scenario, seed, store=MemoryStore())


def sections_of(history: History, ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The last entries of each worker in a history."""
    for id_ in ids:
        own = [each for each in history if getattr(each, "worker", None) == id_]
        yield f"rekindle: {id_} in virtual time", "\n".join(list(lines(own, every=False))[-LAST:])
