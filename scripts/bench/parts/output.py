"""How fast a worker can write: through a plain pipe into a file, and under Rekindle, by turns.

Another worker is killed meanwhile, to see whether the output delays its restart.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from loguru import logger

from rekindle.actors import Status, System, WorkerSpec, command
from rekindle.persistence import MemoryStore

from ..supervised import AT_ONCE

MEGABYTES = 1000
TURNS = 3
PATIENCE_S = 300.0

WRITER = """
import os, sys, time
block, written, since = (b"x" * 99 + b"\\n") * 80, 0, time.perf_counter()
while written < int(sys.argv[1]) * 1_000_000:
    written += os.write(1, block)
rate = written / (time.perf_counter() - since) / 1e6
with open(sys.argv[2] + ".part", "w") as file:
    file.write(str(rate))
os.rename(sys.argv[2] + ".part", sys.argv[2])
time.sleep(float(sys.argv[3]))
"""


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """Medians, in MB/s and ms."""

    plain_mb_s: float
    rekindle_mb_s: float
    restart_ms: float
    """From SIGKILL of a quiet worker until it runs again, while another one writes."""


def measure_output() -> OutputFigures:
    """Measure both by turns."""
    logger.enable("rekindle")
    logger.remove()
    plain, rekindle, restarts = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        logger.add(Path(folder, "log"), format="{message}")
        for turn in range(TURNS):
            plain.append(_plain(Path(folder, f"plain-{turn}")))
            rate, times = _supervised(Path(folder, f"rekindle-{turn}"))
            rekindle.append(rate)
            restarts += times
        logger.remove()
    return OutputFigures(statistics.median(plain), statistics.median(rekindle), statistics.median(restarts))


def line(figures: OutputFigures) -> str:
    """The figures as a sentence."""
    ratio = figures.rekindle_mb_s / figures.plain_mb_s
    return (
        f"output of one worker in lines of 100 bytes: {figures.rekindle_mb_s:.0f} MB/s, a plain pipe to a"
        f" file {figures.plain_mb_s:.0f} MB/s, ratio {ratio:.2f}; another worker restarts in"
        f" {figures.restart_ms:.1f} ms meanwhile"
    )


def writer(answer: Path, stay_s: int) -> list[str]:
    """A command that writes as fast as it can, and then its rate into a file."""
    return [sys.executable, "-c", WRITER, str(MEGABYTES), str(answer), str(stay_s)]


def _plain(answer: Path) -> float:
    with (
        answer.with_suffix(".out").open("wb") as file,
        subprocess.Popen(writer(answer, 0), stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 65536):
            file.write(data)
    answer.with_suffix(".out").unlink()
    return float(answer.read_text())


def _supervised(answer: Path) -> tuple[float, list[float]]:
    specs = [
        WorkerSpec("writer", command(*writer(answer, 1000))),
        WorkerSpec("quiet", command("sleep", "1000"), restart=AT_ONCE),
    ]
    times: list[float] = []
    with System(specs, store=MemoryStore()) as system:
        while not answer.exists():
            quiet = system.wait_for("quiet", Status.HEALTHY, timeout_s=PATIENCE_S)
            assert quiet.pid is not None
            since = time.perf_counter()
            os.kill(quiet.pid, signal.SIGKILL)
            system.wait_until(
                "quiet",
                lambda worker, before=quiet.generation: worker.generation > before and worker.pid is not None,  # type: ignore[misc]
                PATIENCE_S,
            )
            times.append((time.perf_counter() - since) * 1000)
    return float(answer.read_text()), times
