"""Pure: what a worker says about itself, as the frame that tells it.

Every frame carries the whole report, so a frame that is lost costs nothing but time: the
next heartbeat repeats what it said.
"""

from __future__ import annotations

MAX_TEXT = 1024
"""The longest text that a supervisor takes; a longer one would count against the worker."""

INT_RANGE = range(-(2**63), 2**63)


class Report:
    """The state of one worker, in its own words. Starts out as pending."""

    def __init__(self) -> None:
        self.job: int | str | None = None
        self.stack_signal: int | None = None
        """The signal that has it show the stacks of its threads, if there is one."""
        self._status = "pending"
        self._detail = ""
        self._recovered_by: float | None = None
        self._mark: int | str | None = None
        self._count = 0
        self._busy_until: float | None = None

    def say(self, status: str, detail: str = "", *, recovered_by: float | None = None) -> None:
        """Change the status; `recovered_by` is when a recovery has to be over."""
        self._status, self._detail, self._recovered_by = status, detail[:MAX_TEXT], recovered_by

    def advance(self, mark: int | str | None) -> None:
        """Move the mark of progress; without a mark of its own, to the next number."""
        self._count += 1
        self._mark = self._count if mark is None else mark

    def busy(self, until: float | None) -> None:
        """Say until when the work will not move, or that it does again."""
        self._busy_until = until

    def frame(self, now: float) -> dict[str, int | float | str]:
        """The frame that tells all of it at this moment."""
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
        if self._detail:
            frame.setdefault("detail", self._detail)
        return frame


def _recovery(left_s: float) -> dict[str, int | float | str]:
    # Each frame asks for what is left: asking for the whole time again would put the end off for ever.
    if left_s > 0:
        return {"recover_for_s": round(left_s, 3)}
    return {"status": "unhealthy", "detail": "not recovered in the time it asked for"}


def checked(name: str, value: int | str) -> int | str:
    """The value, if a frame can carry it unchanged.

    Raises:
        TypeError: It is neither an int nor a text.
        ValueError: It is an int beyond 64 bits, or a text longer than `MAX_TEXT`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"{name} must be an int or a str, not {type(value).__name__}")
    if isinstance(value, int) and value not in INT_RANGE:
        raise ValueError(f"{name} must fit in 64 bits")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError(f"{name} must not be longer than {MAX_TEXT} characters")
    return value
