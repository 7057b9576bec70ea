"""Rekindle at work, and what it costs while nothing happens."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .arena import Arena
from .floor import Programs, fresh_arena
from .footprint import Idle, idle, pss_mb, threads

_STOP_S = 60.0
HEARTBEAT_S = 5
PACKAGES = """
import sys
import loguru, msgspec, pykka, sqlalchemy
with sqlalchemy.create_engine("sqlite://").connect() as connection:
    connection.execute(sqlalchemy.text("SELECT 1"))
    print("ready", flush=True)
    sys.stdin.read()
"""
"""What a program that uses these packages has in memory before it does anything."""
MAKE_STORE = "import sys; from rekindle.persistence import open_store; open_store(sys.argv[1]).close()"


@dataclass(frozen=True, slots=True)
class Cost:
    """What the supervising process costs with this many workers."""

    workers: int
    heartbeat_s: int
    """0: its workers send none."""
    pss_mb: float
    worked_pss_mb: float
    """The same once every worker has died and come back: what was given back at first may be needed then."""
    threads: int
    idle: Idle


@contextmanager
def running_rekindle(built: Programs, arena: Arena, heartbeat_s: int = 0) -> Iterator[int]:
    """Keep every slot's worker alive by Rekindle while the block runs; gives its pid."""
    with tempfile.TemporaryDirectory(prefix="rekindle-bench-") as folder:
        database = Path(folder) / "state" / "rekindle.db"
        # As at every start but the very first one, which also loads what makes the tables.
        subprocess.run([sys.executable, "-c", MAKE_STORE, str(database)], check=True)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "scripts.bench.supervised"),
                *(str(arena.path), str(arena.slots), str(database)),
                *(str(heartbeat_s), *built.worker),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdout.readline()
            arena.wait_until_all_run()
            yield process.pid
        finally:
            process.stdin.close()
            process.stdout.close()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            arena.kill_leftovers()


def packages_pss_mb() -> float:
    """The memory of an interpreter that has loaded our packages, opened a database, and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", PACKAGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        taken = pss_mb(process.pid)
        process.stdin.close()
    return taken


def measure_costs(built: Programs, idle_s: float) -> tuple[Cost, ...]:
    """Measure the cost of doing nothing."""
    costs = []
    for count, heartbeat_s in ((100, 0), (100, HEARTBEAT_S), (1000, HEARTBEAT_S)):
        with fresh_arena(count) as arena, running_rekindle(built, arena, heartbeat_s) as pid:
            idle(pid, 3.0)  # let the start settle: the mirror is written, the caches are warm
            costs.append(_cost(pid, arena, heartbeat_s, idle_s))
    return tuple(costs)


def _cost(pid: int, arena: Arena, heartbeat_s: int, idle_s: float) -> Cost:
    doing_nothing, fresh = idle(pid, idle_s), pss_mb(pid)
    for slot in range(arena.slots):
        arena.kill_and_wait(slot)
    return Cost(arena.slots, heartbeat_s, fresh, pss_mb(pid), threads(pid), doing_nothing)
