"""Every command of `rekindle` with its summary, so that `rekindle --help` loads no command.

A command is a function of its own name in the module of its own name: `restart` of the section
"Act" is `commands.act.restart.restart`. A test holds that each summary equals the first sentence
of the command's own help.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

import click

_PACKAGE = __name__.rpartition(".")[0]

SECTIONS = {
    "Run": {
        "run": "Run the workers of a TOML file, or one command, until SIGINT or SIGTERM.",
        "upgrade": "Replace the running supervisor by another version without touching its workers.",
        "shutdown": "Stop all workers and then the supervisor.",
        "demo": "Run four demo workers and show them live until Ctrl-C.",
        "cluster": "Run workers on several machines that share a PostgreSQL database.",
    },
    "Look": {
        "ps": "List the supervisors that run on this machine.",
        "status": "Show workers and what happens next to each.",
        "health": "Exit with code 0 if all workers are well, and with 1 if not.",
        "output": "Print what workers wrote.",
        "resources": "Show the memory, CPU, threads and descriptors that workers use now.",
        "alerts": "Show open alerts, the most severe first.",
        "events": "Show events: starts, deaths, decisions, failures, outages.",
        "top": "Watch workers live and control them with single keys.",
        "jobs": "Enqueue jobs, inspect them, and handle those that kill workers.",
        "queues": "Show queues; pause and resume them.",
        "dashboard": "Print a link to the dashboard; the link contains a secret token.",
    },
    "Investigate": {
        "explain": "Explain why a worker is in its state, and what you can do.",
        "history": "Show a worker's deaths and what the supervisor decided after each.",
        "runs": "Show the runs of a scheduled worker, including missed ones and why.",
        "report": "Write everything about a worker for a bug report, as Markdown.",
        "timeline": "Show what happened to a worker, the latest entry last.",
        "audit": "Show who gave which order, and its result.",
    },
    "Act": {
        "ack": "Acknowledge alerts, so that they notify again only if they get worse.",
        "pause": "Stop workers until you resume them; without an ID the whole system.",
        "resume": "End the pause of workers, or of the whole system if you name none.",
        "start": "Start workers now, without waiting for a restart delay.",
        "stop": "Stop workers until you start them or restart the supervisor.",
        "restart": "Restart workers with their counters cleared.",
        "reset": "Clear the restart counters and the failure of workers without starting them.",
        "wait": "Wait until workers are ready, done or stopped.",
        "run-now": "Run scheduled workers now, in addition to their schedules.",
        "signal": "Send a signal to the processes of workers.",
        "reload": "Apply the changed configuration file.",
        "scale": "Run N workers of a group until the file is loaded again.",
    },
    "Set up": {
        "config": "Check, show, create and import configuration files.",
        "db": "Upgrade or check the database while no supervisor uses it.",
        "mcp": "Serve the supervisor to agents over the Model Context Protocol.",
        "service": "Run a file as a systemd service: start at boot, restart, watchdog.",
        "completion": "Print a shell script that completes commands.",
        "simulate": "Show what a restart policy would do, without running anything.",
        "chaos": "Run chaos scenarios in virtual time or on real processes.",
    },
}
"""The summary of each command, by section, in the order of the help."""


def module_of(section: str, name: str) -> str:
    """The module of a command, relative to this package: `act.restart`."""
    return f"{section.lower().replace(' ', '')}.{name.replace('-', '_')}"


class CommandIndex(MutableMapping[str, click.Command]):
    """The commands by name; each is loaded on first use."""

    def __init__(self) -> None:
        self._modules = {name: module_of(title, name) for title, names in SECTIONS.items() for name in names}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module = import_module(f"{_PACKAGE}.{self._modules[name]}")
            self._loaded[name] = getattr(module, name.replace("-", "_"))
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("the commands of rekindle are fixed")

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._loaded})

    def __len__(self) -> int:
        return len({**self._modules, **self._loaded})
