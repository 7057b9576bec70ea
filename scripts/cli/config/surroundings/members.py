"""The workers of a file, each with its own number in place of the placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rekindle.actors.spec.worker_spec import WorkerSpec

from ..decoding import Unknown, decoded
from ..file_tables import File, Given
from ..model import WorkerTable
from ..problems import ConfigFinding
from ..workers.layers import Layers
from .env_files import EnvFiles
from .worker_tables import Replaced, Table, WorkerTables, own_variables

Made = Callable[[Layers, list[ConfigFinding]], WorkerTable]
"""Makes a group of the settings of one worker."""


class WrittenTables:
    """The tables of all workers of a file, as they are written."""

    def __init__(self, raw: Mapping[str, Any], files: EnvFiles, unknown: Unknown) -> None:
        self._raw = raw
        self._unknown = unknown
        self._defaults = _table(raw, "defaults")
        workers = _table(raw, "worker")
        self._tables = {
            name: WorkerTables(name, table, self._defaults, files)
            for name, table in workers.items()
            if isinstance(table, Mapping)
        }
        self._sample = WorkerTables("name", {}, self._defaults, files).replaced(0)
        self._first = {name: tables.replaced(0) for name, tables in self._tables.items()}

    def file(self) -> tuple[Given, list[ConfigFinding]]:
        """The settings of the file, those of the first worker for each group, and all findings."""
        raw = dict(self._raw)
        if self._defaults:
            raw["defaults"] = self._sample.defaults
        if self._first:
            raw["worker"] = {
                **self._raw["worker"],
                **{name: each.worker for name, each in self._first.items()},
            }
        given, findings = decoded(raw, File, self._unknown)
        unclear = [each for found in (self._sample, *self._first.values()) for each in found.findings]
        return given, [*unclear, *findings]

    def layers(self, name: str, file: Given) -> Layers:
        """The sources of the settings of the first worker of a group."""
        tables = self._tables.get(name)
        written = frozenset(tables.worker) if tables is not None else frozenset[str]()
        layers = Layers(name, file["worker"][name], file.get("defaults", {}), written)
        first = self._first.get(name)
        if first is None:
            return layers
        layers = replace(layers, file_variables=first.file_variables, obstacle=first.obstacle)
        if first.defaults == self._sample.defaults:
            return layers
        return replace(layers, defaults=self._given(name, first)[0].get("defaults", {}))

    def numbered(self, group: WorkerTable, made: Made) -> WorkerTable:
        """The group, whose workers differ by their numbers if it uses placeholders."""
        tables = self._tables.get(group.name)
        written = {} if tables is None else tables.written()
        if tables is None:
            return group
        first = self._first[group.name]
        own = {*own_variables(first.defaults), *own_variables(first.worker)}
        group = replace(group, from_files=frozenset(first.file_variables.keys() - own))
        if not written:
            return group
        return replace(
            group, written=written, secrets=first.secrets, of_number=partial(self._spec, tables, made)
        )

    def warnings(self) -> Iterator[ConfigFinding]:
        """What looks like a placeholder and is not replaced."""
        for tables in self._tables.values():
            yield from tables.warnings()

    def _spec(
        self, tables: WorkerTables, made: Made, number: int, findings: list[ConfigFinding]
    ) -> WorkerSpec:
        name = tables.name
        replaced = tables.replaced(number)
        given, found = self._given(name, replaced)
        findings += found
        written = frozenset(tables.worker)
        defaults = given.get("defaults", {})
        layers = Layers(
            name, given["worker"][name], defaults, written, replaced.file_variables, replaced.obstacle
        )
        template = made(layers, findings).template
        # By the id of the template: a name that is refused is not part of an id.
        return replace(template, id=f"{template.id.rpartition(':')[0]}:{number}")

    def _given(self, name: str, replaced: Replaced) -> tuple[Given, list[ConfigFinding]]:
        raw = {"worker": {name: replaced.worker}, "defaults": replaced.defaults}
        given, findings = decoded(raw, File, self._unknown)
        return given, [*replaced.findings, *findings]


def _table(raw: Mapping[str, Any], key: str) -> Table:
    table = raw.get(key)
    return table if isinstance(table, Mapping) else {}
