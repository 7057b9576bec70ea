"""Pure except for `~`: the directories and the database of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..state_files import DATABASE_NAME
from .file_tables import Given
from .problems import ConfigFinding, KeyPath

STATE_DIR = ".rekindle"

_DATABASE_URL = re.compile(r"sqlite(\+\w+)?:///.+|postgres(ql)?(\+\w+)?://.*")


def absolute(text: str, folder: Path) -> Path:
    """A path in a file of that folder, as an absolute path.

    Raises:
        ValueError: the text is not a path.
    """
    if not text or "\0" in text:
        raise ValueError("must be a path")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise ValueError("names the home directory of an unknown user") from None


def resolved_paths(
    here: KeyPath, table: Given, names: Iterable[str], folder: Path, findings: list[ConfigFinding]
) -> dict[str, Any]:
    """The table with absolute paths; an invalid path is added to the findings."""
    resolved = dict(table)
    for name in names:
        if resolved.get(name) is not None:
            try:
                resolved[name] = absolute(table[name], folder)
            except ValueError as error:
                findings.append(ConfigFinding((*here, name), str(error), table[name]))
                resolved[name] = folder
    return resolved


def state_dir_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> Path:
    """The state directory."""
    given = {"state_dir": STATE_DIR, **file}
    return Path(resolved_paths((), given, ("state_dir",), folder, findings)["state_dir"])


def database_of(file: Given, folder: Path, state_dir: Path, findings: list[ConfigFinding]) -> str:
    """The path or URL of the database; a URL stays unchanged."""
    database: str = file.get("database", str(state_dir / DATABASE_NAME))
    if "://" not in database:
        return str(resolved_paths((), {"database": database}, ("database",), folder, findings)["database"])
    if not _DATABASE_URL.fullmatch(database):
        findings.append(
            ConfigFinding(("database",), "must be a path, sqlite:///PATH or postgresql://…", database)
        )
    return database


def worker_database_of(file: Given, database: str, findings: list[ConfigFinding]) -> str | None:
    """The address for workers that serve queues, if the file has one."""
    address: str | None = file.get("worker_database")
    if address is not None and not (_is_server(address) and _is_server(database)):
        reason = "must be postgresql://… of the server that `database` names"
        findings.append(ConfigFinding(("worker_database",), reason))
    return address


def _is_server(database: str) -> bool:
    return _DATABASE_URL.fullmatch(database) is not None and database.startswith("postgres")
