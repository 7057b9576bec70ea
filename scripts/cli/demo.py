"""The demo: three workers, one of them flaky, and a live table."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Never

import click

from rekindle.actors import (
    EventStream,
    PythonCall,
    RekindleError,
    RequestTimeoutError,
    System,
    WorkerDied,
    WorkerFailed,
    WorkerSpec,
    WorkerStarted,
    WorkerStopped,
)
from rekindle.actors.gateways.control.wire import view
from rekindle.actors.messages import Event
from rekindle.persistence import open_store

from .commands.terminal import colour_wanted
from .table import status_lines
from .words import cut, printable

REFRESH_S = 0.5


def run_demo(state: Path, seconds: float | None) -> None:
    """Run the demo until Ctrl-C, SIGTERM, or the time is up."""
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        store = open_store(state / "rekindle.db")
    except RekindleError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Three workers; their restarts are remembered in {state}. Ctrl-C stops everything.", err=True)
    system = System(_specs(), store=store)
    with _until_interrupted():
        system.start()
        with system.events() as events:
            _show(system, events, deadline)
    click.echo("\nStopping…", err=True)
    for result in system.stop():
        how = "was not running" if result.exit is None else str(result.exit)
        click.echo(f"  {result.component_id} {how}", err=True)


def _specs() -> list[WorkerSpec]:
    names = ("tag", "library", "calibration")
    return [WorkerSpec(f"worker:{name}:0", PythonCall(f"rekindle.cli.demo_workers:{name}")) for name in names]


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, not the process; a second one during the stop does."""

    def interrupt(_signum: int, _frame: FrameType | None) -> Never:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


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
    """Draw the table over the former one; how many lines it has."""
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
    """What an event means, for people; None for those that the table shows anyway."""
    match event:
        case WorkerStarted():
            return f"{event.component_id} started, pid {event.pid}"
        case WorkerDied(death=death, reason=reason):
            return printable(f"{event.component_id} {death} after {death.uptime_ms / 1000:.1f} s: {reason}")
        case WorkerFailed():
            return printable(f"{event.component_id} is given up: {event.reason}")
        case WorkerStopped():
            return f"{event.component_id} stopped, {event.exit}"
        case _:
            return None
