"""The events of a running supervisor.

    for event in stream(ControlClient(".rekindle/control.sock"), after=12):
        print(event.type, event.document)

A caller that loses the connection connects again after the last event it received, and misses
nothing that the supervisor still keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .client import ControlClient

if TYPE_CHECKING:
    from typing import Any


class StreamEvent(NamedTuple):
    """One event of the stream."""

    type: str
    document: Any
    id: int | None


def stream(
    client: ControlClient,
    *,
    topics: str | None = None,
    after: int | None = None,
    still_there: Callable[[], None] = lambda: None,
) -> Iterator[StreamEvent]:
    """The events of one connection, until it ends.

    Args:
        client: a client of the supervisor; the events come over a connection of their own.
        topics: only these topics, separated by commas.
        after: start after the event with this number.
        still_there: called at every keep-alive of the supervisor, every few seconds.

    Raises:
        NoSupervisorError: no supervisor listens, or the connection is lost.
        InvalidArgumentsError: the topics are invalid.
    """
    headers = {"accept": "text/event-stream"}
    if after is not None:
        headers["last-event-id"] = str(after)
    query = "" if topics is None else f"?topics={topics}"
    yield from _events(client.lines(f"/events{query}", headers), still_there)


def _events(lines: Iterator[str], still_there: Callable[[], None]) -> Iterator[StreamEvent]:
    type_, data, number = "", "", None
    for line in lines:
        name, _, value = line.partition(": ")
        if line == "":
            if data:
                yield StreamEvent(type_, json.loads(data), number)
            type_, data, number = "", "", None
        elif line.startswith(":"):
            still_there()
        elif name == "event":
            type_ = value
        elif name == "data":
            data = value
        elif name == "id" and value.isdecimal():
            number = int(value)
