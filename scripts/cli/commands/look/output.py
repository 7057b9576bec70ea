"""`rekindle output`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ...client import ControlClient, ControlError, InvalidRequestError, path_of
from ...console.exits import say
from ...console.options import client_of, json_option, print_json, state_option, worker_ids
from ...console.targets import members
from ...console.terminal import colour_wanted, exit_if_unread
from ...render.colours import coloured
from ...render.text import printable
from .events import AGAIN_S

GLANCE_S = 0.2
"""The interval between two requests; the supervisor buffers what is written in between."""
FEW = 10
MOST = 200


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "last",
    type=click.IntRange(0, MOST),
    metavar="N",
    help=f"Earlier lines to print of each worker.  [default: {MOST}; {FEW} for all workers or --follow]",
)
@click.option("--no-color", is_flag=True, help="Leave out the colours of the workers' output.")
@state_option
@json_option
def output(
    ids: tuple[str, ...], follow: bool, last: int | None, no_color: bool, state: Path, as_json: bool
) -> None:
    """Print the last lines that workers wrote.

    Without an ID the lines of all workers are printed. An ID may be the name of a group. Colours
    are kept on a terminal; other control characters are replaced, so that no line can change it.

    \b
      $ rekindle output worker:tag:0
      $ rekindle output tag --follow
      $ rekindle output --follow --lines 0 --json | jq .text

    The supervisor keeps the last lines across restarts of a worker, in a buffer of limited size.
    --follow continues when a worker or the supervisor restarts. Lines of several workers start
    with the worker's id; --follow --json prints one document per line.
    """
    client = client_of(state)
    chosen = members(client, ids)
    colour = not no_color and colour_wanted()
    if follow:
        for line in _lines(client, ids, FEW if last is None else last):
            text = json.dumps(line) if as_json else _shown(line, alone=len(chosen) == 1, colour=colour)
            click.echo(text)
            sys.stdout.flush()
    elif len(chosen) == 1:
        _print_one(client, chosen[0], MOST if last is None else last, as_json=as_json, colour=colour)
    else:
        default = MOST if ids else FEW
        answer = client.get(_path(ids, last=default if last is None else last))
        if as_json:
            print_json(answer)
            return
        for line in answer["lines"]:
            click.echo(_shown(line, alone=False, colour=colour))
        if not answer["lines"]:
            click.echo("No worker has written anything.", err=True)


def _print_one(client: ControlClient, id_: str, last: int, *, as_json: bool, colour: bool) -> None:
    lines = [line["text"] for line in client.get(_path([id_], last=last))["lines"]]
    if as_json:
        print_json({"id": id_, "lines": lines})
        return
    for text in lines:
        click.echo(_safe(text, colour=colour))
    if not lines and last:
        click.echo(f"{id_} has not written anything.", err=True)


def _lines(client: ControlClient, names: Sequence[str], last: int) -> Iterator[dict[str, Any]]:
    """The last lines, then new ones as they are written.

    Raises:
        ControlError: the first request failed.
    """
    run, after = "", 0
    while True:
        try:
            answer = client.get(_path(names, after=after) if run else _path(names, last=last))
        except ControlError as error:
            if not run or isinstance(error, InvalidRequestError):
                raise
            time.sleep(AGAIN_S)  # the supervisor is stopping, busy or not started yet
            continue
        if run and answer["run"] != run:
            run, after = answer["run"] or run, 0  # another supervisor, which numbers its lines from 1
            time.sleep(0.0 if answer["run"] else AGAIN_S)
            continue
        if answer["lost"]:
            say("some lines are missing: the workers wrote faster than they could be read")
        yield from answer["lines"]
        run, after = answer["run"], answer["newest"]
        exit_if_unread()
        time.sleep(GLANCE_S)


def _path(names: Sequence[str], **numbers: int) -> str:
    query = [f"{name}={number}" for name, number in numbers.items()]
    if names:
        query.append("ids=" + ",".join(path_of(name).removeprefix("/") for name in names))
    return "/output?" + "&".join(query)


def _shown(line: dict[str, Any], *, alone: bool, colour: bool) -> str:
    text = _safe(line["text"], colour=colour)
    return text if alone else f"{printable(line['component_id'])} {printable(line['stream'])} | {text}"


def _safe(text: str, *, colour: bool) -> str:
    """One line; the supervisor has escaped its control characters, and only colours are restored."""
    return coloured(printable(text.expandtabs().rstrip("\r\n")), keep=colour)
