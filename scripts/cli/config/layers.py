"""Pure: one worker's settings, from its own table, the defaults and a preset, in this order.

What a policy refuses is told by the key that said it: a bad value in the defaults is one
problem of the defaults, not one of every worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import UNSET, structs

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.job_policy import JobPolicy
from rekindle.actors.spec.presets import PRESETS, Preset
from rekindle.actors.spec.resource_limits import RecyclePolicy, ResourceLimits
from rekindle.actors.spec.work_release import ReleasePolicy
from rekindle.actors.spec.worker_spec import StopPolicy

from .problems import NOTHING, Finding, KeyPath
from .structs import Defaults, Settings, Table, Worker

WORKER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,47}")
"""Short enough for every id; without the dots and colons that divide subjects and ids."""

MOST_MEMBERS = 1000
POLICIES = ("restart", "health", "stop", "limits", "recycle", "jobs", "release")


@dataclass(frozen=True, slots=True)
class Layers:
    """Where one worker's settings come from."""

    name: str
    worker: Worker
    defaults: Defaults
    written: frozenset[str]
    """The keys of the worker's table, also those whose values did not fit."""

    @property
    def preset(self) -> str:
        """The name of the preset below everything."""
        return str(self.setting("preset", "steady"))

    def setting(self, key: str, otherwise: Any = None) -> Any:
        """A plain setting: the worker's, else the default, else what is said here."""
        for table in (self.worker, self.defaults):
            value = getattr(table, key, UNSET)
            if value is not UNSET:
                return value
        return otherwise

    def env(self) -> dict[str, str]:
        """The environment, merged variable by variable."""
        layers = (self.defaults.env, self.worker.env)
        return {name: value for layer in layers if layer is not UNSET for name, value in layer.items()}

    def policy(self, table: str, findings: list[Finding]) -> Any:
        """The preset's policy with what the file changes; what is refused joins the findings."""
        base = _base(PRESETS[self.preset], table)
        changes = {**changed(getattr(self.defaults, table)), **changed(getattr(self.worker, table))}
        if not changes:
            return base
        start = base if base is not None else _EMPTY[table]()
        try:
            return replace(start, **changes)
        except SpecError as error:
            # One that is wrong in itself comes first; that it exceeds another is no news then.
            for problem in {problem.field: problem for problem in reversed(error.problems)}.values():
                value = changes.get(problem.field, getattr(start, problem.field))
                findings.append(self.finding((table, problem.field), problem.reason, value))
            return base

    def finding(self, path: KeyPath, reason: str, value: object = NOTHING) -> Finding:
        """A finding at the key that said it; at the worker's, if that is a preset's value."""
        reason = reason.removesuffix(f", is {value!r}")
        if _says(self.worker, path):
            return Finding(("worker", self.name, *path), reason, value)
        if _says(self.defaults, path):
            return Finding(("defaults", *path), reason, value)
        origin = "" if value is NOTHING else f"preset {self.preset}"
        return Finding(("worker", self.name, *path), reason, value, origin)


def changed(table: Table) -> dict[str, Any]:
    """The settings that a table makes; the word "none" stands for None."""
    made = ((name, value) for name, value in structs.asdict(table).items() if value is not UNSET)
    return {name: None if value == "none" else value for name, value in made}


def default_findings(defaults: Defaults) -> Iterator[Finding]:
    """The defaults that no preset would take, also when every worker overrides them."""
    for table in POLICIES:
        for name, value in changed(getattr(defaults, table)).items():
            reasons = [_refusal(_base(preset, table), table, name, value) for preset in PRESETS.values()]
            if reasons[0] is not None and all(reason is not None for reason in reasons):
                reason = reasons[0].removesuffix(f", is {value!r}")
                yield Finding(("defaults", table, name), reason, value, wrong_in_itself=True)


_EMPTY: Mapping[str, Any] = {
    "stop": StopPolicy,
    "limits": ResourceLimits,
    "recycle": RecyclePolicy,
    "jobs": JobPolicy,
    "release": ReleasePolicy,
}


def _base(preset: Preset, table: str) -> Any:
    return StopPolicy() if table == "stop" else getattr(preset, table, None)


def _refusal(base: Any, table: str, name: str, value: object) -> str | None:
    try:
        replace(base if base is not None else _EMPTY[table](), **{name: value})
    except SpecError as error:
        return next((problem.reason for problem in error.problems if problem.field == name), None)
    return None


def _says(table: Settings, path: KeyPath) -> bool:
    value: object = table
    for part in path:
        value = value.get(part, UNSET) if isinstance(value, dict) else getattr(value, part, UNSET)
        if value is UNSET:
            return False
    return True
