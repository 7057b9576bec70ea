"""Pure: a worker as another supervisor's file describes it, written as Rekindle's."""

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

HANDED_DOWN = "Rekindle hands few variables down: name further ones in inherit_env"


@dataclass(slots=True)
class BroughtOver:
    """One worker, or the defaults: settings by their tables, and what is to be said about them."""

    at: KeyPath
    """The table that it becomes."""
    settings: dict[str, object] = field(default_factory=dict)
    tables: dict[str, dict[str, object]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def called(cls, name: str) -> BroughtOver:
        """A worker that was called so, under the nearest name that it may have here."""
        worker = cls(("worker", _worker_name(name)))
        if worker.name != name:
            worker.remarks.append(f"Was called {name}.")
        return worker

    @classmethod
    def defaults(cls, whose: str, *, restart_on: str, short_runs: int) -> BroughtOver:
        """What another supervisor does unless it is told otherwise; only short runs make it give up."""
        defaults = cls(("defaults",))
        defaults.remarks.append(f"For every worker that does not say otherwise. As in {whose} it is given up")
        defaults.remarks.append("after max_consecutive runs in a row shorter than reset_after_healthy_s.")
        defaults.tables["restart"] = {
            "restart_on": restart_on,
            "max_in_window": None,
            "max_lifetime": None,
            "max_consecutive": short_runs,
            "reset_after_healthy_s": 1,
        }
        return defaults

    @property
    def name(self) -> str:
        """What it is called here."""
        return self.at[-1]

    @property
    def never_restarted(self) -> bool:
        """Whether one that ended stays where it is, so that no limit means anything."""
        return self.tables.get("restart", {}).get("restart_on") == "never"

    def leave_out(self, key: str, value: object) -> None:
        """Say that there is nothing like it here."""
        self.remarks.append(f"Left out: {key} = {value}.")

    def tell_of_output(self) -> None:
        """Say where what it writes is to be found; it has no files of its own."""
        self.remarks.append(f"What it writes goes to Rekindle's log, and to: rekindle output {self.name}")

    def wait_for_an_order(self) -> None:
        """Have none of them at first, and say how to have as many as the old file says."""
        many, self.settings["count"] = self.settings.get("count", 1), 0
        self.remarks.append(
            f"Not started by itself (autostart). To start it: rekindle scale {self.name} {many}"
        )

    def set(self, table: str, key: str, value: object) -> None:
        """Set one value in one of its tables."""
        self.tables.setdefault(table, {})[key] = value

    def text(self) -> str:
        """Its part of the file."""
        remarks = "".join(f"# {printable(remark)}\n" for remark in self.remarks)
        own = [table_text(self.at, self.settings)] if self.settings else []
        further = (table_text((*self.at, name), table) for name, table in self.tables.items())
        return remarks + "\n".join((*own, *further))


def _worker_name(name: str) -> str:
    allowed = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:48]
    return allowed if WORKER_NAME.fullmatch(allowed) else "worker"


def file_text(
    path: Path, defaults: BroughtOver, workers: Sequence[BroughtOver], left_out: Iterable[str]
) -> str:
    """The whole file; it loads.

    Raises:
        ConfigError: Rekindle refuses what the old file says.
    """
    if not workers:
        raise ConfigError([ConfigProblem(str(path), "names nothing to run")])
    names = [worker.name for worker in workers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        reason = f"has several workers that would be called {', '.join(twice)}: rename them"
        raise ConfigError([ConfigProblem(str(path), reason)])
    heading = [f"Imported from {path.name}.", *(f"Left out: {each}." for each in left_out), f"{HANDED_DOWN}."]
    text = "".join(f"# {printable(line)}\n" for line in heading)
    text = "\n".join((text, *(part.text() for part in (defaults, *workers))))
    try:
        parse(text, path)
    except ConfigError as error:
        found = (ConfigProblem(str(path), p.reason, p.key, p.value, p.origin) for p in error.problems)
        raise ConfigError(list(found)) from None
    return text
