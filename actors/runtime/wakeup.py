"""An auto-reset event: one thread waits for it, any other thread sets it, a signal handler too."""

from __future__ import annotations

import threading

LONGEST_WAIT_S = 86_400.0
"""Lock timeouts overflow for very long waits, so waits are capped; callers wait again."""


class Wakeup:
    """Set any number of times before the wait, it ends one wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Released while the wakeup is set."""
        self._lock.acquire()

    @property
    def is_set(self) -> bool:
        """Whether the next wait returns at once."""
        return not self._lock.locked()

    def set(self) -> None:
        """End the wait of the waiting thread, or the next wait."""
        if self._lock.locked():
            try:  # noqa: SIM105  # `suppress` takes longer than all the rest
                self._lock.release()
            except RuntimeError:  # another thread has set it in between
                pass

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set, then reset it; False if the timeout came first."""
        if timeout_s is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=max(0.0, min(timeout_s, LONGEST_WAIT_S)))
