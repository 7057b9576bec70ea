"""When pauses end by themselves, and the one timer for the next end.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...messages.internal.to_supervisor import PauseElapsed
from ...ports import Receiver, Runtime, Timer


class PauseEnds:
    """The end of each pause that has one, by the id that the pause is for.

    The ends are on the monotonic clock, so that setting the wall clock does not move them.
    """

    def __init__(self, runtime: Runtime, supervisor: Receiver) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._ends: dict[str, float] = {}
        self._timer: Timer | None = None

    def restore(self, left_ms: Mapping[str, int]) -> None:
        """Take over what is left of the pauses of the former run; `arm` starts the timer."""
        now = self._runtime.clock.monotonic()
        self._ends = {id_: now + milliseconds / 1000 for id_, milliseconds in left_ms.items()}

    def set(self, id_: str, for_s: float | None) -> None:
        """A pause begins; None: it lasts until it is ended."""
        self._ends.pop(id_, None)
        if for_s is not None:
            self._ends[id_] = self._runtime.clock.monotonic() + for_s

    def remove(self, id_: str) -> None:
        """A pause is over."""
        self._ends.pop(id_, None)

    def left_s(self, id_: str) -> float | None:
        """How long a pause still lasts; None if it does not end by itself."""
        end = self._ends.get(id_)
        return None if end is None else max(0.0, end - self._runtime.clock.monotonic())

    def elapsed(self) -> list[str]:
        """The ids whose pause is over by now."""
        now = self._runtime.clock.monotonic()
        return [id_ for id_, end in self._ends.items() if end <= now]

    def arm(self) -> None:
        """Send the Supervisor `PauseElapsed` at the next end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ends:
            delay = max(0.0, min(self._ends.values()) - self._runtime.clock.monotonic())
            self._timer = self._runtime.timers.after(delay, self._supervisor, PauseElapsed())
