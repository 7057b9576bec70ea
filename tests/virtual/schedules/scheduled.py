"""Scheduled workers in virtual time. The clock begins at a multiple of 100 s."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.virtual.simulated_system import SimulatedSystem, W, worker

from rekindle.actors.facts.runs import Run
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.spec.worker_spec import WorkerSpec


def by_clock(
    id_: str = W,
    *,
    restart: dict[str, Any] | None = None,
    others: dict[str, Any] | None = None,
    **schedule: Any,
) -> WorkerSpec:
    """A worker with a schedule: every 100 s, if nothing else is said."""
    if "cron" not in schedule:
        schedule.setdefault("every", "100s")
    policy = SchedulePolicy(**schedule)
    return worker(id_, restart=restart, schedule=policy, **(others or {}))


def rows(system: SimulatedSystem, id_: str = W) -> list[Run]:
    """The runs that are stored, oldest first."""
    return list(reversed(system.memory.runs(id_, limit=1000)))


def states(system: SimulatedSystem, id_: str = W) -> list[str]:
    """Their states, with the reason if there is one."""
    return [f"{run.state}:{run.reason}" if run.reason else str(run.state) for run in rows(system, id_)]


def set_clock(system: SimulatedSystem, text: str) -> None:
    """Set the wall clock to a time in UTC."""
    wanted = datetime.fromisoformat(text).replace(tzinfo=UTC)
    system.runtime.virtual_clock.set_wall(round(wanted.timestamp() * 1000) - system.runtime.clock.wall_ms())


def clock(system: SimulatedSystem) -> str:
    """The wall clock, in UTC."""
    return f"{datetime.fromtimestamp(system.runtime.clock.wall_ms() / 1000, UTC):%d %H:%M:%S}"
