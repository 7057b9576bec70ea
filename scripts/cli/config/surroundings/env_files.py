"""The files of environment variables that workers name; each is read once for a configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rekindle.actors.errors import SpecError
from rekindle.actors.processes.spawn.env_file import read_env_file

from ..paths import absolute


class EnvFiles:
    """Reads the files that are named relative to a folder."""

    def __init__(self, folder: Path, *, reads: bool) -> None:
        self.environment: Mapping[str, str] = dict(os.environ)
        """The variables of the supervisor."""
        self._folder = folder
        self._reads = reads
        self._read: dict[Path, Mapping[str, str] | tuple[str, ...]] = {}

    def variables(self, names: object) -> tuple[dict[str, str], list[str]]:
        """The variables of these files, a later one first, and what is wrong with the files."""
        variables: dict[str, str] = {}
        problems: list[str] = []
        for name in (names,) if isinstance(names, str) else names if isinstance(names, list) else ():
            found = self._of(name) if isinstance(name, str) and self._reads else {}
            if isinstance(found, Mapping):
                variables |= found
            else:
                problems += found
        return variables, problems

    def _of(self, name: str) -> Mapping[str, str] | tuple[str, ...]:
        try:
            path = absolute(name, self._folder)
        except ValueError as error:
            return (str(error),)
        if path not in self._read:
            try:
                self._read[path] = read_env_file(path, self.environment)
            except SpecError as error:
                self._read[path] = tuple(f"{each.field}: {each.reason}" for each in error.problems)
        return self._read[path]
