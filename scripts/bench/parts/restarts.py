"""How soon killed workers run again under Rekindle, and under the floor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..arena import Arena
from ..floor import Programs, fresh_arena, running_floor
from ..measure import Row, Summary, mass_kills, single_kills
from .supervisor import running_rekindle

MASS = 100


@dataclass(frozen=True, slots=True)
class Pair:
    """Single kills among the same number of workers, by turns."""

    floor: Row
    rekindle: Row


@dataclass(frozen=True, slots=True)
class RestartFigures:
    """The figures of restarts."""

    kind: str
    """Of the floor and the worker: `c` or `python`."""
    single: tuple[Pair, ...]
    mass_floor: Summary
    """A hundred killed at once."""
    mass: Summary


def measure_restarts(
    built: Programs, *, counts: Sequence[int] = (1, 10, 100), rounds: int = 300, mass_rounds: int = 20
) -> RestartFigures:
    """Measure single kills among each number of workers, then mass kills."""
    pairs = []
    for count in counts:
        with _side_by_side(built, count) as arenas:
            pairs.append(Pair(*single_kills(arenas, rounds)))
    with _side_by_side(built, MASS) as arenas:
        mass_floor, mass = mass_kills(arenas, mass_rounds)
    return RestartFigures(built.kind, tuple(pairs), mass_floor, mass)


@contextmanager
def _side_by_side(built: Programs, workers: int) -> Iterator[tuple[Arena, Arena]]:
    with (
        fresh_arena(workers) as floor,
        running_floor(built, floor),
        fresh_arena(workers) as rekindle,
        running_rekindle(built, rekindle),
    ):
        yield floor, rekindle
