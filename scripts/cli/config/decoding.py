"""Pure: decodes the tables of a file into settings, and reports every problem, not only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args, get_origin

from rekindle.actors.spec.validation import Setting, from_file

from .file_tables import Given, is_table, keys_of
from .problems import NOTHING, Finding, KeyPath

Unknown = Callable[[KeyPath, Iterable[str]], str]
"""Returns the reason for an unknown key, given its path and the known keys of the table."""


def decoded(table: Mapping[str, object], kind: type, unknown: Unknown) -> tuple[Given, list[Finding]]:
    """The settings that fit, and findings about the others."""
    reader = _Reader(unknown)
    return reader.table(table, keys_of(kind), ()), reader.findings


class _Reader:
    """Walks tables and their declarations side by side."""

    def __init__(self, unknown: Unknown) -> None:
        self.findings: list[Finding] = []
        self._unknown = unknown

    def table(self, table: Mapping[str, object], known: Mapping[str, Setting], path: KeyPath) -> Given:
        """The values of a table that fit its known keys."""
        fitting: dict[str, Any] = {}
        for key, value in table.items():
            here = (*path, key)
            if key not in known:
                self.findings.append(Finding(here, self._unknown(here, known), value))
            elif (read := self._read(value, known[key], here)) is not NOTHING:
                fitting[key] = read
        return fitting

    def _read(self, value: object, declared: Setting, path: KeyPath) -> object:
        hint = declared.hint
        by_name = get_origin(hint) is Mapping
        if by_name and isinstance(value, Mapping):
            return self.table(value, dict.fromkeys(value, Setting(get_args(hint)[1])), path)
        if is_table(hint) and isinstance(value, Mapping):
            return self.table(value, keys_of(hint), path)
        reason = "must be a table" if by_name or is_table(hint) else declared.reason(value)
        if reason is None:
            return from_file(value, hint)
        self.findings.append(Finding(path, reason, value))
        return NOTHING
