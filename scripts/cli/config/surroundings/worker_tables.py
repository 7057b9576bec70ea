"""The tables of one group of workers, with placeholders replaced for each of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rekindle.actors.spec.worker_words import WorkerWords
from rekindle.actors.views.redaction import is_secret

from ..problems import ConfigFinding, KeyPath
from .env_files import EnvFiles
from .placeholders import Problems, Values, mistaken, with_values

Table = Mapping[str, Any]

EXPANDED = ("env_file", "command", "env", "cwd", "stdin", "ready", "alive", "log", "stop")
"""The keys of a worker in whose values placeholders are replaced."""

_OPTIONAL = tuple(key for key in EXPANDED if key not in ("env_file", "env", "command"))
"""Those of them that a worker may be without."""

_SHORTEST = 4
"""A shorter secret is likely part of other words."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The tables of one worker, without placeholders."""

    worker: Table
    defaults: Table
    findings: tuple[ConfigFinding, ...]
    secrets: frozenset[str]
    """Values that were taken from variables and must not be shown."""
    file_variables: Mapping[str, str]
    """The variables of its files."""
    obstacle: str = ""
    """Why it cannot be started: another user has put something in the way of its files."""


@dataclass(frozen=True, slots=True)
class WorkerTables:
    """A `[worker.NAME]` table and the defaults, as they are in the file."""

    name: str
    worker: Table
    defaults: Table
    files: EnvFiles

    def replaced(self, number: int) -> Replaced:
        """The tables of the worker with that number."""
        return _Replacement(self, number).result()

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

    def warnings(self) -> Iterator[ConfigFinding]:
        """What looks like a placeholder and is not replaced."""
        for key in EXPANDED if self.is_expanded else ():
            if key in self.worker:
                yield from (
                    ConfigFinding(("worker", self.name, key), reason)
                    for reason in mistaken(key, self.worker[key])
                )


class _Replacement:
    """Replaces the placeholders of one worker: files first, then variables, then all that refers to these."""

    def __init__(self, tables: WorkerTables, number: int) -> None:
        self._tables = tables
        self._worker = dict(tables.worker)
        self._defaults = dict(tables.defaults)
        self._findings: list[ConfigFinding] = []
        self._obstacle = ""
        name = tables.name
        self._values = Values(WorkerWords(number, name, f"worker:{name}:{number}"), tables.files.environment)

    def result(self) -> Replaced:
        """The tables without placeholders."""
        values = self._values
        self._replace("env_file")
        from_files = self._read_files()
        values.variables = {**values.variables, **from_files}
        self._replace("env")
        own = own_variables(self._defaults) | own_variables(self._worker)
        values.variables = {**values.variables, **own}
        for key in EXPANDED:
            if key not in ("env_file", "env"):
                self._replace(key)
        if self._obstacle:
            self._leave_out_what_is_unclear()
        secrets = (
            value for name, value in values.used.items() if len(value) >= _SHORTEST and is_secret(name)
        )
        return Replaced(
            self._worker,
            self._defaults,
            tuple(self._findings),
            frozenset(secrets),
            from_files,
            self._obstacle,
        )

    def _leave_out_what_is_unclear(self) -> None:
        """Drop settings that refer to variables: without their values they could be refused."""
        for after, before in ((self._worker, self._tables.worker), (self._defaults, self._tables.defaults)):
            for key in _OPTIONAL:
                if after.get(key) != before.get(key):
                    del after[key]

    def _replace(self, key: str) -> None:
        if self._tables.is_expanded:
            for table, here in self._places():
                if key in table:
                    problems: Problems = []
                    table[key] = with_values(key, table[key], self._values.replaced, problems)
                    self._findings += (
                        ConfigFinding((*here, *path), reason, wrong_in_itself=True)
                        for path, reason in problems
                    )

    def _read_files(self) -> Mapping[str, str]:
        """The variables of the files that the worker names, else the defaults."""
        for table, here in self._places():
            if "env_file" in table:
                found = self._tables.files.variables(table["env_file"])
                self._findings += (ConfigFinding((*here, "env_file"), each) for each in found.problems)
                self._values.is_complete = not (found.problems or found.obstacles)
                self._obstacle = "; ".join((*found.obstacles, *found.problems))
                return found.variables
        return {}

    def _places(self) -> tuple[tuple[dict[str, Any], KeyPath], tuple[dict[str, Any], KeyPath]]:
        return (self._worker, ("worker", self._tables.name)), (self._defaults, ("defaults",))


def own_variables(table: Table) -> dict[str, str]:
    """The variables of a table that are texts; others are refused later."""
    env = table.get("env")
    return {k: v for k, v in env.items() if isinstance(v, str)} if isinstance(env, Mapping) else {}
