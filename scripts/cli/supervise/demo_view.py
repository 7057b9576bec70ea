"""`rekindle demo`: four workers, one of which crashes, and a live table."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from rekindle.actors import (
    EventStream,
    RekindleError,
    RequestTimeoutError,
    System,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
    WorkerStopped,
)
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.gateways.http import ClientRole, HttpServer
from rekindle.actors.gateways.serving.json_values import view
from rekindle.actors.messages import Event
from rekindle.actors.views.event_sentences import text_of
from rekindle.persistence import open_store

from ..config import load
from ..console.terminal import colour_wanted, until_interrupted
from ..render.status_table import status_lines
from ..render.text import cut, printable
from ..state_files import DATABASE_NAME
from .fleet import SupervisedFleet
from .platform.state_lock import StateLock
from .platform.subreaper import adopt_orphans

REFRESH_S = 0.5
DEMO = Path(__file__).with_name("demo.toml")


def run_demo(state: Path, seconds: float | None, *, http: bool = False) -> None:
    """Run the demo until Ctrl-C, SIGTERM or the end of the time; `http` serves the dashboard too."""
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        with ExitStack() as stack:
            fleet = _open(state, stack)
            _print_introduction(state)
            if http:
                server = stack.enter_context(HttpServer(fleet, state))
                click.echo(f"Dashboard:  {server.link(ClientRole.OPERATOR)}\n", err=True)
            with until_interrupted(), fleet.events() as events:
                fleet.start()
                _show(fleet, events, deadline)
            click.echo("\nStopping…", err=True)
            for result in fleet.stop():
                how = "was not running" if result.exit is None else str(result.exit)
                click.echo(f"  {result.component_id} {how}", err=True)
    except BrokenPipeError:
        raise  # the reader of our output is gone, which is not an error
    except (RekindleError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _open(state: Path, stack: ExitStack) -> SupervisedFleet:
    """The demo's workers, with a control socket as in `rekindle run`."""
    config = replace(load(DEMO), state_dir=state, database=str(state / DATABASE_NAME))
    stack.enter_context(StateLock(state))
    fleet = SupervisedFleet(config, store=open_store(config.database))
    stack.callback(fleet.stop)
    fleet.open()
    stack.enter_context(adopt_orphans(fleet.reap_strangers))
    stack.enter_context(ControlServer(fleet, state, replace_stale=True))
    return fleet


def _print_introduction(state: Path) -> None:
    # In another terminal neither the command nor the directory need be the same as here.
    explain = f"{_command()} explain worker:calibration:0 --state {shlex.quote(str(state.absolute()))}"
    click.echo(f"Four workers, one of which crashes every few seconds. The database is in {state}.", err=True)
    click.echo("Try in another terminal:  kill -9 PID", err=True)
    click.echo(f"                          {explain}", err=True)
    click.echo("Ctrl-C stops everything.\n", err=True)


def _command() -> str:
    """How this program is started from anywhere."""
    started = Path(sys.argv[0]).absolute()
    if started.name == "rekindle" and os.access(started, os.X_OK):
        return shlex.quote(str(started))
    return f"{shlex.quote(sys.executable)} -m rekindle"


def _show(system: System, events: EventStream, deadline: float | None) -> None:
    live = sys.stdout.isatty()
    drawn = 0
    recent: list[str] = []
    while deadline is None or time.monotonic() < deadline:
        for event in events.within(REFRESH_S):
            line = _sentence(event)
            if line is None:
                continue
            recent = [*recent[-7:], f"{time.strftime('%H:%M:%S')}  {line}"]
            if not live:
                click.echo(recent[-1])
        if live:
            drawn = _redraw(system, recent, drawn)


def _redraw(system: System, recent: list[str], drawn: int) -> int:
    """Draw the table over the previous one; returns its number of lines."""
    width = shutil.get_terminal_size().columns
    try:
        report = view(system.report())
    except RequestTimeoutError:
        return drawn
    lines = status_lines(report, colour=colour_wanted(), width=width)
    lines += ["", *(cut(line, width) for line in recent)]
    up = f"\x1b[{drawn}F" if drawn else ""
    sys.stdout.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
    sys.stdout.flush()
    return len(lines)


def _sentence(event: Event) -> str | None:
    """An event as a sentence; None for events that the table shows anyway."""
    if not isinstance(event, WorkerStarted | WorkerDied | WorkerFailed | WorkerStopped):
        return None
    return printable(f"{event.component_id} {text_of(event)}")
