"""The tables of one group of workers, with placeholders replaced for each of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rekindle.actors.views.redaction import is_secret

from ..problems import Finding
from .placeholders import Problems, Values, mistaken, with_values

Table = Mapping[str, Any]

EXPANDED = ("command", "env", "cwd", "stdin", "ready", "alive", "log")
"""The keys of a worker in whose values placeholders are replaced."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The tables of one worker, without placeholders."""

    worker: Table
    defaults: Table
    findings: tuple[Finding, ...]
    secrets: frozenset[str]
    """Values that were taken from variables and must not be shown."""


@dataclass(frozen=True, slots=True)
class WorkerTables:
    """A `[worker.NAME]` table and the defaults, as they are in the file."""

    name: str
    worker: Table
    defaults: Table
    environment: Mapping[str, str]
    """The variables of the supervisor."""

    def replaced(self, number: int) -> Replaced:
        """The tables of the worker with that number."""
        if not self.is_expanded:
            return Replaced(self.worker, self.defaults, (), frozenset())
        values = Values(number, self.name, f"worker:{self.name}:{number}", self.environment)
        found: list[Finding] = []
        env = {
            place: self._expanded(place, ("env",), values, found).get("env", {})
            for place in ("defaults", "worker")
        }
        own = {
            name: value for each in env.values() if isinstance(each, Mapping) for name, value in each.items()
        }
        values.variables = {
            **self.environment,
            **{name: each for name, each in own.items() if isinstance(each, str)},
        }
        others = tuple(key for key in EXPANDED if key != "env")
        tables = {
            place: {
                **self._expanded(place, others, values, found),
                **({"env": env[place]} if env[place] else {}),
            }
            for place in env
        }
        secrets = frozenset(value for name, value in values.used.items() if value and is_secret(name))
        return Replaced(
            {**self.worker, **tables["worker"]},
            {**self.defaults, **tables["defaults"]},
            tuple(found),
            secrets,
        )

    @property
    def is_expanded(self) -> bool:
        """Whether placeholders are replaced at all."""
        return self.worker.get("expand", self.defaults.get("expand", True)) is not False

    def written(self) -> dict[str, Any]:
        """The values with placeholders, as they are in the file, by key."""
        replaced = self.replaced(0)
        result: dict[str, Any] = {}
        for key in EXPANDED:
            values = [table[key] for table in (self.defaults, self.worker) if key in table]
            after = [table[key] for table in (replaced.defaults, replaced.worker) if key in table]
            if values != after:
                are_tables = all(isinstance(each, Mapping) for each in values)
                result[key] = {k: v for each in values for k, v in each.items()} if are_tables else values[-1]
        return result

    def warnings(self) -> Iterator[Finding]:
        """What looks like a placeholder and is not replaced."""
        for key in EXPANDED if self.is_expanded else ():
            if key in self.worker:
                yield from (
                    Finding(("worker", self.name, key), reason) for reason in mistaken(key, self.worker[key])
                )

    def _expanded(
        self, place: str, keys: tuple[str, ...], values: Values, found: list[Finding]
    ) -> dict[str, Any]:
        table = self.worker if place == "worker" else self.defaults
        here = ("worker", self.name) if place == "worker" else ("defaults",)
        problems: Problems = []
        expanded = {
            key: with_values(key, table[key], values.replaced, problems) for key in keys if key in table
        }
        found += (Finding((*here, *path), reason, wrong_in_itself=True) for path, reason in problems)
        return expanded
