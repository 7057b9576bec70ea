"""How long no worker is watched while a supervisor is upgraded, beside the time in which Python loads it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.nemesis.upgrades import run

LOAD = "import rekindle.cli.supervise.runner, rekindle.persistence.store_opener"


@dataclass(frozen=True, slots=True)
class UpgradeFigures:
    """The figures of upgrades with one number of workers."""

    workers: int
    upgrades: int
    blind_ms: float
    """The median."""
    longest_ms: float
    load_ms: float
    """How long an interpreter takes to load the same program in this run, the median."""


def measure_upgrades(workers: int = 200, times: int = 10) -> UpgradeFigures:
    """Upgrade a supervisor this often.

    Raises:
        RuntimeError: an upgrade broke a promise.
    """
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as folder:
        result = run(Path(folder), times, workers, 1, lambda _: None)
    if result.violations or not result.blind_ms:
        raise RuntimeError("; ".join(result.violations) or "no upgrade was possible")
    load = statistics.median(_load_ms() for _ in range(5))
    blind = result.blind_ms
    return UpgradeFigures(workers, len(blind), statistics.median(blind), max(blind), load)


def upgrade_line(figures: UpgradeFigures) -> str:
    """The figures in words."""
    return (
        f"{figures.upgrades} upgrades with {figures.workers} workers: blind for {figures.blind_ms:.0f} ms"
        f" (longest {figures.longest_ms:.0f}); Python loads the program in {figures.load_ms:.0f} ms"
    )


def _load_ms() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", LOAD], check=True)
    return (time.monotonic() - began) * 1000
