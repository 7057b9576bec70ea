"""`rekindle output`: what workers wrote, and what they write."""

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
from ...console.terminal import mind_the_reader
from ...render.text import printable
from .events import AGAIN_S

GLANCE_S = 0.2
"""How often to look for more; what comes meanwhile is kept, within bounds."""
AT_FIRST = 10
MOST = 200


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-f", "--follow", is_flag=True, help="Go on with what they write, until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "last",
    type=click.IntRange(0, MOST),
    metavar="N",
    help=f"How many lines of each to show at first.  [default: {MOST}; of all, or with --follow: {AT_FIRST}]",
)
@state_option
@json_option
def output(ids: tuple[str, ...], follow: bool, last: int | None, state: Path, as_json: bool) -> None:
    """Print the last lines that these workers wrote, or all of them.

    What could steer a terminal is made harmless. An ID may be the name of a group.

    \b
      $ rekindle output worker:tag:0
      $ rekindle output tag --follow
      $ rekindle output --follow --lines 0 --json | jq .text

    The last lines are also those of former starts, as long as there is room for them; --follow
    goes on across restarts, of the supervisor too. Lines of several workers are told apart by
    their ids; --follow --json prints one document a line.
    """
    client = client_of(state)
    chosen = members(client, ids)
    if follow:
        for line in _for_ever(client, ids, AT_FIRST if last is None else last):
            click.echo(json.dumps(line) if as_json else _shown(line, alone=len(chosen) == 1))
            sys.stdout.flush()
    elif len(chosen) == 1:
        _print_one(client, chosen[0], MOST if last is None else last, as_json=as_json)
    else:
        at_first = MOST if ids else AT_FIRST
        answer = client.get(_path(ids, last=at_first if last is None else last))
        if as_json:
            print_json(answer)
            return
        for line in answer["lines"]:
            click.echo(_shown(line, alone=False))


def _print_one(client: ControlClient, id_: str, last: int, *, as_json: bool) -> None:
    lines = [line["text"] for line in client.get(_path([id_], last=last))["lines"]]
    if as_json:
        print_json({"id": id_, "lines": lines})
        return
    for text in lines:
        click.echo(_harmless(text))


def _for_ever(client: ControlClient, names: Sequence[str], last: int) -> Iterator[dict[str, Any]]:
    """The last lines, then all that come.

    Raises:
        ControlError: the first try was refused, or found no supervisor.
    """
    run, after = "", 0
    while True:
        try:
            answer = client.get(_path(names, after=after) if run else _path(names, last=last))
        except ControlError as error:
            if not run or isinstance(error, InvalidRequestError):
                raise
            time.sleep(AGAIN_S)  # it stops, or is busy, or the next one is yet to come
            continue
        if run and answer["run"] != run:
            run, after = answer["run"] or run, 0  # another supervisor, which counts anew
            time.sleep(0.0 if answer["run"] else AGAIN_S)
            continue
        if answer["lost"]:
            say("some lines came faster than they could be told")
        yield from answer["lines"]
        run, after = answer["run"], answer["newest"]
        mind_the_reader()
        time.sleep(GLANCE_S)


def _path(names: Sequence[str], **numbers: int) -> str:
    query = [f"{name}={number}" for name, number in numbers.items()]
    if names:
        query.append("ids=" + ",".join(path_of(name).removeprefix("/") for name in names))
    return "/output?" + "&".join(query)


def _shown(line: dict[str, Any], *, alone: bool) -> str:
    text = _harmless(line["text"])
    return text if alone else f"{line['component_id']} {line['stream']} | {text}"


def _harmless(text: str) -> str:
    return printable(text.expandtabs().rstrip("\r\n"))
