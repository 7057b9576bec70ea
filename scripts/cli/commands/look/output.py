"""`rekindle output`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from ...console.logs.output_source import OutputSource, Query
from ...console.options import (
    CONFIG,
    Where,
    client_of,
    duration,
    json_option,
    print_json,
    supervisor_option,
    worker_ids,
)
from ...console.terminal import colour_wanted
from ...render.colours import coloured
from ...render.json_document import entry
from ...render.text import printable

FEW = 10
MANY = 200
MOST = 1_000_000


def _pattern(_ctx: click.Context, _param: click.Parameter, given: str | None) -> re.Pattern[str] | None:
    try:
        return None if given is None else re.compile(given)
    except re.error as error:
        raise click.BadParameter(f"{given!r} is not a regular expression: {error}") from None


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "last",
    type=click.IntRange(0, MOST),
    metavar="N",
    help=f"Earlier lines to print of each worker.  [default: {MANY}; {FEW} for all workers or --follow; "
    "all with --since]",
)
@click.option("--since", callback=duration, metavar="TIME", help="Only lines of the last 90s, 30m, 2h or 1d.")
@click.option(
    "--grep",
    "pattern",
    callback=_pattern,
    metavar="RE",
    help="Only lines in which this regular expression matches.",
)
@click.option("-t", "--times", is_flag=True, help="Print the local time before each line.")
@click.option("--no-color", is_flag=True, help="Leave out the colours of the workers' output.")
@supervisor_option
@json_option
def output(
    ids: tuple[str, ...],
    follow: bool,
    last: int | None,
    since: float | None,
    pattern: re.Pattern[str] | None,
    times: bool,
    no_color: bool,
    state: Where,
    as_json: bool,
) -> None:
    """Print what workers wrote.

    Without an ID the lines of all workers are printed. An ID may be the name of a group. Colours
    are kept on a terminal; other control characters are replaced, so that no line can change it.

    \b
      $ rekindle output worker:tag:0
      $ rekindle output tag --follow
      $ rekindle output web --since 12h --grep 'ERROR|Traceback' --times
      $ rekindle output --follow --lines 0 --json | jq .text

    Lines of a worker that has a log file are read from it and from its rotated files, also while
    no supervisor runs. The supervisor keeps the last 200 lines of other workers in memory, across
    restarts of the worker. --follow continues when a worker or the supervisor restarts. Lines of
    several workers start with the worker's id; --follow --json prints one document per line.
    With --url log files are not read; the lines are those in the memory of the supervisor.
    """
    config = click.get_current_context().meta.get(CONFIG)
    declared = {} if config is None else _log_files(config)
    source = OutputSource(client_of(state), state, declared, ids)
    query = Query(last, None if since is None else since * 1000, pattern)
    shown = _Shown(
        alone=len(source.chosen) == 1 and bool(ids), times=times, colour=not no_color and colour_wanted()
    )
    if follow:
        for line in source.follow(query.with_default(FEW)):
            click.echo(json.dumps(entry(line)) if as_json else shown.line(line))
            sys.stdout.flush()
        return
    query = query.with_default(MANY if ids else FEW)
    if as_json:
        print_json(source.document(query, alone=shown.alone))
        return
    is_empty = True
    for line in source.lines(query):
        is_empty = False
        click.echo(shown.line(line))
    if is_empty and last != 0:
        click.echo(_nothing(source, query), err=True)


def _log_files(config: Path) -> dict[str, str]:
    """The log files that a configuration file names, by worker."""
    from rekindle.actors.processes.logs.log_writer import log_path

    from ...config import load

    specs = load(config).specs()
    return {spec.id: log_path(spec) for spec in specs if spec.log is not None and spec.log.file is not None}


def _nothing(source: OutputSource, query: Query) -> str:
    if query.pattern is not None or query.since_ms is not None:
        return "No line matches."
    return (
        f"{printable(source.chosen[0])} has not written anything."
        if len(source.chosen) == 1
        else "No worker has written anything."
    )


class _Shown:
    """How lines are printed."""

    def __init__(self, *, alone: bool, times: bool, colour: bool) -> None:
        self.alone = alone
        self._times = times
        self._colour = colour

    def line(self, line: dict[str, Any]) -> str:
        """A line for a terminal."""
        text = self._safe(line["text"])
        begin = _local(line["at_wall_ms"]) if self._times else ""
        if line["stream"] == "log":
            return f"{begin}{printable(line['component_id'])} log | {text}"
        if self.alone:
            return begin + text
        return f"{begin}{printable(line['component_id'])} {printable(line['stream'])} | {text}"

    def _safe(self, text: str) -> str:
        """One line; the supervisor has escaped its control characters, and only colours are restored."""
        return coloured(printable(text.expandtabs().rstrip("\r\n")), keep=self._colour)


def _local(wall_ms: int) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(wall_ms / 1000):%Y-%m-%d %H:%M:%S}.{wall_ms % 1000:03} "  # noqa: DTZ006
