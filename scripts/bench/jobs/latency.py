"""How long a job takes from the call that adds it to its start on an idle worker.

The job itself writes down when it starts, in the same way for every library.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors import JobPolicy, PythonCall, Status, System, WorkerSpec
from rekindle.persistence import open_store

ROUNDS = 200
IDLE_S = 0.03
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Latency:
    """The milliseconds from the call to the start."""

    name: str
    p50_ms: float
    p99_ms: float


def rekindle_latency(where: str, folder: Path) -> Latency:
    """Rekindle, with one worker."""
    stamps = folder / "rekindle.stamps"
    spec = WorkerSpec(
        "worker:stamp:0",
        PythonCall("scripts.bench.jobs.noop:Stamp.main"),
        jobs=JobPolicy(queues=("stamp",)),
    )
    with System([spec], store=open_store(where)) as system:
        system.wait_for(spec.id, Status.HEALTHY, timeout_s=30)
        return _measured("Rekindle", stamps, lambda: system.enqueue("stamp", str(stamps)))


def huey_latency(folder: Path) -> Latency:
    """Huey, with one process that polls every millisecond."""
    os.environ["HUEY_DATABASE"] = str(folder / "huey-latency.db")
    from .huey_app import stamp

    consumer = subprocess.Popen(
        [sys.executable, "-m", "huey.bin.huey_consumer", "scripts.bench.jobs.huey_app.huey",
         "-k", "process", "-w", "1", "-d", "0.001", "-m", "0.01", "-q"],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    stamps = folder / "huey.stamps"
    try:
        return _measured("Huey", stamps, lambda: stamp(str(stamps)))
    finally:
        os.killpg(consumer.pid, signal.SIGKILL)
        consumer.wait()


def _measured(name: str, stamps: Path, enqueue: Callable[[], object]) -> Latency:
    took: list[float] = []
    for number in range(ROUNDS + 5):
        time.sleep(IDLE_S)
        began = time.time_ns()
        enqueue()
        took.append((_stamp(stamps, number) - began) / 1e6)
    took = sorted(took[5:])  # without the first ones, which load modules
    return Latency(name, statistics.median(took), took[round(0.99 * (len(took) - 1))])


def _stamp(stamps: Path, number: int) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = stamps.read_text().splitlines() if stamps.exists() else []
        if len(lines) > number:
            return int(lines[number])
        time.sleep(0.002)
    raise TimeoutError(f"job {number} did not start")
