"""Compares the code of two checkouts, measured by turns on the same machine.

Each turn measures both, and the order alternates: a machine that is slower for a while is slower for
both. Each turn gives a ratio; below 1, this checkout is faster, or smaller, than the other one. Their
median counts. The range beside it is the middle half of them: if it includes 1, the difference is within
the noise.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from .arena import Arena
from .checkout import Checkout
from .floor import Programs, fresh_arena
from .footprint import idle, pss_mb
from .measure import MASS_SETTLE_S, SETTLE_S, Summary
from .parts.events import Clients, kills_at_clients, streaming
from .parts.restarts import MASS
from .parts.supervisor import HEARTBEAT_S, running_rekindle

KILLS = 25
"""Single kills in one turn, which counts as their median."""
_FEW_TURNS = 3
"""For measurements that take long and vary little: storms and memory."""
_CHAOS = (
    "import dataclasses, json; from scripts.bench.storm import measure_chaos; "
    "print(json.dumps(dataclasses.asdict(measure_chaos(rounds=1))))"
)
HEADING = f"{'':<46}{'other':>10}{'this':>10}{'':<6}{'ratio':>6}"

Sides = tuple[Checkout, Checkout]
"""The other checkout, and this one."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of both checkouts, one value for each turn; less is better."""

    what: str
    unit: str
    other: tuple[float, ...]
    this: tuple[float, ...]

    def line(self) -> str:
        """Both medians, then the median and the middle half of the ratios of the turns."""
        ratios = sorted(this / other for other, this in zip(self.other, self.this, strict=True))
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        other, this = statistics.median(self.other), statistics.median(self.this)
        figures = f"{other:>10.2f}{this:>10.2f} {self.unit:<5}{statistics.median(ratios):>6.2f}"
        return f"{self.what:<46}{figures}  ({low:.2f} to {high:.2f} in {len(ratios)} turns)"


def _turns(measures: Sequence[Callable[[], T]], turns: int) -> tuple[list[T], list[T]]:
    """Measure both sides in every turn: the other checkout first in even ones, this one in odd ones."""
    values: tuple[list[T], list[T]] = ([], [])
    for turn in range(max(1, turns)):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            values[side].append(measures[side]())
    return values


def _times(what: str, measures: Sequence[Callable[[], float]], turns: int) -> Comparison:
    other, this = _turns(measures, turns)
    return Comparison(what, "ms", tuple(other), tuple(this))


def _figures(unit: str, measures: Sequence[Callable[[], dict[str, float]]]) -> Iterator[Comparison]:
    """The comparisons of measurements that return several figures by name."""
    other, this = _turns(measures, _FEW_TURNS)
    for what in other[0]:
        yield Comparison(what, unit, tuple(each[what] for each in other), tuple(each[what] for each in this))


def compare_restarts(sides: Sides, built: Programs, *, rounds: int, mass_rounds: int) -> Iterator[Comparison]:
    """From SIGKILL to running again: single kills among 1, 10 and 100 workers, then 100 at once."""
    for workers in (1, 10, 100):
        with ExitStack() as stack:
            arenas = [_supervised(stack, side, built, workers) for side in sides]
            measures = [partial(_single_kills, arena) for arena in arenas]
            yield _times(f"kill -> running again, workers: {workers}", measures, rounds // KILLS)
    with ExitStack() as stack:
        arenas = [_supervised(stack, side, built, MASS) for side in sides]
        measures = [partial(_mass_kill, arena) for arena in arenas]
        yield _times(f"{MASS} killed at once -> all running", measures, mass_rounds)


def _supervised(stack: ExitStack, side: Checkout, built: Programs, workers: int) -> Arena:
    arena = stack.enter_context(fresh_arena(workers))
    stack.enter_context(running_rekindle(built, arena, code=side))
    return arena


def _single_kills(arena: Arena) -> float:
    order, times = random.Random(0), []
    for _ in range(KILLS):
        time.sleep(SETTLE_S)
        times.append(arena.kill_and_wait(order.randrange(arena.slots)).running_ns)
    return Summary.of(times).median_ms


def _mass_kill(arena: Arena) -> float:
    time.sleep(MASS_SETTLE_S)
    return arena.kill_all_and_wait() / 1e6


def compare_events(sides: Sides, built: Programs, *, rounds: int) -> Iterator[Comparison]:
    """From SIGKILL to the event at one client."""
    with ExitStack() as stack:
        measures = []
        for side in sides:
            arena = stack.enter_context(fresh_arena(10))
            port = stack.enter_context(streaming(built, arena, side))
            measures.append(partial(_events, arena, port))
        yield _times("kill -> event at one client", measures, rounds // KILLS)


def _events(arena: Arena, port: int) -> float:
    return kills_at_clients(arena, Clients(port, 1), KILLS, every_s=SETTLE_S)[0].median_ms


def compare_chaos(sides: Sides) -> Iterator[Comparison]:
    """CPU time of storms, scenarios and moves at random in virtual time, the rules checked."""
    yield from _figures("s CPU", [partial(_chaos, side) for side in sides])


def _chaos(side: Checkout) -> dict[str, float]:
    figures = json.loads(side.output("-c", _CHAOS))
    storms = {f"storm: {each['name']}": each["cpu_s"] for each in figures["storms"]}
    return {
        **storms,
        "100 scenarios of the library": 100 * figures["scenarios_cpu_s"] / figures["scenarios"],
        "1000 moves at random": 1000 * figures["moves_cpu_s"] / figures["moves"],
    }


def compare_costs(sides: Sides, built: Programs) -> Iterator[Comparison]:
    """Memory (PSS) with 100 workers that send heartbeats."""
    yield from _figures("MB", [partial(_memory, side, built) for side in sides])


def _memory(side: Checkout, built: Programs) -> dict[str, float]:
    with fresh_arena(MASS) as arena, running_rekindle(built, arena, HEARTBEAT_S, side) as pid:
        idle(pid, 3.0)
        fresh = pss_mb(pid)
        arena.kill_each_and_wait()
        return {"memory, 100 workers": fresh, "memory, each worker restarted once": pss_mb(pid)}
