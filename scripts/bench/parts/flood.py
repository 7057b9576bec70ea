"""A worker that floods its log file: how fast it can write, and whether another one restarts as quickly.

The floor of the writing is `cat > file`, that of the restart is the same worker without a flood beside it.
All are measured by turns.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors import LogPolicy, Status, System, WorkerSpec, command
from rekindle.actors.messages import Event, LogResumed
from rekindle.persistence import MemoryStore

from ..supervised import AT_ONCE
from .output import PATIENCE_S, TURNS, writer

KILLS = 20
"""How often the quiet worker is killed without a flood beside it, in each turn."""


@dataclass(frozen=True, slots=True)
class FloodFigures:
    """Medians, in MB/s and ms."""

    cat_mb_s: float
    logged_mb_s: float
    """Into a log file that is rotated and compressed."""
    dropped: int
    """How many lines are missing in the log files."""
    alone_ms: float
    """From SIGKILL of a quiet worker until it runs again, while no other one writes."""
    beside_ms: float
    """The same beside the flood."""


def measure_flood() -> FloodFigures:
    """Measure all by turns."""
    cat, logged, alone, beside, dropped = [], [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            cat.append(_cat(Path(folder, f"cat-{turn}")))
            alone += _alone()
            rate, times, lost = _logged(Path(folder, f"logged-{turn}"))
            logged.append(rate)
            beside += times
            dropped += lost
    medians = (statistics.median(times) for times in (alone, beside))
    return FloodFigures(statistics.median(cat), statistics.median(logged), dropped, *medians)


def flood_line(figures: FloodFigures) -> str:
    """The figures as a sentence."""
    return (
        f"a worker that floods its log file: {figures.logged_mb_s:.0f} MB/s, cat > file"
        f" {figures.cat_mb_s:.0f} MB/s, ratio {figures.logged_mb_s / figures.cat_mb_s:.2f}, {figures.dropped}"
        f" lines dropped; another worker restarts in {figures.beside_ms:.1f} ms beside it and in"
        f" {figures.alone_ms:.1f} ms alone, ratio {figures.beside_ms / figures.alone_ms:.1f}"
    )


def _cat(answer: Path) -> float:
    with (
        answer.with_suffix(".out").open("wb") as file,
        subprocess.Popen(writer(answer, 0), stdout=subprocess.PIPE) as process,
        subprocess.Popen(["cat"], stdin=process.stdout, stdout=file),
    ):
        pass
    answer.with_suffix(".out").unlink()
    return float(answer.read_text())


class _Dropped:
    """Counts the lines that are missing in log files."""

    def __init__(self) -> None:
        self.lines = 0

    def tell(self, message: Event) -> None:
        """Receive an event."""
        if isinstance(message, LogResumed):
            self.lines += message.dropped


def _quiet() -> WorkerSpec:
    return WorkerSpec("quiet", command("sleep", "1000"), restart=AT_ONCE)


def _alone() -> list[float]:
    with System([_quiet()], store=MemoryStore()) as system:
        return [_restart_ms(system) for _ in range(KILLS)]


def _logged(answer: Path) -> tuple[float, list[float], int]:
    log = LogPolicy(file=str(answer.with_suffix(".log")), keep=1)
    specs = [WorkerSpec("writer", command(*writer(answer, 1000)), log=log), _quiet()]
    times: list[float] = []
    with System(specs, store=MemoryStore()) as system:
        dropped = _Dropped()
        system.subscribe(dropped)
        while not answer.exists():
            times.append(_restart_ms(system))
    return float(answer.read_text()), times, dropped.lines


def _restart_ms(system: System) -> float:
    quiet = system.wait_for("quiet", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert quiet.pid is not None
    since = time.perf_counter()
    os.kill(quiet.pid, signal.SIGKILL)
    system.wait_until(
        "quiet", lambda now: now.generation > quiet.generation and now.pid is not None, PATIENCE_S
    )
    return (time.perf_counter() - since) * 1000
