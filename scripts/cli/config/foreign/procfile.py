"""Pure: the process types of a Procfile, as a Rekindle file."""

from __future__ import annotations

import re
from pathlib import Path

from ..problems import ConfigError, ConfigProblem
from ..surroundings.foreign_text import number_mark, translated
from .imported_worker import ImportedWorker, file_text
from .shell_lines import command_of

_LINE = re.compile(r"(?P<name>[A-Za-z0-9_-]+):\s*(?P<command>\S.*)")
FIRST_PORT, PORTS_APART = 5000, 100
RELEASE = "release"


def from_procfile(text: str, path: Path) -> str:
    """The TOML of a Procfile, which loads without problems.

    Raises:
        ConfigError: the file is not valid; with all its problems.
    """
    workers: list[ImportedWorker] = []
    problems: list[ConfigProblem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            before = sum(worker.name != RELEASE for worker in workers)
            workers.append(_worker(line.strip(), FIRST_PORT + PORTS_APART * before))
        except ValueError as error:
            problems.append(ConfigProblem(str(path), str(error), line=number))
    if problems:
        raise ConfigError(problems)
    if any(worker.name == RELEASE for worker in workers):
        _run_first(workers)
    return file_text(path, _defaults(), workers, ())


def _defaults() -> ImportedWorker:
    defaults = ImportedWorker.plain_defaults()
    defaults.remarks.append(
        "foreman and honcho end everything when one process ends: essential = true does so."
    )
    defaults.remarks.append('They also read the file .env: env_file = ".env" does so.')
    return defaults


def _worker(line: str, port: int) -> ImportedWorker:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError("is not supported: a line must be `name: command`")
    worker = ImportedWorker.called(found["name"])
    worker.settings["command"] = command_of(found["command"])
    if "PORT" in found["command"]:
        worker.set("env", "PORT", translated(number_mark(port)))
    return worker


def _run_first(workers: list[ImportedWorker]) -> None:
    """The release phase ends before the other processes start."""
    for worker in workers:
        if worker.name == RELEASE:
            worker.settings["kind"] = "once"
            worker.tables.pop("env", None)
        else:
            worker.settings["after"] = [RELEASE]
