"""Follows the output of workers: asks for the lines after the newest one that is known."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any
from urllib.parse import quote

from ..client import ControlClient, ControlError
from ..render.colours import coloured
from ..render.text import printable

FIRST = 200
"""How many lines of each worker are requested at first: as many as the supervisor keeps."""

MOST = 1000
"""How many lines are shown."""

MOST_WORKERS = 200
"""How many workers of a group are followed: their names must fit into one request."""


class LogFollower:
    """The lines of some workers, the oldest first."""

    def __init__(self, client: ControlClient, ids: tuple[str, ...]) -> None:
        self.ids = ids
        self._client = client
        self._lines: deque[str] = deque(maxlen=MOST)
        self._newest: int | None = None
        self._run: str | None = None
        self._asking = threading.Lock()

    @property
    def is_new(self) -> bool:
        """Whether nothing was requested yet."""
        return self._newest is None

    def fetch(self) -> str | None:
        """The text with the lines that came since; None if there is none. Blocks for a request.

        For any thread; while one request is under way, another is not made.
        """
        if not self._asking.acquire(blocking=False):
            return None
        try:
            return self._fetched()
        finally:
            self._asking.release()

    def _fetched(self) -> str | None:
        asked = f"last={FIRST}" if self._newest is None else f"after={self._newest}"
        ids = quote(",".join(self.ids[:MOST_WORKERS]))
        try:
            answer = self._client.get(f"/output?{asked}&ids={ids}", timeout_s=5.0)
        except ControlError as error:
            return printable(str(error)) if self._newest is None else None
        return self._taken(answer)

    def _taken(self, answer: dict[str, Any]) -> str | None:
        if self._run is not None and answer["run"] != self._run:
            self._run, self._newest = None, None  # another supervisor: its numbers begin again
            return self._fetched()
        is_first, self._run, self._newest = self._newest is None, answer["run"], answer["newest"]
        if answer["lost"]:
            self._lines.append(f"({answer['lost']} lines were lost)")
        self._lines.extend(map(self._line, answer["lines"]))
        return self.text if answer["lines"] or answer["lost"] or is_first else None

    @property
    def text(self) -> str:
        """All lines that are kept."""
        return "\n".join(self._lines) or "Nothing has been written."

    def _line(self, line: dict[str, Any]) -> str:
        source = f"{line['component_id']} " if len(self.ids) > 1 else ""
        return f"{source}{line['stream']} | {_plain(line['text'])}"


def _plain(text: str) -> str:
    """The line without its colours; the supervisor has escaped all other sequences."""
    return coloured(printable(text.expandtabs()), keep=False)
