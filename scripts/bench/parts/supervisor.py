"""The cost of an idle supervisor: its workers run and nothing happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..arena import Arena
from ..checkout import THIS, Checkout
from ..floor import Programs, fresh_arena
from ..footprint import Idle, idle, pss_mb, threads

HEARTBEAT_S = 5
PACKAGES = """
import sys
import loguru, msgspec, pykka, sqlalchemy
with sqlalchemy.create_engine("sqlite://").connect() as connection:
    connection.execute(sqlalchemy.text("SELECT 1"))
    print("ready", flush=True)
    sys.stdin.read()
"""
"""A program that loads the same packages, opens a database and does nothing else."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the supervisor with this many workers."""

    workers: int
    heartbeat_s: int
    """0: the workers send no heartbeats."""
    pss_mb: float
    worked_pss_mb: float
    """The same after every worker has died and restarted: memory released at the start may be needed then."""
    threads: int
    idle: Idle


@contextmanager
def running_rekindle(
    built: Programs, arena: Arena, heartbeat_s: int = 0, code: Checkout = THIS
) -> Iterator[int]:
    """Run Rekindle with a worker for every slot during the block; yields its pid."""
    with code.supervising("supervised", arena, str(heartbeat_s), *built.worker) as supervising:
        yield supervising.pid


def packages_pss_mb() -> float:
    """The memory of an interpreter that has loaded the packages, opened a database, and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", PACKAGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        taken = pss_mb(process.pid)
        process.stdin.close()
    return taken


def measure_costs(built: Programs, idle_s: float) -> tuple[Cost, ...]:
    """Measure the cost of an idle supervisor."""
    costs = []
    for count, heartbeat_s in ((100, 0), (100, HEARTBEAT_S), (1000, HEARTBEAT_S)):
        with fresh_arena(count) as arena, running_rekindle(built, arena, heartbeat_s) as pid:
            idle(pid, 3.0)  # until the start has settled: the states are persisted, the caches are warm
            costs.append(_cost(pid, arena, heartbeat_s, idle_s))
    return tuple(costs)


def _cost(pid: int, arena: Arena, heartbeat_s: int, idle_s: float) -> Cost:
    doing_nothing, fresh = idle(pid, idle_s), pss_mb(pid)
    arena.kill_each_and_wait()
    return Cost(arena.slots, heartbeat_s, fresh, pss_mb(pid), threads(pid), doing_nothing)
