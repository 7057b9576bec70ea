"""Runs Rekindle as a separate process:

    python -m scripts.bench.supervised ARENA SLOTS DATABASE HEARTBEAT_S WORKER…

Keeps a worker alive in every slot of an arena: no delay, no limit, every death committed to
SQLite with synchronous=FULL before the next start. In place of a WORKER, `--python`, `--warm` and
`--standby` run a Python function. Prints `ready`, and stops when its standard
input ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rekindle.actors import (
    Command,
    HealthPolicy,
    PythonCall,
    RestartPolicy,
    StatusChanged,
    System,
    WorkerSpec,
    command,
)
from rekindle.actors.messages.internal.to_supervisor import SupervisorMessage
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.cli.supervise.platform.memory import settle
from rekindle.persistence import open_store

from .arena import Arena

AT_ONCE = RestartPolicy(
    max_in_window=None, max_lifetime=None, initial_delay_s=0.0, max_delay_s=0.0, min_delay_s=0.0
)


def witness(arena: Arena) -> None:
    """Record the time in a slot as soon as the Supervisor handles its worker's death.

    Subscribers are notified later, once the death is persisted.
    """
    handle = Supervisor.handle

    def seen(self: Supervisor, message: SupervisorMessage) -> None:
        if isinstance(message, StatusChanged) and message.death is not None:
            arena.mark_seen(int(message.component_id.rpartition(":")[2]))
        handle(self, message)

    Supervisor.handle = seen  # type: ignore[method-assign]


def main() -> None:
    """Run until standard input ends."""
    # No argparse: its megabyte would be counted as Rekindle's.
    path, slots, database, heartbeat_s, *worker = sys.argv[1:]
    arena = Arena(Path(path), int(slots), create=False)
    witness(arena)
    with System(specs(arena, int(heartbeat_s), worker), store=open_store(database)) as system:
        settle()
        print("ready", flush=True)
        sys.stdin.read()
        system.stop_workers()


def specs(arena: Arena, heartbeat_s: int, worker: list[str]) -> list[WorkerSpec]:
    """A worker for every slot."""
    health = HealthPolicy(staleness_s=15.0, heartbeat_interval_s=5.0)
    return [
        WorkerSpec(
            f"worker:bench:{slot}",
            _run(arena, slot, heartbeat_s, worker),
            restart=AT_ONCE,
            health=health,
            env={"BENCH_ARENA": str(arena.path)},
        )
        for slot in range(arena.slots)
    ]


def _run(arena: Arena, slot: int, heartbeat_s: int, worker: list[str]) -> Command | PythonCall:
    target = "scripts.bench.parts.warm_worker:serve"
    match worker:
        case ["--python"]:
            return PythonCall(target)
        case ["--warm"]:
            return PythonCall(target, warm=True)
        case ["--standby"]:
            return PythonCall(target, warm=True, standby=1)
        case _:
            further = [str(heartbeat_s)] if heartbeat_s else []
            return command(*worker, str(arena.path), str(slot), *further, reports_health=bool(further))


if __name__ == "__main__":
    main()
