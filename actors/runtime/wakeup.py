"""A bell: one thread waits for it, any other may ring it, a signal handler too."""

from __future__ import annotations

import threading

LONGEST_WAIT_S = 86_400.0
"""The platform refuses to wait for some centuries; whoever is woken early waits again."""


class Wakeup:
    """Rung any number of times before it is heard, it is heard once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held, but for a moment after it was rung."""
        self._lock.acquire()

    @property
    def is_set(self) -> bool:
        """Whether somebody is yet to hear it."""
        return not self._lock.locked()

    def set(self) -> None:
        """Wake whoever waits, or have the next one not wait."""
        try:  # noqa: SIM105  # a restart waits for several of these, and `suppress` takes as long as the rest
            self._lock.release()
        except RuntimeError:  # it was rung already
            pass

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is rung; whether it was, in time."""
        if timeout_s is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=max(0.0, min(timeout_s, LONGEST_WAIT_S)))
