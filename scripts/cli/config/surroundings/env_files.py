"""The files of environment variables that workers name; each is read once for a configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors.errors import SpecError
from rekindle.actors.processes.spawn.env_file import read_env_file
from rekindle.actors.processes.trusted_path import may_be_of_others
from rekindle.actors.spec.worker_spec import LISTENING, RESERVED

from ..paths import absolute

_RESERVED = RESERVED | {"NOTIFY_SOCKET", *LISTENING}
"""What the settings of a worker, depending on others of them, refuse among its variables."""


@dataclass(frozen=True, slots=True)
class FileVariables:
    """What the files of one worker contain."""

    variables: Mapping[str, str]
    problems: tuple[str, ...] = ()
    """Of files that only the supervisor's user and root can have caused."""
    obstacles: tuple[str, ...] = ()
    """Of files in which another user can have caused them, as in a folder of the worker's own user."""


class EnvFiles:
    """Reads the files that are named relative to a folder."""

    def __init__(self, folder: Path, *, reads: bool) -> None:
        self.environment: Mapping[str, str] = dict(os.environ)
        """The variables of the supervisor."""
        self._folder = folder
        self._reads = reads
        self._read: dict[Path, FileVariables] = {}

    def variables(self, names: object) -> FileVariables:
        """The variables of these files, a later one first, and what is wrong with the files."""
        names = (names,) if isinstance(names, str) else names if isinstance(names, list) else ()
        found = [self._of(name) for name in names if isinstance(name, str) and self._reads]
        return FileVariables(
            {name: value for each in found for name, value in each.variables.items()},
            tuple(problem for each in found for problem in each.problems),
            tuple(obstacle for each in found for obstacle in each.obstacles),
        )

    def _of(self, name: str) -> FileVariables:
        try:
            path = absolute(name, self._folder)
        except ValueError as error:
            return FileVariables({}, (str(error),))
        if path not in self._read:
            self._read[path] = _read(path, self.environment)
        return self._read[path]


def _read(path: Path, environment: Mapping[str, str]) -> FileVariables:
    of_others = may_be_of_others(str(path))
    try:
        variables = read_env_file(path, environment)
    except SpecError as error:
        reasons = tuple(f"{each.field}: {each.reason}" for each in error.problems)
        return FileVariables({}, obstacles=reasons) if of_others else FileVariables({}, reasons)
    if of_others and (refused := [name for name in variables if name in _RESERVED]):
        return FileVariables({}, obstacles=(f"{path}: {refused[0]} is reserved: Rekindle sets it",))
    return FileVariables(variables)
