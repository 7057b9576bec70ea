"""The ready-made sets of policies, and how single fields of one are overridden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TypeVar

from ..errors import Problem, SpecError
from .policies.health_policy import HealthPolicy
from .policies.job_policy import JobPolicy
from .policies.resource_limits import ResourceLimits
from .policies.restart_policy import OnExhausted, RestartOn, RestartPolicy, WindowMode
from .policies.stop_policy import StopPolicy
from .worker_spec import PauseMode

_P = TypeVar("_P", RestartPolicy, HealthPolicy, StopPolicy, JobPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One column of the table of presets."""

    restart: RestartPolicy
    health: HealthPolicy
    pause_mode: PauseMode
    jobs: JobPolicy | None
    limits: ResourceLimits | None


STEADY = Preset(
    restart=RestartPolicy(),
    health=HealthPolicy(),
    pause_mode=PauseMode.STOP,
    jobs=JobPolicy(crash_retries=2),
    limits=None,
)

PATIENT = Preset(
    restart=RestartPolicy(restart_on=RestartOn.ON_FAILURE, reset_after_healthy_s=300.0),
    health=HealthPolicy(
        staleness_s=30.0,
        max_misses=1,
        heartbeat_interval_s=5.0,
        recovery_min_s=None,
        recovery_max_s=None,
    ),
    pause_mode=PauseMode.IDLE,
    jobs=JobPolicy(crash_retries=2),
    limits=None,
)

NOTIFY = Preset(
    restart=RestartPolicy(
        enabled=False,
        max_in_window=2,
        window_s=600.0,
        window_mode=WindowMode.SLIDING,
        max_lifetime=None,
        initial_delay_s=0.0,
        multiplier=1.0,
        max_delay_s=0.0,
        min_delay_s=0.0,
        immediate_first=True,
        on_exhausted=OnExhausted.NOTIFY_ONLY,
    ),
    health=HealthPolicy(staleness_s=None, heartbeat_interval_s=5.0, recovery_min_s=None, recovery_max_s=None),
    pause_mode=PauseMode.IDLE,
    jobs=JobPolicy(crash_retries=None),
    limits=ResourceLimits(warn_memory_mb=4096.0, kill_memory_mb=8192.0),
)

PLUGIN = Preset(
    restart=RestartPolicy(
        max_in_window=None,
        max_lifetime=None,
        max_consecutive=5,
        max_delay_s=30.0,
        min_delay_s=0.0,
        immediate_first=True,
        reset_after_healthy_s=60.0,
    ),
    health=HealthPolicy(
        startup_timeout_s=2.0,
        staleness_s=None,
        heartbeat_interval_s=5.0,
        recovery_min_s=None,
        recovery_max_s=None,
    ),
    pause_mode=PauseMode.STOP,
    jobs=None,
    limits=ResourceLimits(kill_cpu_percent=50.0, kill_memory_mb=256.0, interval_s=5.0, violations=2),
)

SERVICE = Preset(
    restart=RestartPolicy(
        # The delays of ten minutes of immediate deaths, each shortened by the jitter, add up to 17 restarts.
        max_in_window=18,
        window_s=1800.0,
        window_mode=WindowMode.SLIDING,
        max_lifetime=None,
        jitter=0.1,
        reset_after_healthy_s=60.0,
    ),
    health=HealthPolicy(),
    pause_mode=PauseMode.STOP,
    jobs=JobPolicy(crash_retries=2),
    limits=None,
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {"steady": STEADY, "service": SERVICE, "patient": PATIENT, "notify": NOTIFY, "plugin": PLUGIN}
)


def overridden(table: str, policy: _P, changes: Mapping[str, object] | None, problems: list[Problem]) -> _P:
    """The policy with only the named fields changed; refused values are added to the problems."""
    if not isinstance(changes, Mapping):
        if changes is not None:
            problems.append(Problem(table, "must be a table of settings"))
        return policy
    known = {each.name for each in fields(policy)}
    problems += [Problem(f"{table}.{name}", "is not a setting") for name in changes if name not in known]
    try:
        return replace(policy, **{name: changes[name] for name in changes if name in known})  # type: ignore[arg-type]
    except SpecError as error:
        problems += [replace(each, field=f"{table}.{each.field}") for each in error.problems]
        return policy
