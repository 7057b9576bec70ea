"""Pure: where the workers of a table may run."""

from __future__ import annotations

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.deployment.place_policy import OnPartition, PlacePolicy

from ..file_tables import Given, arguments
from ..problems import ConfigFinding


def place_of(name: str, table: Given, findings: list[ConfigFinding]) -> PlacePolicy:
    """Where the workers of a table may run."""
    given = table.get("place", {})
    try:
        place = PlacePolicy(**arguments(PlacePolicy, given))
    except SpecError as error:
        for problem in error.problems:
            path = ("worker", name, "place", *problem.field.split("."))
            findings.append(ConfigFinding(path, problem.reason, given.get(problem.field)))
        return PlacePolicy()
    if place.on_partition is OnPartition.KEEP:
        reason = "may only be stop in this version: a node without its lease ends all of its workers"
        findings.append(ConfigFinding(("worker", name, "place", "on_partition"), reason, "keep"))
    return place
