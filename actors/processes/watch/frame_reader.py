"""Reads frames from a worker's channel, which is not trusted."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.frames import MAX_LINE, Frame, FrameRefusal, decode

FRAMES_PER_SECOND = 100
"""Frames above this rate are refused."""

BACKLOG = 4000
"""As many small frames as a full channel holds: they arrive at once after the supervisor was suspended."""


class FrameReader:
    """Splits bytes into lines and decodes lines as frames; counts refused ones."""

    __slots__ = ("_allowed", "_buffer", "_read_at", "_tolerance", "refused", "violation")

    def __init__(self, tolerance: int) -> None:
        self._tolerance = tolerance
        self._buffer = b""
        self._allowed = float(FRAMES_PER_SECOND)
        self._read_at: float | None = None
        self.refused = 0
        self.violation: str | None = None
        """Why the channel is no longer read, if it is not."""

    @property
    def rest(self) -> bytes:
        """The beginning of a frame whose end has not arrived."""
        return self._buffer

    def take_over(self, rest: bytes, refused: int, violation: str | None) -> None:
        """Go on where the former program of this process stopped to read."""
        self._buffer, self.refused, self.violation = rest, refused, violation
        self._allowed = float(BACKLOG)  # what arrived while no program read is not a flood

    def feed(self, data: bytes, now: float) -> Iterator[Frame]:
        """The frames that this data completes."""
        if self.violation is not None:
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > MAX_LINE:
            self.violation = f"a frame longer than {MAX_LINE} bytes"
            self._buffer = b""
        for line in lines:
            frame = self._take(line, now)
            if frame is not None:
                yield frame
            if self.violation is not None:
                return

    def finish(self, now: float) -> Iterator[Frame]:
        """The channel has ended: a last line without a line end counts."""
        rest, self._buffer = self._buffer, b""
        if rest:
            yield from self.feed(rest + b"\n", now)

    def _take(self, line: bytes, now: float) -> Frame | None:
        # Blank lines are allowed, but they count: reading them costs as much as reading frames.
        is_flood = self._flooded(now)
        if not is_flood and not line.strip():
            return None
        decoded = FrameRefusal("too many frames") if is_flood else decode(line)
        if isinstance(decoded, Frame):
            return decoded
        self.refused += 1
        if self.refused > self._tolerance:
            self.violation = f"{self.refused} frames refused, the last one: {decoded.reason}"
        return None

    def _flooded(self, now: float) -> bool:
        """Whether frames arrive above the allowed rate, on average since the last one."""
        since = now if self._read_at is None else self._read_at
        self._read_at = max(since, now)
        self._allowed = min(self._allowed + max(0.0, now - since) * FRAMES_PER_SECOND, BACKLOG)
        if self._allowed < 1:
            return True
        self._allowed -= 1
        return False
