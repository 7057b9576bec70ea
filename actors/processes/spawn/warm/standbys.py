"""The standbys of one warm process: used at the next starts, and replaced.

A standby that dies is replaced without being counted: it has not run a line of a worker. While memory is
short, none is replaced: a start without one takes some milliseconds more, and a spare process takes memory
that the workers need.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from loguru import logger

from ...strays import waited_for
from ...watch.epoll_loop import EpollLoop
from ...watch.reaper import reap
from ..launcher import Launcher
from .memory_pressure import is_memory_short
from .standby import Standby

REST_S = 0.02
"""How long after a standby was forked the next one is, and after other starts: these come first."""
SHORT_AGAIN_S = 5.0
"""After how long it is looked again whether memory is still short."""
LONGEST_REST_S = 10.0
"""The same after standbys died one after the other: each death doubles the rest."""


class Standbys:
    """Used on the thread that starts processes, but for what is watched on the loop."""

    def __init__(
        self,
        loop: EpollLoop,
        launcher: Launcher,
        fork: Callable[[], Standby | None],
        count: Callable[[int], None],
    ) -> None:
        """
        Args:
            loop: watches them.
            launcher: the thread that starts processes.
            fork: makes one; None: there is no warm process that can.
            count: is called on the loop with 1 and -1 for every one that begins and ends to wait.
        """
        self._loop = loop
        self._launcher = launcher
        self._post = launcher.post
        self._fork = fork
        self._count = count
        self._waiting: deque[Standby] = deque()
        self._is_refilling = False
        self._rest_s = REST_S
        self._refilled_at = -LONGEST_REST_S
        self.wanted = 0
        """How many there should be."""

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, request: bytes, descriptors: Sequence[int]) -> int | None:
        """Have one run a worker; its pid, or None if none waits."""
        while self._waiting:
            standby = self._waiting.popleft()
            if standby.use(request, descriptors):
                waited_for.discard(standby.pid)  # from now on it is a worker, which is reaped as one
                self._loop.post(partial(self._let_go, standby))
                self._rest_s = REST_S
                self.refill_later()
                return standby.pid
        return None

    def refill_later(self, delay_s: float | None = None) -> None:
        """Fork the missing ones in a moment, or after this delay."""
        if not self._is_refilling and len(self._waiting) < self.wanted:
            self._is_refilling = True
            delay = self._pause_s() if delay_s is None else delay_s
            self._loop.post(lambda: self._loop.after(delay, lambda: self._post(self._refill)))

    def end(self) -> None:
        """End all of them."""
        for standby in self._waiting:
            standby.end()
        self._waiting.clear()

    def _pause_s(self) -> float:
        """A standby that is used is replaced at once, so that a second death has one; others follow later."""
        return 0.0 if time.monotonic() - self._refilled_at > self._rest_s else self._rest_s

    def _refill(self) -> None:
        self._is_refilling = False
        if len(self._waiting) < self.wanted:
            if self._launcher.is_busy():
                self.refill_later(REST_S)
                return
            if is_memory_short():
                self.refill_later(SHORT_AGAIN_S)
                return
            self._refilled_at = time.monotonic()
            standby = self._fork()
            if standby is not None:
                self._waiting.append(standby)
                self._loop.post(partial(self._watch, standby))
                self.refill_later()

    # ── on the loop ──────────────────────────────────────────────────────────────────────

    def _watch(self, standby: Standby) -> None:
        self._count(1)
        self._loop.watch(standby.pidfd, lambda: self._on_end(standby))

    def _on_end(self, standby: Standby) -> None:
        self._loop.unwatch(standby.pidfd)
        # Reaped where it is used: one that is used at this moment is reaped as a worker.
        self._post(partial(self._ended, standby))

    def _let_go(self, standby: Standby) -> None:
        self._loop.unwatch(standby.pidfd)
        standby.close()
        self._count(-1)

    def _ended(self, standby: Standby) -> None:
        """On the thread that starts processes."""
        if standby.is_used:
            return
        found = reap(standby.pidfd)
        waited_for.discard(standby.pid)
        self._loop.post(partial(self._let_go, standby))
        if standby in self._waiting:
            self._waiting.remove(standby)
            logger.info("warm start: a standby ended ({}) and is replaced", found[0] if found else "unknown")
            self._rest_s = min(2 * self._rest_s, LONGEST_REST_S)
            self.refill_later()
