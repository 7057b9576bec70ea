"""Pure: decodes the tables of a file into settings, and reports every problem, not only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args, get_origin

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.restart_policy import RestartOn
from rekindle.actors.spec.validation import Setting, from_file, settings_of

from .file_tables import Given, arguments, is_table, keys_of, short_key
from .problems import NOTHING, ConfigFinding, KeyPath

_USUAL_KEYS = {"log": "file", "ready": "http", "release": "recipe"}
"""What is meant by a text in place of a table."""

Unknown = Callable[[KeyPath, Iterable[str]], str]
"""Returns the reason for an unknown key, given its path and the known keys of the table."""


def decoded(table: Mapping[str, object], kind: type, unknown: Unknown) -> tuple[Given, list[ConfigFinding]]:
    """The settings that fit, and findings about the others."""
    reader = _Reader(unknown)
    return reader.table(table, keys_of(kind), ()), reader.findings


def _no_table(path: KeyPath, value: object) -> str:
    key = path[-1]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        name = value[0].get("name")
        one = f"{'.'.join(path)}.{name if isinstance(name, str) else 'NAME'}"
        return f"must be a table for each name: [{one}] instead of [[{'.'.join(path)}]]"
    word = value.replace("-", "_") if isinstance(value, str) else ""
    if key == "restart" and word in [each.value for each in RestartOn]:
        return f'must be a table: restart = {{ restart_on = "{word}" }}'
    if key == "release" and value == "rolling":
        return "must be a table: it is about the work that a dead worker held; use rollout = { surge = 1 }"
    if isinstance(value, str) and key in _USUAL_KEYS:
        return f'must be a table, such as {key} = {{ {_USUAL_KEYS[key]} = "{value}" }}'
    return "must be a table"


def _table_of(hint: Any) -> Any:
    """The kind of table where a list may stand as well; else the same."""
    return next((part for part in get_args(hint) if get_origin(part) is Mapping), hint)


class _Reader:
    """Walks tables and their declarations side by side."""

    def __init__(self, unknown: Unknown) -> None:
        self.findings: list[ConfigFinding] = []
        self._unknown = unknown

    def table(self, table: Mapping[str, object], known: Mapping[str, Setting], path: KeyPath) -> Given:
        """The values of a table that fit its known keys."""
        fitting: dict[str, Any] = {}
        for key, value in table.items():
            here = (*path, key)
            if key not in known:
                self.findings.append(ConfigFinding(here, self._unknown(here, known), value))
            elif (read := self._read(value, known[key], here)) is not NOTHING:
                fitting[key] = read
        return fitting

    def _read(self, value: object, declared: Setting, path: KeyPath) -> object:
        hint = _table_of(declared.hint) if isinstance(value, Mapping) else declared.hint
        by_name = get_origin(hint) is Mapping
        if by_name and isinstance(value, Mapping):
            return self.table(value, dict.fromkeys(value, Setting(get_args(hint)[1])), path)
        if (short := short_key(hint)) is not None:
            return self._short(value, short, hint, path)
        if is_table(hint) and isinstance(value, Mapping):
            return self.table(value, keys_of(hint), path)
        reason = _no_table(path, value) if by_name or is_table(hint) else declared.reason(value)
        if reason is None:
            return from_file(value, hint)
        self.findings.append(ConfigFinding(path, reason, value))
        return NOTHING

    def _short(self, value: object, short: Setting, kind: Any, path: KeyPath) -> object:
        """What a plain value or a table describes; with findings only an example, as a placeholder."""
        table: Mapping[str, object] = value if isinstance(value, Mapping) else {short.key: value}
        if short.key not in table:
            self.findings.append(ConfigFinding(path, f"must have a value for {short.key}", value))
        before = len(self.findings)
        given = self.table(table, keys_of(kind), path)
        if short.key in given:
            try:
                return kind(**arguments(kind, given))
            except SpecError as error:
                keys = {name: each.key for name, each in settings_of(kind).items()}
                self.findings += (
                    ConfigFinding((*path, keys[each.field]), each.reason, each.value)
                    for each in error.problems
                )
        if table is not value:  # the value stands at the key itself
            self.findings[before:] = [replace(each, path=path) for each in self.findings[before:]]
        return kind(kind.EXAMPLE)
