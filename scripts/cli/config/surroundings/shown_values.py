"""Pure: how settings with placeholders are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rekindle.actors.spec.surroundings import Surroundings
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.views.known_secrets import MASK
from rekindle.actors.views.redaction import masked

from ..file_tables import as_table
from ..model import WorkerTable
from .placeholders import escaped
from .settings import TABLES
from .worker_tables import EXPANDED

_PATHS = ("env_file", "cwd", "stdin")
_PLAIN = ("command", "env", *_PATHS)


def shown_env(spec: WorkerSpec, group: WorkerTable) -> dict[str, Any]:
    """The variables of a worker; what comes from a file is not shown."""
    hides = {name: MASK for name in spec.env if name in group.from_files}
    return {**{name: masked(name, value) for name, value in spec.env.items()}, **hides}


def shown_surroundings(surroundings: Surroundings) -> dict[str, Any]:
    """The settings that are not the default; limits as tables."""
    usual = as_table(Surroundings())
    settings = {key: value for key, value in as_table(surroundings).items() if value != usual[key]}
    tables = {key: as_table(settings[key]) for key in TABLES if key in settings}
    return settings | {
        key: {name: value for name, value in table.items() if value is not None}
        for key, table in tables.items()
    }


def file_settings(group: WorkerTable, env: Mapping[str, Any]) -> dict[str, Any]:
    """The files of variables, and the variables that do not come from them."""
    own = {name: value for name, value in env.items() if name not in group.from_files}
    return {"env_file": list(group.env_files), "env": own} if group.env_files else {}


def written_settings(group: WorkerTable, folder: Path) -> dict[str, Any]:
    """The plain settings with placeholders, as they are in the file; paths are relative to its folder."""
    plain = {key: masked(key, value) for key, value in group.written.items() if key in _PLAIN}
    return plain | {key: _in_folder(plain[key], folder) for key in _PATHS if key in plain}


def written_table(group: WorkerTable, table: str, folder: Path) -> dict[str, Any]:
    """The settings with placeholders of a policy, as they are in the file, but with absolute paths."""
    value = group.written.get(table, {})
    settings = dict(value) if isinstance(value, Mapping) else {}
    is_path = table == "log" and settings.get("file", "none") != "none"
    return settings | {"file": _in_folder(settings["file"], folder)} if is_path else settings


def expand_setting(group: WorkerTable, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`expand = false`, where a value stands for itself and has the form of a placeholder."""
    plain = (settings.get(key) for key in EXPANDED if key not in group.written)
    texts = [text for value in plain for text in _texts(value)]
    return {"expand": False} if not group.written and any(escaped(text) != text for text in texts) else {}


def hidden(value: Any, secrets: Iterable[str]) -> Any:
    """The value without these texts."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case Mapping():
            return {name: hidden(each, secrets) for name, each in value.items()}
        case list() | tuple():
            return [hidden(each, secrets) for each in value]
        case _:
            return value


def _in_folder(path: Any, folder: Path) -> Any:
    if isinstance(path, list):
        return [_in_folder(each, folder) for each in path]
    is_relative = isinstance(path, str) and not path.startswith(("/", "~", "${"))
    return str(folder / path) if is_relative else path


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    return [text for each in value for text in _texts(each)] if isinstance(value, Iterable) else []
