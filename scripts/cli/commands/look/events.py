"""`rekindle events`: what happened, and what happens."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ...client import ControlError, NoSupervisorError
from ...console.database_fallback import database_option
from ...console.exits import say
from ...console.options import SOCKET_NAME, client_of, json_option, limit_option, print_json, state_option
from ...console.past import past_of
from ...console.terminal import mind_the_reader
from ...event_client import StreamEvent, stream
from ...render.event_lines import event_line
from ...render.text import printable

AGAIN_S = 0.5
"""How long to wait before a lost supervisor is looked for again."""
TOO_BUSY = 500
"""Statuses from here on say something about the supervisor at this moment, and nothing about us."""
_CALM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-*,")


def _topics(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    if given is not None and not (given and set(given) <= _CALM):
        raise click.BadParameter("topics are letters, digits and _.:-* with commas between them")
    return given


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option(
    "--since",
    type=click.IntRange(0, 10**18),
    metavar="ID",
    help="Begin after the event with this number. Otherwise the latest are shown.",
)
@click.option(
    "--topics",
    callback=_topics,
    metavar="TOPICS",
    help="Only these, with commas between them; * stands for anything.",
)
@limit_option("events")
@state_option
@database_option
@json_option
def events(
    follow: bool,
    since: int | None,
    topics: str | None,
    limit: int,
    state: Path,
    database: str | None,
    as_json: bool,
) -> None:
    """Show what happened: starts, deaths and what was decided on them, failures, outages.

    \b
      $ rekindle events
      $ rekindle events --follow
      $ rekindle events --topics 'event:worker_died:*' --limit 5
      $ rekindle events --since 1200 --follow --json | jq .type
      $ rekindle events --follow --topics 'worker:tag:*:status'

    Every event has a number, which grows by one, also across restarts of the supervisor.
    With --follow a lost supervisor is waited for, and nothing is missed meanwhile that it
    still keeps; --json then prints one document a line. Without it, and where no supervisor
    runs, the database itself is asked.

    \b
    Topics: event:TYPE:ID for events (event:*, event:*:worker:tag:0), and for states
    worker:ID:status, queue:TYPE:status, queue:status, queue:jobs, system:health.
    """
    if follow:
        _follow(state, topics, since, limit, as_json=as_json)
        return
    with past_of(state, database) as past:
        answer = past.get(_log_path(since, limit, topics))
    if topics is not None and not _of_the_log(topics):
        raise click.UsageError("states have no past: follow them with --follow, or ask for event:*")
    if as_json:
        print_json(answer)
        return
    for event in answer["events"]:
        click.echo(event_line(event))
    if not answer["events"]:
        click.echo(_nothing(answer, since, topics))


def _of_the_log(topics: str) -> bool:
    """Whether any of these is kept, and not only told as it happens."""
    return any(topic == "*" or topic.startswith("event:") for topic in topics.split(","))


def _nothing(answer: dict[str, Any], since: int | None, topics: str | None) -> str:
    if topics is not None and answer["newest"]:
        which = "latest events" if since is None else f"events after #{since}"
        return f"None of the {which} is one of these."
    return "Nothing happened yet." if since is None else f"Nothing happened after #{since}."


def _log_path(since: int | None, limit: int, topics: str | None) -> str:
    path = f"/events/log?limit={limit}"
    path += "" if since is None else f"&after={since}"
    return path + ("" if topics is None else f"&topics={topics}")


def _follow(state: Path, topics: str | None, since: int | None, limit: int, *, as_json: bool) -> None:
    """Print what happens until Ctrl-C.

    Raises:
        NoSupervisorError: there was none at the first try.
    """
    after = since
    if after is None and (topics is None or _of_the_log(topics)):
        # The latest first, as `tail -f` does; the stream goes on after them.
        answer = client_of(state).get(_log_path(None, limit, topics))
        for event in answer["events"]:
            _print(event, as_json)
        after = answer["newest"]
    for event in _for_ever(str(state / SOCKET_NAME), topics, after):
        if event.type == "reset":
            say(f"some events are missing: {event.document['reason']}")
        elif event.type not in ("connected", "snapshot"):
            _print(event.document, as_json)
        elif event.type == "snapshot" and topics is not None:
            for each in event.document["states"]:
                _print(each, as_json)


def _for_ever(path: str, topics: str | None, after: int | None) -> Iterator[StreamEvent]:
    """One connection after the other, each after the last event of the former one."""
    was_there = False
    while True:
        try:
            for event in stream(path, topics=topics, after=after, still_there=mind_the_reader):
                was_there = True
                after = event.document.get("last_id", after) if after is None else after
                after = after if event.id is None else event.id
                yield event
        except ControlError as error:
            is_passing = isinstance(error, NoSupervisorError) or error.status >= TOO_BUSY
            if not (was_there and is_passing):
                raise
        time.sleep(AGAIN_S)


def _print(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        text = json.dumps(event)
    elif "topic" in event:
        rest = {name: value for name, value in event.items() if name not in ("topic", "type", "timestamp")}
        text = printable(f"{event['topic']}  {json.dumps(next(iter(rest.values()), None))}")
    else:
        text = event_line(event)
    click.echo(text)
    sys.stdout.flush()
