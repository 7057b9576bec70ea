"""The plan of a real run: the workers, with their policies in real seconds, and the paths.

Times are divided by the speed, but not below what a busy machine needs: a worker must not be taken
for dead because the machine was slow.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from rekindle.actors.simulation import Behaviour, Scenario
from rekindle.actors.simulation.scenarios.scenario import Role
from rekindle.actors.spec.deployment.rollout_policy import RolloutPolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.group import Membership
from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.program import Command, PythonCall, command
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec

from .warm_worker import FOLDER

SHORTEST_SILENCE_S = 0.6
SHORTEST_START_S = 15.0
SHORTEST_STOP_S = 0.3
SHORTEST_WINDOW_S = 2.0
"""A busy machine does not report deaths with the same cause at the same moment."""
KILL_S = 5.0
"""How long SIGKILL may take on a busy machine."""

_TIMES = (
    "dies_after", "healthy_after", "hangs_after", "stops_heartbeating_after", "says_recovering",
    "stops_after", "needs_database", "heartbeat",
)  # fmt: skip

WARM_WORKER = "rekindle.cli.chaos.real.warm_worker:serve"
SCRIPTED_WORKER = Path(__file__).with_name("scripted_worker.py")


class PlannedWorker(msgspec.Struct):
    """One worker, in real seconds."""

    id: str
    restart: RestartPolicy
    health: HealthPolicy
    stop: StopPolicy
    pause_mode: PauseMode
    after: tuple[str, ...]
    reports_health: bool
    lives: tuple[Behaviour, ...]
    """In scenario time."""
    group: str = ""
    breaker: dict[str, Any] | None = None
    membership: tuple[Membership, ...] = ()

    @property
    def can_be_warm(self) -> bool:
        """Whether its lives can be those of a Python function."""
        return self.reports_health and all(life.cannot_be_spawned is None for life in self.lives)


class RealRunPlan(msgspec.Struct):
    """Everything that the supervisor of a real run needs."""

    folder: str
    speed: float
    workers: tuple[PlannedWorker, ...]
    settle_s: float
    """How long a new process of a rollout must stay ready."""
    max_concurrent_starts: int | None = None
    warm: bool = False
    """Whether warm processes fork the workers that can be Python functions, with a standby."""
    epoch: float | None = None
    """When the scenario began, on the monotonic clock; None until the first supervisor is ready."""

    def write(self) -> None:
        """Write the plan to its folder, for the supervisor."""
        (Path(self.folder) / "plan.json").write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, folder: Path) -> RealRunPlan:
        """The plan in a folder."""
        return msgspec.json.decode((folder / "plan.json").read_bytes(), type=cls)

    @property
    def database(self) -> Path:
        """The path of the database."""
        return Path(self.folder) / "disk" / "database" / "rekindle.db"

    def specs(self) -> list[WorkerSpec]:
        """The specs of the workers."""
        return [self._spec(worker) for worker in self.workers]

    def lives_of(self, component_id: str) -> tuple[Behaviour, ...]:
        """The lives of a worker; a spare of a rollout lives as the worker whose copy it is."""
        by_id = {worker.id: worker.lives for worker in self.workers}
        stem = component_id.rpartition(":")[0]
        found = (lives for id_, lives in by_id.items() if stem in (id_, id_.rpartition(":")[0]))
        return by_id[component_id] if component_id in by_id else next(found)

    def _spec(self, worker: PlannedWorker) -> WorkerSpec:
        return WorkerSpec(
            worker.id,
            self._program(worker),
            restart=worker.restart,
            health=worker.health,
            stop=worker.stop,
            pause_mode=worker.pause_mode,
            after=worker.after,
            group=worker.group,
            limits=None,
            env={FOLDER: self.folder},
            rollout=RolloutPolicy(settle_s=self.settle_s),
            breaker=None if worker.breaker is None else BreakerPolicy(**worker.breaker),
            membership=worker.membership,
        )

    def _program(self, worker: PlannedWorker) -> Command | PythonCall:
        if self.warm and worker.can_be_warm:
            return PythonCall(WARM_WORKER, warm=True, standby=1)
        program = str(Path(self.folder) / f"{worker.id}.python")
        argv = (program, "-I", "-S", str(SCRIPTED_WORKER), self.folder)
        return command(*argv, reports_health=worker.reports_health)


def planned(scenario: Scenario, folder: Path, speed: float, *, warm: bool = False) -> RealRunPlan:
    """The scenario in real seconds."""
    workers = tuple(_planned(role, speed) for role in scenario.roles)
    settle_s = RolloutPolicy().settle_s / speed
    return RealRunPlan(str(folder), speed, workers, settle_s, scenario.max_concurrent_starts, warm)


def _planned(role: Role, speed: float) -> PlannedWorker:
    spec = role.spec
    return PlannedWorker(
        spec.id,
        _restart(spec.restart, speed),
        _health(spec.health, speed),
        _stop(spec.stop, speed),
        spec.pause_mode,
        spec.after,
        spec.run.reports_health,
        role.lives,
        spec.group,
        None if spec.breaker is None else _breaker(spec.breaker, speed),
        tuple(_place(place, speed) for place in spec.membership),
    )


def _place(place: Membership, speed: float) -> Membership:
    window_s = max(SHORTEST_WINDOW_S, place.group.window_s / speed)
    return replace(place, group=replace(place.group, window_s=window_s))


def _breaker(policy: BreakerPolicy, speed: float) -> dict[str, Any]:
    return {
        "name": policy.name,
        "deaths": policy.deaths,
        "window_s": max(SHORTEST_WINDOW_S, policy.window_s / speed),
        "canary_delay_s": policy.canary_delay_s / speed,
        "canary_max_delay_s": policy.canary_max_delay_s / speed,
        "hold_s": max(SHORTEST_SILENCE_S, policy.hold_s / speed),
    }


def _restart(policy: RestartPolicy, speed: float) -> RestartPolicy:
    after = policy.reset_after_healthy_s
    return replace(
        policy,
        window_s=policy.window_s / speed,
        initial_delay_s=policy.initial_delay_s / speed,
        max_delay_s=policy.max_delay_s / speed,
        min_delay_s=policy.min_delay_s / speed,
        reset_after_healthy_s=None if after is None else after / speed,
    )


def _health(policy: HealthPolicy, speed: float) -> HealthPolicy:
    staleness = policy.staleness_s
    slower = 1.0 if staleness is None else max(1.0, SHORTEST_SILENCE_S * speed / staleness)
    scale = speed / slower
    recovery = (policy.recovery_min_s, policy.recovery_max_s)
    least, most = (None if each is None else each / speed for each in recovery)
    return replace(
        policy,
        startup_timeout_s=max(SHORTEST_START_S, policy.startup_timeout_s / speed),
        staleness_s=None if staleness is None else staleness / scale,
        heartbeat_interval_s=policy.heartbeat_interval_s / scale,
        recovery_min_s=least,
        recovery_max_s=most,
    )


def _stop(policy: StopPolicy, speed: float) -> StopPolicy:
    return replace(
        policy,
        ask_s=max(SHORTEST_STOP_S, policy.ask_s / speed),
        term_s=max(SHORTEST_STOP_S, policy.term_s / speed),
        kill_s=KILL_S,
        last_s=KILL_S,
    )


def life_document(behaviour: Behaviour, plan: RealRunPlan) -> dict[str, Any]:
    """The life of a scripted worker, in real seconds."""
    # The usage of a real process cannot be scripted.
    names = [each.name for each in fields(behaviour) if each.name != "usage"]
    life: dict[str, Any] = {name: getattr(behaviour, name) for name in names}
    for name in _TIMES:
        if life[name] is not None:
            life[name] /= plan.speed
    return {**life, "epoch": plan.epoch, "speed": plan.speed}
