"""Pure: the circuit breakers that a file declares, and which of them a worker shares."""

from __future__ import annotations

from collections.abc import Mapping

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.validation import nearest

from ..file_tables import Given
from ..problems import NOTHING, ConfigFinding
from ..workers.layers import Layers

Breakers = Mapping[str, BreakerPolicy]


def breakers_of(file: Given, findings: list[ConfigFinding]) -> dict[str, BreakerPolicy]:
    """The breakers of a file by name; their problems are added to the findings."""
    breakers: dict[str, BreakerPolicy] = {}
    for name, table in file.get("breakers", {}).items():
        try:
            breakers[name] = BreakerPolicy(name=name, **table)
        except SpecError as error:
            for problem in error.problems:
                path = ("breakers", name) if problem.field == "name" else ("breakers", name, problem.field)
                findings.append(ConfigFinding(path, problem.reason, table.get(problem.field, NOTHING)))
            breakers[name] = BreakerPolicy(name="unnamed")
    return breakers


def breaker_of(layers: Layers, breakers: Breakers, findings: list[ConfigFinding]) -> BreakerPolicy | None:
    """The breaker that a worker names; None without one."""
    name: str | None = layers.setting("breaker")
    if name is None:
        return None
    if name not in breakers:
        hint = nearest(name, breakers) or f"; add a table [breakers.{name[:40]}]"
        findings.append(layers.finding(("breaker",), f"is not a breaker of this file{hint}", name))
    return breakers.get(name)
