"""Pure: one worker's settings, from its own table, the defaults and a preset, in this order.

A value that a policy refuses is reported at the key that set it: a bad value in the defaults is one
problem of the defaults, not one of every worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rekindle.actors.errors import Problem, SpecError
from rekindle.actors.spec.deployment.rollout_policy import RolloutPolicy
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.policies.job_policy import JobPolicy
from rekindle.actors.spec.policies.log_policy import LogPolicy
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.policies.resource_limits import RecyclePolicy, ResourceLimits
from rekindle.actors.spec.policies.stop_policy import StopPolicy
from rekindle.actors.spec.policies.work_item_policy import ReleasePolicy
from rekindle.actors.spec.presets import PRESETS, Preset
from rekindle.actors.spec.surroundings import CgroupPolicy, Rlimits
from rekindle.actors.spec.validation import settings_of

from ..file_tables import POLICIES, Given, arguments
from ..problems import NOTHING, ConfigFinding, KeyPath


@dataclass(frozen=True, slots=True)
class Layers:
    """The sources of one worker's settings."""

    name: str
    worker: Given
    defaults: Given
    written: frozenset[str]
    """The keys of the worker's table, also those whose values did not fit."""
    file_variables: Mapping[str, str] = field(default_factory=dict)
    """The variables of its `env_file`."""
    obstacle: str = ""
    """Why it cannot be started."""

    @property
    def preset(self) -> str:
        """The name of the preset below everything."""
        return str(self.setting("preset", "steady"))

    def setting(self, key: str, otherwise: Any = None) -> Any:
        """A plain setting: the worker's, else the default of the file, else the value given here."""
        for table in (self.worker, self.defaults):
            if key in table:
                return table[key]
        return otherwise

    def settings(self, kind: type) -> dict[str, Any]:
        """The plain settings of a class that the worker or the defaults give, by field."""
        return arguments(kind, {**self.defaults, **self.worker})

    def env(self) -> dict[str, str]:
        """The environment, merged variable by variable."""
        return {**self.file_variables, **self.defaults.get("env", {}), **self.worker.get("env", {})}

    def policy(self, table: str, findings: list[ConfigFinding]) -> Any:
        """The preset's policy with the changes of the file; problems are added to the findings."""
        base = _base(PRESETS[self.preset], table)
        given = {**self.defaults.get(table, {}), **self.worker.get(table, {})}
        if not given:
            return base
        start = base if base is not None else _EMPTY[table]()
        changes = arguments(type(start), given)
        try:
            return replace(start, **changes)
        except SpecError as error:
            # An invalid value is reported first; that it also exceeds another value is not reported.
            for problem in {problem.field: problem for problem in reversed(error.problems)}.values():
                value = changes.get(problem.field, getattr(start, problem.field))
                key = settings_of(type(start))[problem.field].key
                findings.append(self.finding((table, key), problem.reason, value))
            return base

    def finding(self, path: KeyPath, reason: str, value: object = NOTHING) -> ConfigFinding:
        """A finding at the key that set the value; at the worker's, if the preset set it."""
        if _has(self.worker, path):
            return ConfigFinding(("worker", self.name, *path), reason, value)
        if _has(self.defaults, path):
            return ConfigFinding(("defaults", *path), reason, value)
        origin = "" if value is NOTHING else f"preset {self.preset}"
        return ConfigFinding(("worker", self.name, *path), reason, value, origin)


def default_findings(defaults: Given) -> Iterator[ConfigFinding]:
    """The defaults that every preset refuses, also when every worker overrides them."""
    for table in POLICIES:
        for name, value in defaults.get(table, {}).items():
            problems = [_refusal(_base(preset, table), table, name, value) for preset in PRESETS.values()]
            if problems[0] is not None and all(problems):
                yield ConfigFinding(
                    ("defaults", table, name), problems[0].reason, value, wrong_in_itself=True
                )


_EMPTY: Mapping[str, Any] = {
    "stop": StopPolicy,
    "limits": ResourceLimits,
    "recycle": RecyclePolicy,
    "rollout": RolloutPolicy,
    "jobs": JobPolicy,
    "release": ReleasePolicy,
    "ready": ReadyPolicy,
    "log": LogPolicy,
    "rlimits": Rlimits,
    "cgroup": CgroupPolicy,
    "alive": AlivePolicy,
}


def _base(preset: Preset, table: str) -> Any:
    return StopPolicy() if table == "stop" else getattr(preset, table, None)


def _refusal(base: Any, table: str, name: str, value: object) -> Problem | None:
    try:
        replace(base if base is not None else _EMPTY[table](), **{name: value})
    except SpecError as error:
        return next((problem for problem in error.problems if problem.field == name), None)
    return None


def _has(table: Given, path: KeyPath) -> bool:
    value: object = table
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True
