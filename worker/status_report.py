"""Pure: a worker's report about itself, and the frame that carries it.

Every frame carries the whole report, so a lost frame costs only time: the next one repeats it.
"""

from __future__ import annotations

MAX_TEXT = 1024
"""The longest text that a supervisor accepts; a longer one counts as a protocol violation."""

INT_RANGE = range(-(2**63), 2**63)

_MOST_SECONDS = 1e9
"""The supervisor refuses a frame with more."""


class Report:
    """The state that a worker reports. It starts as pending."""

    def __init__(self) -> None:
        self.job: int | str | None = None
        self.stack_signal: int | None = None
        """The signal that makes the worker write the stacks of its threads, if there is one."""
        self.drained = False
        """Whether it was told to take no more work, and has none left."""
        self._status = "pending"
        self._detail = ""
        self._recovered_by: float | None = None
        self._mark: int | str | None = None
        self._count = 0
        self._busy_until: float | None = None

    def say(self, status: str, detail: str = "", *, recovered_by: float | None = None) -> None:
        """Change the status; `recovered_by` is the deadline of a recovery."""
        self._status, self._detail, self._recovered_by = status, detail[:MAX_TEXT], recovered_by

    def advance(self, mark: int | str | None) -> None:
        """Set the progress mark; without a mark, to the next number."""
        self._count += 1
        self._mark = self._count if mark is None else mark

    def busy(self, until: float | None) -> None:
        """Set until when no progress is expected; None: from now on it is."""
        self._busy_until = until

    def frame(self, now: float) -> dict[str, int | float | str]:
        """The report as a frame."""
        frame: dict[str, int | float | str] = {"status": self._status}
        if self._recovered_by is not None:
            frame |= _recovery(self._recovered_by - now)
        if self.job is not None:
            frame["current_job"] = self.job
        if self._mark is not None:
            frame["progress"] = self._mark
        if self._busy_until is not None and self._busy_until > now:
            frame["busy_for_s"] = round(self._busy_until - now, 3)
        if self.stack_signal is not None:
            frame["stack_signal"] = self.stack_signal
        if self.drained:
            frame["drained"] = True
        if self._detail:
            frame.setdefault("detail", self._detail)
        return frame


def _recovery(left_s: float) -> dict[str, int | float | str]:
    # Each frame asks for the remaining time: the whole time again would postpone the end indefinitely.
    if left_s > 0:
        return {"recover_for_s": round(min(left_s, _MOST_SECONDS), 3)}
    return {"status": "unhealthy", "detail": "not recovered in the time it asked for"}


def checked(name: str, value: int | str) -> int | str:
    """The value, if a frame can carry it unchanged.

    Raises:
        TypeError: It is neither an int nor a str.
        ValueError: It is an int beyond 64 bits, or a str longer than `MAX_TEXT`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"{name} must be an int or a str, not {type(value).__name__}")
    if isinstance(value, int) and value not in INT_RANGE:
        raise ValueError(f"{name} must fit in 64 bits")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError(f"{name} must not be longer than {MAX_TEXT} characters")
    return value
