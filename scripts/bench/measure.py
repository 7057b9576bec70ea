"""Kills the workers of several supervisors, and summarises the times of the restarts.

The supervisors are measured by turns, each with workers that already run: a machine that is slower for
a while is slower for all of them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .arena import Arena, Revival

SETTLE_S = 0.03
"""Between two kills, so that the supervisor is idle at each one: it has persisted and published a start
at most 20 ms later."""

MASS_SETTLE_S = 0.1
"""The same when all workers are killed at once."""

_BLOCK = 25
"""Kills in a row before the turn of the next supervisor."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Many times of one kind, in milliseconds."""

    median_ms: float
    p99_ms: float
    samples: int

    @classmethod
    def of(cls, nanoseconds: Sequence[int]) -> Summary:
        """Summarise; the 99th percentile is the smallest sample that is not below 99 % of them."""
        ordered = sorted(nanoseconds)
        rank = -(-99 * len(ordered) // 100)
        return cls(statistics.median(ordered) / 1e6, ordered[rank - 1] / 1e6, len(ordered))


@dataclass(frozen=True, slots=True)
class Row:
    """Single kills among this many workers, each measured from SIGKILL."""

    workers: int
    running: Summary
    """Until the next incarnation's first instruction."""
    seen: Summary
    """Until the supervisor noticed the death."""
    again: Summary
    """The same as `running` for that incarnation, which is killed as soon as it runs."""


def single_kills(
    arenas: Sequence[Arena], rounds: int, *, seed: int = 0, settle_s: float = SETTLE_S
) -> tuple[Row, ...]:
    """Kill one worker after another, in a random order, each twice: idle, and as soon as it runs again."""
    order = random.Random(seed)
    revivals: list[list[tuple[Revival, Revival]]] = [[] for _ in arenas]
    for arena in arenas:
        arena.wait_until_all_run()
    for done in range(0, rounds, _BLOCK):
        for arena, results in zip(arenas, revivals, strict=True):
            for _ in range(min(_BLOCK, rounds - done)):
                time.sleep(settle_s)
                slot = order.randrange(arena.slots)
                results.append((arena.kill_and_wait(slot), arena.kill_and_wait(slot)))
    return tuple(_row(arena.slots, results) for arena, results in zip(arenas, revivals, strict=True))


def _row(workers: int, revivals: Sequence[tuple[Revival, Revival]]) -> Row:
    return Row(
        workers,
        Summary.of([first.running_ns for first, _ in revivals]),
        Summary.of([first.seen_ns for first, _ in revivals]),
        Summary.of([second.running_ns for _, second in revivals]),
    )


def mass_kills(arenas: Sequence[Arena], rounds: int) -> tuple[Summary, ...]:
    """Kill all workers at once, repeatedly; each time is until the last one runs again."""
    times: list[list[int]] = [[] for _ in arenas]
    for arena in arenas:
        arena.wait_until_all_run()
    for _ in range(rounds):
        for arena, results in zip(arenas, times, strict=True):
            time.sleep(MASS_SETTLE_S)
            results.append(arena.kill_all_and_wait())
    return tuple(Summary.of(results) for results in times)
