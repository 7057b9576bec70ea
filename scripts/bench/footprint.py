"""What a process costs, read from /proc: memory, threads, processor time, wake-ups."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Idle:
    """The activity of an idle process."""

    seconds: float
    wakeups: int
    cpu_percent: float
    """Of one core."""


def pss_mb(pid: int) -> float:
    """The process's proportional share of memory, in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"process {pid} shows no Pss")


def threads(pid: int) -> int:
    """How many threads the process has."""
    return len(os.listdir(f"/proc/{pid}/task"))


def idle(pid: int, seconds: float) -> Idle:
    """Measure the process for this many seconds."""
    switches, ticks, began = _switches(pid), _ticks(pid), time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    cpu = (_ticks(pid) - ticks) * _TICK_S / passed * 100
    return Idle(passed, _switches(pid) - switches, cpu)


def _switches(pid: int) -> int:
    """The voluntary context switches of all its threads: one for each wake-up."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
