"""Every command of `rekindle`: where it lives and what the help says of it, without loading any.

A command is a function of its own name in a module of this package or beside it. The summary stands
here too, so that `rekindle --help` loads no command at all; a test keeps it equal to the first
sentence of the command's own help.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import NamedTuple

import click

_PACKAGE = __name__.rsplit(".", 2)[0]


class Entry(NamedTuple):
    """One command."""

    module: str
    summary: str


SECTIONS = {
    "Run": {
        "run": Entry("commands.run.run", "Run the workers of a TOML file until SIGINT or SIGTERM."),
        "shutdown": Entry("commands.run.shutdown", "Stop all workers, then the supervisor, as SIGTERM does."),
        "demo": Entry("commands.run.demo", "Run four workers and show them live; Ctrl-C stops everything."),
    },
    "Look": {
        "status": Entry("commands.look.status", "Show every worker, or these, and what happens next."),
        "explain": Entry("commands.look.status", "Say why a worker is as it is, and what can be done."),
        "history": Entry("commands.look.history", "Show a worker's deaths and the decisions on them."),
        "report": Entry(
            "commands.look.history", "Write everything about a worker for a bug report, as Markdown."
        ),
        "timeline": Entry(
            "commands.look.timeline", "Show what happened to a worker, line by line, the newest last."
        ),
        "output": Entry(
            "commands.look.output", "Print the last lines that these workers wrote, or all of them."
        ),
        "resources": Entry(
            "commands.look.status", "Show what every worker uses now, with all that it started."
        ),
        "alerts": Entry(
            "commands.look.alerts", "Show what is wrong, the worst first; a crash loop is one alert."
        ),
        "audit": Entry("commands.look.status", "Show who gave which order, and what came of it."),
        "events": Entry(
            "commands.look.events",
            "Show what happened: starts, deaths and what was decided on them, failures, outages.",
        ),
        "top": Entry("commands.look.top", "Watch the workers live, and act on them with a key."),
        "jobs": Entry(
            "commands.look.jobs", "Put jobs into queues, look at them, and deal with those that kill workers."
        ),
        "dashboard": Entry(
            "commands.look.dashboard",
            "Print a link to the dashboard; it holds a token, so keep it to yourself.",
        ),
    },
    "Act": {
        "ack": Entry(
            "commands.look.alerts",
            "Take note of an alert: it is quiet unless it gets worse, and stays until it is over.",
        ),
        "pause": Entry("commands.act.restart", "Pause these workers, or everything."),
        "resume": Entry("commands.act.restart", "End the pause of these workers, or of everything."),
        "start": Entry("commands.act.restart", "Start workers now, whatever delay they are in."),
        "stop": Entry(
            "commands.act.restart",
            "Stop workers; they stay down until they are started, or the supervisor is.",
        ),
        "restart": Entry("commands.act.restart", "Clear the counters of workers and start them afresh."),
        "reset": Entry(
            "commands.act.restart", "Clear the counters and the failure of workers; none is started."
        ),
        "reload": Entry("commands.act.restart", "Apply the changed configuration file."),
        "scale": Entry("commands.act.restart", "Have N workers of a group, until the file is read again."),
    },
    "Set up": {
        "config": Entry("commands.setup.config", "Check, show, make and import configuration files."),
        "db": Entry("commands.setup.db", "Upgrade or check the database, offline."),
        "completion": Entry(
            "commands.setup.completion", "Print a script for the shell that completes commands."
        ),
        "simulate": Entry(
            "commands.setup.simulate", "Show what a restart policy would do, without running anything."
        ),
        "chaos": Entry("commands.setup.chaos", "Run a chaos script, in virtual time or on real processes."),
    },
}
"""The commands by what they are for, in the order of the help."""


class Commands(MutableMapping[str, click.Command]):
    """The commands by name; each is loaded when it is asked for."""

    def __init__(self) -> None:
        self._entries = {name: entry for names in SECTIONS.values() for name, entry in names.items()}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module = import_module(f"{_PACKAGE}.{self._entries[name].module}")
            self._loaded[name] = getattr(module, name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("the commands of rekindle are fixed")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._entries, **self._loaded})

    def __len__(self) -> int:
        return len({**self._entries, **self._loaded})
