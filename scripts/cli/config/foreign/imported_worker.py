"""Pure: a worker of another supervisor's file, written as TOML for Rekindle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...render.text import printable
from ..file_tables import WORKER_NAME
from ..loader import parse
from ..problems import ConfigError, ConfigProblem, KeyPath
from ..toml.toml_text import table_text


@dataclass(slots=True)
class ImportedWorker:
    """One worker, or the defaults: its settings by table, and remarks about them."""

    at: KeyPath
    """The key of its TOML table."""
    settings: dict[str, object] = field(default_factory=dict)
    tables: dict[str, dict[str, object]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def called(cls, name: str) -> ImportedWorker:
        """A worker with the nearest name that Rekindle allows."""
        worker = cls(("worker", _worker_name(name)))
        if worker.name != name:
            worker.remarks.append(f"Was called {name}.")
        return worker

    @classmethod
    def defaults(cls, whose: str, *, restart_on: str, short_runs: int) -> ImportedWorker:
        """The defaults of another supervisor, which gives up only after short runs."""
        defaults = cls(("defaults",))
        defaults.remarks.append(f"Defaults for every worker. As in {whose}, a worker is given up")
        defaults.remarks.append("after max_consecutive runs in a row shorter than reset_after_healthy_s.")
        defaults.settings["preset"] = "service"
        defaults.tables["restart"] = {
            "restart_on": restart_on,
            "max_in_window": None,
            "max_lifetime": None,
            "max_consecutive": short_runs,
            "reset_after_healthy_s": 1,
        }
        return defaults

    @classmethod
    def plain_defaults(cls) -> ImportedWorker:
        """The defaults for files that say little about restarts."""
        return cls(("defaults",), {"preset": "service"})

    @property
    def name(self) -> str:
        """Its name in Rekindle."""
        return self.at[-1]

    @property
    def never_restarted(self) -> bool:
        """Whether a worker that ended stays down, so that limits have no meaning."""
        return self.tables.get("restart", {}).get("restart_on") == "never"

    def leave_out(self, key: str, value: object) -> None:
        """Remark that a key has no equivalent."""
        self.remarks.append(f"Left out: {key} = {value}.")

    def tell_of_output(self) -> None:
        """Remark where its output goes: it has no log files of its own."""
        self.remarks.append(f"Its output goes to Rekindle's log; to show it: rekindle output {self.name}")

    def wait_for_an_order(self) -> None:
        """Start none at first, and remark how to start as many as in the old file."""
        many, self.settings["count"] = self.settings.get("count", 1), 0
        self.remarks.append(
            f"Not started automatically (autostart). To start it: rekindle scale {self.name} {many}"
        )

    def set(self, table: str, key: str, value: object) -> None:
        """Set one value in one of its tables."""
        self.tables.setdefault(table, {})[key] = value

    def text(self) -> str:
        """Its part of the TOML file."""
        remarks = "".join(f"# {printable(remark)}\n" for remark in self.remarks)
        own = [table_text(self.at, self.settings)] if self.settings else []
        further = (table_text((*self.at, name), table) for name, table in self.tables.items())
        return remarks + "\n".join((*own, *further))


def _worker_name(name: str) -> str:
    allowed = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:48]
    return allowed if WORKER_NAME.fullmatch(allowed) else "worker"


def file_text(
    path: Path, defaults: ImportedWorker, workers: Sequence[ImportedWorker], left_out: Iterable[str]
) -> str:
    """The whole TOML file, which loads without problems.

    Raises:
        ConfigError: the old file has settings that Rekindle refuses.
    """
    if not workers:
        raise ConfigError([ConfigProblem(str(path), "does not name a program to run")])
    names = [worker.name for worker in workers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        reason = f"has several workers that would be called {', '.join(twice)}: rename them"
        raise ConfigError([ConfigProblem(str(path), reason)])
    heading = [f"Imported from {path.name}.", *(f"Left out: {each}." for each in left_out)]
    heading.append("Workers inherit few variables: list further ones in inherit_env.")
    text = "".join(f"# {printable(line)}\n" for line in heading)
    text = "\n".join((text, *(part.text() for part in (defaults, *workers))))
    try:
        parse(text, path)
    except ConfigError as error:
        found = (ConfigProblem(str(path), p.reason, p.key, p.value, p.origin) for p in error.problems)
        raise ConfigError(list(found)) from None
    return text
