"""Pure but for `~`: the directories and the database that a file names."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import UNSET

from ..state_files import DATABASE_NAME
from .problems import Finding
from .structs import File

_DATABASE_URL = re.compile(r"sqlite(\+\w+)?:///.+|postgres(ql)?(\+\w+)?://.*")


def absolute(text: str, folder: Path) -> Path:
    """A path as it is meant in a file of that folder.

    Raises:
        ValueError: it is no path.
    """
    if not text or "\0" in text:
        raise ValueError("must be a path")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise ValueError("names the home of nobody that is known here") from None


def state_dir_of(file: File, folder: Path, findings: list[Finding]) -> Path:
    """The state directory."""
    try:
        return absolute(file.state_dir, folder)
    except ValueError as error:
        findings.append(Finding(("state_dir",), str(error), file.state_dir))
        return folder


def database_of(file: File, folder: Path, state_dir: Path, findings: list[Finding]) -> str:
    """The database's path or address; an address is taken as it is."""
    if file.database is UNSET:
        return str(state_dir / DATABASE_NAME)
    if "://" in file.database:
        if not _DATABASE_URL.fullmatch(file.database):
            findings.append(
                Finding(("database",), "must be a path, sqlite:///PATH or postgresql://…", file.database)
            )
        return file.database
    try:
        return str(absolute(file.database, folder))
    except ValueError as error:
        findings.append(Finding(("database",), str(error), file.database))
        return str(state_dir / DATABASE_NAME)
