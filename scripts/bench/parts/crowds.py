"""What grows with the number of workers: one death among ten and among 3,000, and all killed at once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ..arena import Arena
from ..floor import Programs, fresh_arena, running_floor
from ..measure import Row, Summary, mass_kills, single_kills
from .supervisor import running_rekindle

FEW, MANY = 10, 3000
CROWDS = {100: 10, 1000: 3, 3000: 3}
"""How many workers are killed at once, and how often."""
DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """All killed at once, by turns."""

    workers: int
    floor: Summary
    rekindle: Summary


@dataclass(frozen=True, slots=True)
class CrowdFigures:
    """The figures."""

    few: Row
    many: Row
    """Single kills among many, by turns with those among few."""
    crowds: tuple[Crowd, ...]


def measure_crowds(built: Programs, rounds: int) -> CrowdFigures:
    """Measure all of it."""
    with ExitStack() as stack:
        few, many = single_kills([_supervised(stack, built, count) for count in (FEW, MANY)], rounds)
    return CrowdFigures(few, many, tuple(_killed(built, count, often) for count, often in CROWDS.items()))


def _killed(built: Programs, workers: int, rounds: int) -> Crowd:
    with ExitStack() as stack:
        arenas = _floored(stack, built, workers), _supervised(stack, built, workers)
        return Crowd(workers, *mass_kills(arenas, rounds))


def _supervised(stack: ExitStack, built: Programs, workers: int) -> Arena:
    arena = stack.enter_context(fresh_arena(workers, deadline_s=DEADLINE_S))
    stack.enter_context(running_rekindle(built, arena))
    return arena


def _floored(stack: ExitStack, built: Programs, workers: int) -> Arena:
    arena = stack.enter_context(fresh_arena(workers, deadline_s=DEADLINE_S))
    stack.enter_context(running_floor(built, arena))
    return arena


def crowd_lines(figures: CrowdFigures) -> list[str]:
    """The figures for people."""
    base = figures.few.running.median_ms
    lines = [f"{'kill -> running again, ms, median (p99)':<44}{'':>20}{'ratio':>8}"]
    for row in (figures.few, figures.many):
        cell = f"{row.running.median_ms:.2f} ({row.running.p99_ms:.2f})"
        lines.append(f"{f'one of {row.workers:,} workers':<44}{cell:>20}{row.running.median_ms / base:>8.2f}")
    lines.append(f"{'all killed at once -> all running, ms':<44}{'floor':>10}{'Rekindle':>10}{'ratio':>8}")
    for crowd in figures.crowds:
        floor, ours = crowd.floor.median_ms, crowd.rekindle.median_ms
        lines.append(f"{f'{crowd.workers:,} workers':<44}{floor:>10.0f}{ours:>10.0f}{ours / floor:>8.2f}")
    return lines
