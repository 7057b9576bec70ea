"""How a scripted worker speaks.

Heartbeats are the bulk of every run, and nearly all of them change nothing: the next one comes
before anybody asks. So a worker sends only those that somebody could miss: the last one before
the monitor's deadline, and the last one before something happens to the worker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor, inf

from ..facts.frames import Frame
from ..messages.internal import FrameReceived, ProtocolViolated
from ..ports import Runtime, SpawnRequest, Timer
from ..processes.watch.frame_reader import FrameReader
from ..runtime.resilient_actor import tell
from .scenarios.behaviours import Behaviour

HEALTHY = Frame(status="healthy")
_SAME_S = 1e-6
"""Moments closer than this are the same one."""


class Voice:
    """What one process says, and when."""

    __slots__ = (
        "_begun",
        "_behaviour",
        "_changes",
        "_horizon",
        "_interval",
        "_muted",
        "_reader",
        "_request",
        "_row",
        "_runtime",
        "_said",
        "_slept_at",
        "_timer",
        "idle",
    )  # fmt: skip

    def __init__(
        self, runtime: Runtime, request: SpawnRequest, behaviour: Behaviour, changes: Sequence[float] | None
    ) -> None:
        """Get a voice.

        Args:
            runtime: whose clock and timers it has.
            request: whom it speaks to, and in whose name.
            behaviour: what it has to say.
            changes: when something may happen to it, sorted; None has it send every heartbeat.
        """
        self.idle = False
        self._runtime = runtime
        self._request = request
        self._behaviour = behaviour
        self._changes = changes
        self._begun = self._said = runtime.clock.monotonic()
        self._horizon: tuple[float, ...] = ()
        self._interval = self._usual
        self._row: float | None = None
        """Since when it speaks regularly; None before the first word."""
        self._muted: set[str] = set()
        self._slept_at: float | None = None
        self._reader: FrameReader | None = None
        self._timer: Timer | None = None

    @property
    def _usual(self) -> float:
        return self._behaviour.heartbeat or self._request.spec.health.heartbeat_interval_s

    def expect(self, *moments: float) -> None:
        """Something will happen to this worker at these times."""
        self._horizon = tuple(sorted(moments))

    def begin(self) -> None:
        """Say the first word."""
        if not self._muted:
            self._beat()
        else:
            self._row = self._runtime.clock.monotonic()

    def end(self) -> None:
        """Say nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def tell(self, message: object) -> None:
        """The timer: it is time for a heartbeat."""
        self._timer = None
        if not self._muted:
            self._beat()

    # ── being kept from it ───────────────────────────────────────────────────────────────

    def mute(self, why: str) -> None:
        """Say nothing for this reason."""
        self._catch_up()
        self._muted.add(why)

    def unmute(self, why: str) -> None:
        """This reason is gone; if it was the last one, speak at once."""
        if why in self._muted:
            self._muted.discard(why)
            if not self._muted and self._row is not None:
                self._beat()

    def every(self, seconds: float | None) -> None:
        """Speak every so many seconds from the last word on; None is as often as usual."""
        interval = seconds or self._usual
        if interval == self._interval:
            return
        self._catch_up()
        self._interval = interval
        if self._row is not None and not self._muted:
            self._row = self._said
            self._await(1, self._runtime.clock.monotonic())

    def sleep(self) -> None:
        """The host is suspended now: nothing more is said until it wakes."""
        if self._slept_at is None:
            self._slept_at = self._runtime.clock.monotonic()

    def _catch_up(self) -> None:
        """Something happens that nobody could know of: make up for what was left out."""
        if self._row is not None and not self._muted:
            now = self._runtime.clock.monotonic()
            if self._spoke(now) > self._said + _SAME_S:
                self._say(HEALTHY)

    def silent_s(self) -> float:
        """How long it has really said nothing."""
        now = self._runtime.clock.monotonic()
        return now - (self._said if self._muted else self._spoke(now))

    def _spoke(self, now: float) -> float:
        """When it spoke last, what is left out included."""
        if self._row is None or self._muted:
            return self._said
        until = now if self._slept_at is None else min(now, self._slept_at)
        beats = ceil((until - self._row) / self._interval - _SAME_S) - 1
        return max(self._said, self._row + max(0, beats) * self._interval)

    # ── speaking ─────────────────────────────────────────────────────────────────────────

    def _beat(self) -> None:
        now = self._runtime.clock.monotonic()
        self._slept_at = None
        recovering = self._behaviour.says_recovering
        if recovering is not None and now < self._begun + recovering:
            self._say(Frame(status="recovering", recover_for_s=recovering))
            self._row = now
            self._await(1, now)
            return
        job = None if self.idle else self._behaviour.job
        self._say(HEALTHY if job is None else Frame(status="healthy", current_job=job))
        self._row = now
        if beats := self._spared(now):
            self._await(beats, now)

    def _await(self, beats: int, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._row is not None
        self._timer = self._runtime.timers.after(self._row + beats * self._interval - now, self, None)

    def _spared(self, now: float) -> int:
        """How many beats further on the next one is that somebody could miss; 0 is never."""
        staleness = self._request.spec.health.staleness_s
        if staleness is None:
            return 0
        if self._changes is None:
            return 1
        most = max(1, ceil(staleness / self._interval) - 1)
        change = min(_next(self._horizon, now), _next(self._changes, now))
        if change == inf:
            return most
        return max(1, min(most, floor((change - now) / self._interval + _SAME_S)))

    def _say(self, frame: Frame) -> None:
        self._said = self._runtime.clock.monotonic()
        request = self._request
        tell(request.monitor, FrameReceived(request.spec.id, request.generation, frame))

    def garbage(self, lines: int) -> None:
        """Send lines that nobody understands."""
        request = self._request
        if self._muted or not request.spec.run.reports_health:
            return
        if self._reader is None:
            self._reader = FrameReader(request.spec.health.max_bad_frames)
        for _ in self._reader.feed(b"\xff{no frame\n" * lines, self._runtime.clock.monotonic()):
            pass
        if self._reader.violation is not None:
            violated = ProtocolViolated(request.spec.id, request.generation, self._reader.violation)
            tell(request.monitor, violated)


def _next(moments: Sequence[float], now: float) -> float:
    index = bisect_right(moments, now)
    return moments[index] if index < len(moments) else inf
