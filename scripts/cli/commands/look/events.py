"""`rekindle events`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from ...client import ControlClient, ControlError, NoSupervisorError
from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.exits import say
from ...console.options import (
    MOST_LISTED,
    Where,
    client_of,
    json_option,
    limit_since_option,
    print_json,
    supervisor_option,
)
from ...console.terminal import exit_if_unread
from ...event_client import StreamEvent, stream
from ...render.event_lines import event_line
from ...render.json_document import entry
from ...render.text import printable, seconds_of

FEW = 20
AGAIN_S = 0.5
"""The pause before the next attempt to reach a supervisor that went away."""
TOO_BUSY = 500
"""HTTP statuses from here on are transient: the supervisor is busy or stopping, the request is fine."""
MOST_EVENTS = 10**18
_TOPIC_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-*,")


@dataclass(frozen=True, slots=True)
class Since:
    """Where to begin: after an event, or at a time."""

    after: int | None = None
    at_wall_ms: int = 0

    def __str__(self) -> str:
        return "in that time" if self.after is None else f"after #{self.after}"


ALL = Since()


def _topics(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    if given is not None and not (given and set(given) <= _TOPIC_CHARACTERS):
        raise click.BadParameter("must be topics separated by commas, made of letters, digits and _.:-*")
    return given


def _since(_ctx: click.Context, _param: click.Parameter, given: str | None) -> Since | None:
    """A time; a plain number is the number of an event, as it was before there was --after."""
    if given is None:
        return None
    if given.isascii() and given.isdecimal() and int(given) <= MOST_EVENTS:
        say(f"--since {given} is read as a number of an event: write --after {given}, or {given}s for a time")
        return Since(after=int(given))
    if given[-1:].isalpha():
        with suppress(ValueError):
            return Since(at_wall_ms=max(0, now_ms() - round(seconds_of(given) * 1000)))
    raise click.BadParameter(f"{given!r} is not a time; write 90s, 30m, 2h or 1d")


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events until Ctrl-C.")
@click.option(
    "--since",
    callback=_since,
    metavar="TIME",
    help="Only events of the last 90s, 30m, 2h or 1d.",
)
@click.option(
    "--after",
    type=click.IntRange(0, MOST_EVENTS),
    metavar="ID",
    help="Only events after the one with this number.",
)
@click.option(
    "--topics",
    callback=_topics,
    metavar="TOPICS",
    help="Only these topics, separated by commas; * is a wildcard.",
)
@limit_since_option("events", FEW)
@supervisor_option
@database_option
@json_option
def events(
    follow: bool,
    since: Since | None,
    after: int | None,
    topics: str | None,
    limit: int | None,
    state: Where,
    database: str | None,
    as_json: bool,
) -> None:
    """Show events: starts, deaths, decisions, failures, outages.

    \b
      $ rekindle events
      $ rekindle events --follow
      $ rekindle events --since 1h --limit 100
      $ rekindle events --topics 'event:worker_died:*' --limit 5
      $ rekindle events --after 1200 --follow --json | jq .type
      $ rekindle events --follow --topics 'worker:tag:*:status'

    Events are numbered without gaps, across restarts of the supervisor too. With --follow the
    command waits for a supervisor that goes away and continues after the last event that it
    printed; --json then prints one document per line. Without --follow, and if no supervisor is
    running, the database is read.

    \b
    Topics of events:  event:TYPE:ID, such as event:* or event:*:worker:tag:0
    Topics of states:  worker:ID:status, queue:TYPE:status, queue:status, queue:jobs,
                       system:health (with --follow only)
    """
    if after is not None:
        if since is not None:
            raise click.UsageError("--since and --after both say where to begin; leave one out")
        since = Since(after=after)
    begin = since or ALL
    is_cut = limit is None
    limit = limit or (MOST_LISTED if begin.at_wall_ms else FEW)
    if follow:
        _follow(state, topics, begin, limit, as_json=as_json)
        return
    with open_reader(state, database) as reader:
        answer = reader.get(_log_path(begin, limit, topics))
    if is_cut and begin.at_wall_ms and len(answer["events"]) == limit:
        _tell_what_is_left_off(answer["events"][0], begin)
    answer["events"] = _recent(answer, begin)
    if topics is not None and not _is_persisted(topics):
        raise click.UsageError("topics of states need --follow; only event:* topics are persisted")
    if as_json:
        print_json(answer)
        return
    for event in answer["events"]:
        click.echo(event_line(event))
    if not answer["events"]:
        click.echo(_no_events(answer, since, topics))


def _tell_what_is_left_off(first: Mapping[str, Any], since: Since) -> None:
    if first["at_wall_ms"] > since.at_wall_ms:
        say(f"there are more than {MOST_LISTED} events in that time; the first one shown is #{first['id']}")


def _is_persisted(topics: str) -> bool:
    """Whether one of these topics is persisted, not only published."""
    return any(topic == "*" or topic.startswith("event:") for topic in topics.split(","))


def _recent(answer: dict[str, Any], since: Since) -> list[dict[str, Any]]:
    return [event for event in answer["events"] if event["at_wall_ms"] >= since.at_wall_ms]


def _no_events(answer: dict[str, Any], since: Since | None, topics: str | None) -> str:
    if topics is not None and answer["newest"]:
        which = "latest events" if since is None else f"events {since}"
        return f"None of the {which} matches these topics."
    return "There are no events yet." if since is None else f"There are no events {since}."


def _log_path(since: Since, limit: int, topics: str | None) -> str:
    path = f"/events/log?limit={limit}"
    path += "" if since.after is None else f"&after={since.after}"
    return path + ("" if topics is None else f"&topics={topics}")


def _follow(state: Where, topics: str | None, since: Since, limit: int, *, as_json: bool) -> None:
    """Print events until Ctrl-C.

    Raises:
        NoSupervisorError: no supervisor answered the first request.
    """
    after = since.after
    if after is None and (topics is None or _is_persisted(topics)):
        # Print the latest events as `tail -f` does; the stream continues after them.
        answer = client_of(state).get(_log_path(ALL, limit, topics))
        for each in _recent(answer, since):
            _print(each, as_json)
        after = answer["newest"]
    for event in _reconnecting_stream(client_of(state), topics, after):
        if event.type == "reset":
            say(f"some events are missing: {event.document['reason']}")
        elif event.type not in ("connected", "snapshot"):
            _print(event.document, as_json)
        elif event.type == "snapshot" and topics is not None:
            for each in event.document["states"]:
                _print(each, as_json)


def _reconnecting_stream(
    client: ControlClient, topics: str | None, after: int | None
) -> Iterator[StreamEvent]:
    """Events of one connection after the other; each continues after the last event of the previous one."""
    connected = False
    while True:
        try:
            for event in stream(client, topics=topics, after=after, still_there=exit_if_unread):
                connected = True
                after = event.document.get("last_id", after) if after is None else after
                after = after if event.id is None else event.id
                yield event
        except ControlError as error:
            is_transient = isinstance(error, NoSupervisorError) or error.status >= TOO_BUSY
            if not (connected and is_transient):
                raise
        time.sleep(AGAIN_S)


def _print(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        text = json.dumps(entry(event))
    elif "topic" in event:
        rest = {name: value for name, value in event.items() if name not in ("topic", "type", "timestamp")}
        text = printable(f"{event['topic']}  {json.dumps(next(iter(rest.values()), None))}")
    else:
        text = event_line(event)
    click.echo(text)
    sys.stdout.flush()
