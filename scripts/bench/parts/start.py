"""How soon `rekindle run` has started its first worker, how soon `rekindle status` answers, and their memory.

Beside an interpreter that loads the packages of Rekindle and ends, measured by turns: what is left of the
difference is Rekindle's own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..arena import Arena
from ..checkout import THIS, Checkout
from ..floor import Programs, fresh_arena
from ..footprint import pss_mb

PACKAGES = "import click, loguru, msgspec, pykka, sqlalchemy, starlette.applications, uvicorn"
STOP_S = 30.0
MANY = (100, 1000)


@dataclass(frozen=True, slots=True)
class StartFigures:
    """Medians, in milliseconds and megabytes."""

    packages_ms: float
    """An interpreter that loads the packages and ends."""
    new_database_ms: float
    """From the start of `rekindle run` to the first instruction of its worker."""
    known_database_ms: float
    status_ms: dict[int, float]
    """`rekindle status`, by the number of workers."""
    pss_mb: float
    """`rekindle run` with 100 workers."""


def measure_start(built: Programs, rounds: int = 5, code: Checkout = THIS) -> StartFigures:
    """Measure all of it."""
    packages, new, known = [], [], []
    for _ in range(rounds):
        packages.append(_timed_ms([sys.executable, "-c", PACKAGES], code))
        with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as folder:
            new.append(_first_start_ms(built, Path(folder), code))
            known.append(_first_start_ms(built, Path(folder), code))
    answers = {workers: _status(built, workers, rounds, code) for workers in MANY}
    return StartFigures(
        statistics.median(packages),
        statistics.median(new),
        statistics.median(known),
        {workers: took for workers, (took, _) in answers.items()},
        answers[MANY[0]][1],
    )


def start_lines(figures: StartFigures) -> list[str]:
    """The figures for people."""
    base = figures.packages_ms
    told = {
        "an interpreter that loads the packages": base,
        "rekindle run -> first worker, new database": figures.new_database_ms,
        "rekindle run -> first worker": figures.known_database_ms,
    }
    told |= {f"rekindle status, workers: {count}": ms for count, ms in figures.status_ms.items()}
    lines = [f"{what:<46}{ms:>8.0f} ms{ms / base:>8.2f}" for what, ms in told.items()]
    return [*lines, f"rekindle run with {MANY[0]} workers: {figures.pss_mb:.1f} MB PSS"]


def _timed_ms(command: list[str], code: Checkout) -> float:
    began = time.monotonic()
    subprocess.run(command, env=code.environment(), stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - began) * 1000


def _first_start_ms(built: Programs, folder: Path, code: Checkout) -> float:
    with fresh_arena(1) as arena:
        began = time.monotonic_ns()
        with _running(_file(built, folder, arena), code):
            arena.wait_until_all_run()
            return (arena[0].started_ns - began) / 1e6


def _status(built: Programs, workers: int, rounds: int, code: Checkout) -> tuple[float, float]:
    """How long the answer takes, and the memory of the supervisor."""
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as name, fresh_arena(workers) as arena:
        file = _file(built, Path(name), arena)
        with _running(file, code) as pid:
            arena.wait_until_all_run()
            time.sleep(3.0)  # until the start has settled
            command = [sys.executable, "-m", "rekindle.cli", "status", "-c", str(file)]
            times = [_timed_ms(command, code) for _ in range(rounds)]
            return statistics.median(times), pss_mb(pid)


def _file(built: Programs, folder: Path, arena: Arena) -> Path:
    file = folder / "workers.toml"
    command = json.dumps([*built.worker, str(arena.path), "{n}"])
    file.write_text(
        f'state_dir = "{folder}/state"\n[worker.bench]\ncommand = {command}\ncount = {arena.slots}\n'
    )
    return file


@contextmanager
def _running(file: Path, code: Checkout) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rekindle.cli", "run", str(file)],
        env=code.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
