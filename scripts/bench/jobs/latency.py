"""How long a job takes from the call that adds it to its start on an idle worker.

The job itself writes down when it starts, in the same way for every library. Each library is measured by a
process of its own (`stamping`), since most of them are configured when they are imported.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Latency:
    """The milliseconds from the call to the start, sorted."""

    name: str
    took_ms: tuple[float, ...]

    @property
    def p50_ms(self) -> float:
        """The median."""
        return statistics.median(self.took_ms)

    @property
    def p99_ms(self) -> float:
        """The 99th percentile."""
        return self.took_ms[round(0.99 * (len(self.took_ms) - 1))]

    def __str__(self) -> str:
        return f"{self.name:<16}{self.p50_ms:8.2f} ms (p99 {self.p99_ms:.2f} ms) from enqueue to start"


def together(latencies: Iterable[Latency]) -> Latency:
    """Several measurements of one library as one."""
    each = tuple(latencies)
    return Latency(each[0].name, tuple(sorted(ms for one in each for ms in one.took_ms)))


def measure_latency(name: str, address: str, folder: Path) -> Latency:
    """Measure a library with one idle worker; the jobs are kept at this address."""
    stamps = folder / f"{name}.stamps"
    addresses = ("HUEY_DATABASE", "PROCRASTINATE_DATABASE", "REDIS_URL")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench.jobs.stamping", name, address, str(stamps)],
        env={**os.environ, **dict.fromkeys(addresses, address)},
        stdout=subprocess.PIPE,
        check=True,
    )
    stamps.unlink()
    return Latency(name, tuple(sorted(json.loads(done.stdout.splitlines()[-1]))))
