"""Where the output of workers is read: log files where there are some, else the supervisor's memory."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ...client import ControlClient, ControlError, InvalidArgumentsError, NoSupervisorError, path_of
from ..clock import now_ms
from ..exits import say
from ..options import Where
from ..targets import Known
from ..terminal import exit_if_unread
from .log_files import known_files, rotations
from .log_search import last_lines, lines_since
from .log_tail import LogTail
from .logged_line import LineFilter, LoggedLine, stamp

GLANCE_S = 0.2
"""The interval between two looks; what is written in between is buffered."""
AGAIN_S = 0.5
"""The pause before the next attempt to reach a supervisor that went away."""
MOST_IN_MEMORY = 200

Line = dict[str, Any]


class Query(NamedTuple):
    """Which lines are asked for."""

    last: int | None = None
    """How many of each worker; None: all."""
    since_ms: float | None = None
    pattern: re.Pattern[str] | None = None
    ends: Mapping[int, int] = {}
    """Where to end in log files, since what comes after is followed."""

    def with_default(self, last: int) -> Query:
        """The query with a number of lines, if it has neither a number nor a time."""
        return self._replace(last=last) if self.last is None and self.since_ms is None else self

    @property
    def since_wall_ms(self) -> int:
        """The earliest time of a line."""
        return 0 if self.since_ms is None else max(0, now_ms() - round(self.since_ms))

    def wanted(self, workers: Sequence[str]) -> LineFilter:
        """The same for log files."""
        since = stamp(self.since_wall_ms) if self.since_wall_ms else ""
        return LineFilter(frozenset(workers), since, self.pattern, self.ends)

    def matches(self, line: Line) -> bool:
        """Whether a line of the supervisor is wanted."""
        if line.get("at_wall_ms", 0) < self.since_wall_ms:
            return False
        return self.pattern is None or self.pattern.search(line["text"]) is not None


class OutputSource:
    """The output of some workers."""

    def __init__(
        self, client: ControlClient, state: Where, declared: Mapping[str, str], names: Sequence[str]
    ) -> None:
        """Look for the workers.

        Raises:
            UnknownTargetError: a name means no worker.
            NoSupervisorError: no supervisor runs, and there are no log files.
        """
        self._client = client
        files = _readable({**known_files(state), **declared}) if isinstance(state, Path) else {}
        known = self._known(files, names)
        found = dict.fromkeys(id_ for name in names for id_ in known.found(name))
        self.chosen = list(found) if names else list(known.ids)
        self._files = {id_: files[id_] for id_ in self.chosen if id_ in files}
        self._in_memory = [id_ for id_ in self.chosen if id_ not in files]
        self._answer: dict[str, Any] = {"lines": [], "newest": 0, "lost": 0, "run": ""}

    def lines(self, query: Query) -> Iterator[Line]:
        """The lines that are there, in order of time."""
        from_files = merge(*self._from_files(query), key=lambda line: line.at)
        documents = (line.document() for line in from_files)
        return merge(self._from_memory(query), documents, key=lambda line: line.get("at_wall_ms", 0))

    def document(self, query: Query, *, alone: bool) -> dict[str, Any]:
        """The same as one document."""
        lines = list(self.lines(query))
        if alone:
            return {"id": self.chosen[0], "lines": [line["text"] for line in lines], "written": lines}
        return {**self._answer, "lines": lines}

    def follow(self, query: Query) -> Iterator[Line]:
        """The lines that are there, then new ones as they are written.

        Raises:
            ControlError: the first request failed.
        """
        tails = [
            LogTail(path, LineFilter(frozenset(ids), "", query.pattern))
            for path, ids in self._by_path().items()
        ]
        ends = {inode: at for tail in tails for inode, at in tail.begin.items()}
        yield from self.lines(query._replace(ends=ends))
        run, after = self._answer["run"], self._answer["newest"]
        while True:
            for line in merge(*(tail.new_lines() for tail in tails), key=lambda line: line.at):
                yield line.document()
            if self._in_memory:
                run, after = yield from self._new_in_memory(query, run, after)
            exit_if_unread()
            time.sleep(GLANCE_S)

    def _known(self, files: Mapping[str, str], names: Sequence[str]) -> Known:
        """All workers; without a supervisor those that have log files.

        Raises:
            NoSupervisorError: no supervisor runs, and there is no log file for one of the names.
        """
        try:
            running = Known.of(self._client.get("/workers"))
        except NoSupervisorError:
            offline = Known(tuple(files), {})
            if not files or not all(map(offline.matching, names)):
                raise
            return offline
        return Known((*running.ids, *(id_ for id_ in files if id_ not in running.ids)), running.together)

    def _by_path(self) -> dict[str, list[str]]:
        """The workers of each file."""
        ordered = sorted(self._files.items(), key=lambda item: item[1])
        return {path: [id_ for id_, _ in items] for path, items in groupby(ordered, key=lambda item: item[1])}

    def _from_files(self, query: Query) -> list[Iterator[LoggedLine]]:
        if query.last is None:
            return [lines_since(path, query.wanted(ids)) for path, ids in self._by_path().items()]
        return [iter(last_lines(path, query.wanted([id_]), query.last)) for id_, path in self._files.items()]

    def _from_memory(self, query: Query) -> list[Line]:
        if not self._in_memory:
            return []
        last = MOST_IN_MEMORY if query.last is None or query.pattern else min(query.last, MOST_IN_MEMORY)
        self._answer = self._client.get(_path(self._in_memory, last=last))
        found: list[Line] = [line for line in self._answer["lines"] if query.matches(line)]
        if query.last is None:
            return found
        each = {id_: [line for line in found if line["component_id"] == id_] for id_ in self._in_memory}
        chosen = [line for lines in each.values() for line in (lines[-query.last :] if query.last else [])]
        return sorted(chosen, key=lambda line: int(line["number"]))

    def _new_in_memory(self, query: Query, run: str, after: int) -> Generator[Line, None, tuple[str, int]]:
        """What the supervisor has got since; returns where to continue."""
        try:
            answer = self._client.get(_path(self._in_memory, after=after))
        except ControlError as error:
            if isinstance(error, InvalidArgumentsError):
                raise
            time.sleep(AGAIN_S)  # the supervisor is stopping, busy or not started yet
            return run, after
        if answer["run"] != run:
            # Another supervisor, which numbers its lines from 1.
            return answer["run"] or run, 0
        if answer["lost"]:
            say("some lines are missing: the workers wrote faster than they could be read")
        yield from (line for line in answer["lines"] if query.matches(line))
        return run, answer["newest"]


def _readable(files: Mapping[str, str]) -> dict[str, str]:
    """The files that exist and that this user may read."""
    return {id_: path for id_, path in files.items() if (found := rotations(path)) and _may_read(found)}


def _may_read(files: Sequence[str]) -> bool:
    denied = [path for path in files if not os.access(path, os.R_OK)]
    if denied:
        say(f"{denied[0]} cannot be read by this user; only lines in the supervisor's memory are shown")
    return not denied


def _path(names: Sequence[str], **numbers: int) -> str:
    query = [f"{name}={number}" for name, number in numbers.items()]
    query.append("ids=" + ",".join(path_of(name).removeprefix("/") for name in names))
    return "/output?" + "&".join(query)
