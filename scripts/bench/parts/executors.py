"""How fast executors pass tasks to their processes: Rekindle's beside others, by turns.

Every executor has two processes, which are started before anything is measured. loky and pebble take part if
they are installed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rekindle.actors import RekindleExecutor

from ..measure import Summary

WORKERS = 2
TURNS = 5
TASKS = 2000
SINGLE_TASKS = 200
BLOCKS = 6
BLOCK = os.urandom(10_000_000)

Submit = Callable[..., "Future[Any]"]


@dataclass(frozen=True, slots=True)
class ExecutorFigures:
    """What one executor did."""

    name: str
    tasks_per_s: float
    """Tasks that do nothing, all submitted at once: the median of the turns."""
    latency: Summary
    """One task at a time, from `submit` to its result."""
    block_ms: float
    """10 MB as argument and result, one task at a time: the median."""


def measure_executors() -> tuple[list[ExecutorFigures], list[str]]:
    """The figures of the executors that are installed, and the names of the others."""
    missing: list[str] = []
    with ExitStack() as stack:
        sides: dict[str, Submit] = {}
        for name, opened in EXECUTORS.items():
            try:
                sides[name] = stack.enter_context(opened())
            except ImportError:
                missing.append(name)
        return _by_turns(sides), missing


def executor_table(figures: list[ExecutorFigures], missing: list[str]) -> str:
    """The figures, with the ratio of Rekindle's to the best."""
    lines = [f"{'':<22}{'no-op tasks/s':>16}{'one task, ms (p99)':>22}{'10 MB and back, ms':>22}"]
    for each in figures:
        latency = f"{each.latency.median_ms:.2f} ({each.latency.p99_ms:.2f})"
        lines.append(f"{each.name:<22}{each.tasks_per_s:>16,.0f}{latency:>22}{each.block_ms:>22.1f}")
    ours, *others = figures
    rate = max(each.tasks_per_s for each in others) / ours.tasks_per_s
    latency_ratio = ours.latency.median_ms / min(each.latency.median_ms for each in others)
    block = ours.block_ms / min(each.block_ms for each in others)
    lines.append(f"{'Rekindle to the best':<22}{rate:>16.2f}{latency_ratio:>22.2f}{block:>22.2f}")
    return "\n".join([*lines, *(f"not installed: {name}" for name in missing)])


def _by_turns(sides: dict[str, Submit]) -> list[ExecutorFigures]:
    rates: dict[str, list[float]] = {name: [] for name in sides}
    singles: dict[str, list[int]] = {name: [] for name in sides}
    blocks: dict[str, list[int]] = {name: [] for name in sides}
    for _ in range(TURNS):
        for name, submit in sides.items():
            rates[name].append(TASKS / (_elapsed_ns(lambda submit=submit: _all_at_once(submit)) / 1e9))  # type: ignore[misc]
            singles[name] += _one_at_a_time(submit, SINGLE_TASKS, noop)
            blocks[name] += _one_at_a_time(submit, BLOCKS, same, BLOCK)
    return [
        ExecutorFigures(
            name,
            statistics.median(rates[name]),
            Summary.of(singles[name]),
            statistics.median(blocks[name]) / 1e6,
        )
        for name in sides
    ]


def _all_at_once(submit: Submit) -> None:
    for future in [submit(noop) for _ in range(TASKS)]:
        future.result()


def _one_at_a_time(submit: Submit, count: int, function: Callable[..., object], *args: object) -> list[int]:
    return [_elapsed_ns(lambda: submit(function, *args).result()) for _ in range(count)]


def _elapsed_ns(call: Callable[[], object]) -> int:
    since = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - since


# ── the executors ────────────────────────────────────────────────────────────────────────


@contextmanager
def _rekindle() -> Iterator[Submit]:
    with RekindleExecutor(WORKERS) as executor:
        yield _warmed_up(executor.submit)


@contextmanager
def _standard() -> Iterator[Submit]:
    with ProcessPoolExecutor(WORKERS) as executor:
        yield _warmed_up(executor.submit)


@contextmanager
def _loky() -> Iterator[Submit]:
    with import_module("loky").ProcessPoolExecutor(WORKERS) as executor:
        yield _warmed_up(executor.submit)


@contextmanager
def _pebble() -> Iterator[Submit]:
    with import_module("pebble").ProcessPool(WORKERS) as pool:
        yield _warmed_up(lambda function, *args: pool.schedule(function, args=args))


def _warmed_up(submit: Submit) -> Submit:
    for future in [submit(time.sleep, 0.1) for _ in range(2 * WORKERS)]:
        future.result()
    return submit


EXECUTORS = {
    "RekindleExecutor": _rekindle,
    "ProcessPoolExecutor": _standard,
    "loky": _loky,
    "pebble": _pebble,
}


def noop() -> None:
    """Do nothing."""


def same(data: bytes) -> bytes:
    """Return the argument."""
    return data
