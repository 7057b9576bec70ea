"""From SIGKILL to the first line of a Python function: executed, forked from a warm process, and on standby.

Beside the floor, which executes a program in C. Behind the runner of Rekindle, the function imports nothing:
the imports of an application come on top where it is executed, and nowhere else.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ..arena import Arena
from ..checkout import THIS
from ..floor import Programs, fresh_arena, running_floor
from ..measure import Row, single_kills

SETTLE_S = 0.1
"""Between two kills: a standby is replaced at most 50 ms after it was used."""

KINDS = {"executed": "--python", "warm": "--warm", "standby": "--standby"}
"""How Python workers are started, and the argument of `supervised` that asks for it."""


@dataclass(frozen=True, slots=True)
class WarmFigures:
    """Single kills, by turns."""

    floor: Row
    executed: Row
    warm: Row
    standby: Row


def measure_warm(built: Programs, rounds: int, workers: int = 1) -> WarmFigures:
    """Measure single kills of each kind of worker."""
    with ExitStack() as stack:
        floor = stack.enter_context(fresh_arena(workers))
        stack.enter_context(running_floor(built, floor))
        arenas = [floor, *(_supervised(stack, workers, option) for option in KINDS.values())]
        return WarmFigures(*single_kills(arenas, rounds, settle_s=SETTLE_S))


def _supervised(stack: ExitStack, workers: int, option: str) -> Arena:
    arena = stack.enter_context(fresh_arena(workers))
    stack.enter_context(THIS.supervising("supervised", arena, "0", option))
    return arena


def warm_lines(figures: WarmFigures) -> list[str]:
    """The figures for people."""
    floor = figures.floor.running.median_ms
    rows = {"floor, a C program": figures.floor}
    rows |= {f"Rekindle, Python, {kind}": getattr(figures, kind) for kind in KINDS}
    lines = [f"{'kill -> first line, ms, median (p99)':<44}{'':>18}{'ratio':>8}{'again':>10}"]
    for what, row in rows.items():
        cell = f"{row.running.median_ms:.2f} ({row.running.p99_ms:.2f})"
        lines.append(f"{what:<44}{cell:>18}{row.running.median_ms / floor:>8.2f}{row.again.median_ms:>10.2f}")
    return lines
