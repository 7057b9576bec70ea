"""The number of each start, which its processes carry in a resource limit. See `worker/guardian.py`.

Only for a process that starts nothing but its own children: while one is started, the limit of the whole
process has the mark.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from loguru import logger

from rekindle.worker.guardian import limit_mark

from .posix_spawn import fork_lock

STARTS = 1 << 20
"""How many starts of one worker have a number of their own."""

WORKERS = 1 << 16


class StartMarks:
    """Numbers workers and their starts. Written by the thread that starts processes."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._numbers: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._starts: dict[str, int] = {}
        self._next = 0
        self._is_possible = True

    @contextmanager
    def one_start(self, component_id: str) -> Iterator[int]:
        """Mark the process that is started in this block; its number."""
        start = self._number(component_id)
        with fork_lock:  # no other child of this process may inherit the mark
            before = resource.getrlimit(resource.RLIMIT_RTTIME)
            self._set(limit_mark(self._mark, start), before[1])
            try:
                yield start
            finally:
                self._set(*before)

    def known(self) -> dict[str, tuple[int, int]]:
        """Of each worker: its number, and that of its latest start."""
        return {id_: (number, self._starts.get(id_, 0)) for id_, number in self._numbers.items()}

    def take_over(self, known: Mapping[str, tuple[int, int]]) -> None:
        """Go on with the numbers of the former program."""
        self._numbers = {id_: number for id_, (number, _) in known.items()}
        self._ids = {number: id_ for id_, number in self._numbers.items()}
        self._starts = {id_: start for id_, (_, start) in known.items()}
        self._next = max(self._ids, default=-1) + 1

    def is_of(self, start: int, component_id: str, *, until: int) -> bool:
        """Whether it is a start of the worker, and not a later one than that."""
        worker, number = divmod(start, STARTS)
        return self._ids.get(worker) == component_id and number <= until % STARTS

    def worker_of(self, start: int | None) -> str:
        """The worker of a start; empty if it is not known."""
        return "" if start is None else self._ids.get(start // STARTS, "")

    def _number(self, component_id: str) -> int:
        worker = self._numbers.get(component_id)
        if worker is None:
            worker = self._numbers[component_id] = self._next % WORKERS
            self._ids[worker] = component_id
            self._next += 1
        self._starts[component_id] = starts = (self._starts.get(component_id, 0) + 1) % STARTS
        return worker * STARTS + starts

    def _set(self, soft: int, hard: int) -> None:
        if not self._is_possible:
            return
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
        except (ValueError, OSError) as error:
            self._is_possible = False
            logger.warning(
                "processes: workers cannot be marked, so what they detach ends only with the supervisor: {}",
                str(error),
            )
