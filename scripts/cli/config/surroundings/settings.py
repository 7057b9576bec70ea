"""The settings of a worker's surroundings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.surroundings import NULL, CgroupPolicy, Surroundings

from ..paths import absolute
from ..problems import ConfigFinding

if TYPE_CHECKING:
    from ..workers.layers import Layers

TABLES = ("rlimits", "cgroup")


def surroundings_of(layers: Layers, folder: Path, findings: list[ConfigFinding]) -> Surroundings:
    """What the file says about them; problems are added to the findings."""
    settings: dict[str, Any] = layers.settings(Surroundings)
    settings |= {table: layers.policy(table, findings) for table in TABLES}
    if settings["cgroup"] is None and layers.setting("cgroup") is not None:
        settings["cgroup"] = CgroupPolicy()  # an empty table: a group without limits
    stdin = settings.get("stdin", NULL)
    if stdin not in (NULL, ""):
        try:
            settings["stdin"] = str(absolute(stdin, folder))
        except ValueError as error:
            findings.append(layers.finding(("stdin",), str(error), stdin))
            settings["stdin"] = NULL
    try:
        return Surroundings(**settings)
    except SpecError as error:
        findings += (layers.finding((each.field,), each.reason, each.value) for each in error.problems)
        return Surroundings()
