"""Reads the tables of a scenario file, and reports all problems with their lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from rekindle.actors.spec.validation import nearest

from ..config.problems import NOTHING, ConfigError, ConfigProblem, KeyPath, dotted, shown
from ..config.toml.line_numbers import line_numbers, line_of
from .fields import Fields


class TableReader:
    """Reads tables, and notes the problems."""

    def __init__(self, raw: Mapping[str, object]) -> None:
        self.problems: list[tuple[KeyPath, str, object]] = []
        self.raw = raw

    def note(self, where: KeyPath, problem: str, value: object = NOTHING) -> None:
        """Note a problem at a key."""
        self.problems.append((where, problem, value))

    def fields(self, table: object, where: KeyPath, known: Iterable[str]) -> Fields:
        """The values of a table that may have these keys."""
        names = tuple(known)
        if not isinstance(table, Mapping):
            self.note(where, "must be a table", table)
            return Fields({}, where, self.note)
        for key in table:
            if key not in names:
                hint = nearest(key, names) or f"; known keys: {', '.join(names)}"
                self.note((*where, key), f"is not a known key{hint}")
        return Fields(table, where, self.note)

    def tables(self, name: str) -> Mapping[str, object]:
        """The tables `[name.…]`."""
        found = self.raw.get(name, {})
        if isinstance(found, Mapping):
            return found
        self.note((name,), f"must be tables: [{name}.NAME]", found)
        return {}

    def rows(self, name: str) -> list[tuple[KeyPath, object]]:
        """The tables `[[name]]`, with their places."""
        found = self.raw.get(name, [])
        if isinstance(found, list):
            return [((name, str(index)), row) for index, row in enumerate(found)]
        self.note((name,), f"must be written as [[{name}]]", found)
        return []

    def word(self, where: KeyPath, row: object, moves: Mapping[str, type]) -> str | None:
        """The word that names the move of a table."""
        keys = list(row) if isinstance(row, Mapping) else []
        words = [str(key) for key in keys if key in moves]
        if len(words) == 1:
            return words[0]
        if words:
            self.note(where, f"has more than one move: {', '.join(words)}; write one table for each")
            return None
        odd = next((key for key in keys if key not in _keys(moves.values())), None)
        hint = "" if odd is None else nearest(odd, moves)
        what = "does not name a move" if odd is None else f"{odd!r} is not a move"
        self.note(where if odd is None else (*where, odd), f"{what}{hint}; the moves are {', '.join(moves)}")
        return None

    def refuse(self, content: str, path: Path) -> None:
        """Raise if there are problems.

        Raises:
            ConfigError: with every problem that was found.
        """
        if not self.problems:
            return
        lines = line_numbers(content)
        placed = [_placed(path, where, problem, value, lines) for where, problem, value in self.problems]
        raise ConfigError(sorted(dict.fromkeys(placed), key=lambda each: each.line or 0))


def _keys(moves: Iterable[type]) -> Collection[str]:
    """Every key that may stand beside the word of a move."""
    fields = {name for move in moves for name in move.__dataclass_fields__}  # type: ignore[attr-defined]
    return {"at", "during", "of", *fields}


def _placed(
    path: Path, where: KeyPath, problem: str, value: object, lines: Mapping[KeyPath, int]
) -> ConfigProblem:
    key = dotted(tuple(part for part in where if not part.isdigit()))
    return ConfigProblem(str(path), problem, key=key, value=shown(where, value), line=line_of(where, lines))
