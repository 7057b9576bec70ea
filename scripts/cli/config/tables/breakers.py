"""Pure: the circuit breakers that a file declares, and which of them a worker shares."""

from __future__ import annotations

from collections.abc import Mapping

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.breaker_policy import BreakerPolicy

from ..decoding import nearest
from ..layers import Layers, changed
from ..problems import Finding
from ..structs import File

Breakers = Mapping[str, BreakerPolicy]


def breakers_of(file: File, findings: list[Finding]) -> dict[str, BreakerPolicy]:
    """The breakers of a file by name; what is wrong with them joins the findings."""
    breakers: dict[str, BreakerPolicy] = {}
    for name, table in file.breakers.items():
        settings = changed(table)
        try:
            breakers[name] = BreakerPolicy(name=name, **settings)
        except SpecError as error:
            for problem in error.problems:
                path = ("breakers", name) if problem.field == "name" else ("breakers", name, problem.field)
                value = settings.get(problem.field)
                reason = problem.reason.removesuffix(f", is {value!r}")
                findings.append(Finding(path, reason) if value is None else Finding(path, reason, value))
            breakers[name] = BreakerPolicy(name="unnamed")
    return breakers


def breaker_of(layers: Layers, breakers: Breakers, findings: list[Finding]) -> BreakerPolicy | None:
    """The breaker that a worker names; None without one."""
    name: str | None = layers.setting("breaker")
    if name is None or name == "none":
        return None
    if name not in breakers:
        hint = nearest(name, breakers) or f"; add a table [breakers.{name[:40]}]"
        findings.append(layers.finding(("breaker",), f"is no breaker of this file{hint}", name))
    return breakers.get(name)
