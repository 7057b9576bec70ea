"""What clients can cause as often as they like: it is recorded a few times a minute, then only counted."""

from __future__ import annotations

import logging
import threading
import time

from loguru import logger

PERIOD_S = 60.0
MOST_KINDS = 64


class RepeatedCount:
    """Counts what repeats. Any thread may use it."""

    def __init__(self, most: int = 10) -> None:
        """Let the first ones of each minute through, this many."""
        self._most = most
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int, int]] = {}
        """By kind: when the minute began, how many were let through, how many were left out since."""

    def counted(self, kind: str) -> int | None:
        """How many were left out before this one; None if this one is left out too."""
        now = time.monotonic()
        with self._lock:
            began, passed, left_out = self._seen.get(kind, (now, 0, 0))
            if now - began >= PERIOD_S:
                began, passed = now, 0
            if passed >= self._most:
                self._seen[kind] = (began, passed, left_out + 1)
                return None
            if kind not in self._seen and len(self._seen) >= MOST_KINDS:
                self._seen.clear()
            self._seen[kind] = (began, passed + 1, 0)
            return left_out


class RepeatedLog:
    """Log lines of the same kind: the first at once, then a count a minute. Any thread may use it."""

    def __init__(self) -> None:
        self._count = RepeatedCount(most=1)

    def log(self, kind: str, message: str, level: str = "WARNING") -> None:
        """Write the line, unless one of its kind was written within the last minute."""
        left_out = self._count.counted(kind)
        if left_out is not None:
            logger.log(level, "{}{}", message, _more(left_out))


class RepeatedFilter(logging.Filter):
    """The same for a logger of the standard library; lines of one kind have one format."""

    def __init__(self) -> None:
        super().__init__()
        self._count = RepeatedCount(most=1)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        left_out = self._count.counted(str(record.msg))
        if left_out:
            record.msg, record.args = record.getMessage() + _more(left_out), ()
        return left_out is not None


def _more(left_out: int) -> str:
    return f" ({left_out} more like this since the last line)" if left_out else ""
