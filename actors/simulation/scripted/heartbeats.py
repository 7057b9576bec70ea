"""The heartbeats of a scripted process.

Most messages of a run are heartbeats, and nearly all of them change nothing: the next one arrives before
the monitor's deadline. So a process sends only the ones that could be missed: the last one before the
deadline, and the last one before something happens to the worker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import ceil, floor, inf

from ...deaths.death import Job
from ...facts.frames import Frame
from ...messages.internal.to_monitor import FrameReceived, ProtocolViolated
from ...ports import Runtime, SpawnRequest, Timer
from ...processes.watch.frame_reader import FrameReader
from ...runtime.resilient_actor import tell
from ..scenarios.behaviours import Behaviour
from ..scenarios.history import Heard

HEALTHY = Frame(status="healthy")
_SAME_S = 1e-6
"""Times closer than this are the same one."""


class Heartbeats:
    """What one process sends over its channel, and when."""

    __slots__ = (
        "_behaviour",
        "_changes",
        "_created",
        "_due",
        "_expected",
        "_interval",
        "_job",
        "_note",
        "_reader",
        "_regular_since",
        "_runtime",
        "_sent",
        "_suppressed",
        "_suspended",
        "_timer",
        "idle",
        "request",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        request: SpawnRequest,
        behaviour: Behaviour,
        changes: Sequence[float] | None,
        note: Callable[[Heard], None],
    ) -> None:
        """Prepare; nothing is sent before `start`.

        Args:
            runtime: supplies the clock and the timers.
            request: the worker, and the receiver of its frames.
            behaviour: what the process does.
            changes: when something may happen to it, sorted; None sends every heartbeat.
            note: called with every frame.
        """
        self.idle = False
        self._runtime = runtime
        self.request = request
        self._behaviour = behaviour
        self._changes = changes
        self._note = note
        self._created = self._sent = runtime.clock.monotonic()
        self._due = inf
        """When the next heartbeat is sent; the regular ones before it are left out."""
        self._expected: tuple[float, ...] = ()
        self._interval = self._usual
        self._job = behaviour.job
        self._regular_since: float | None = None
        """The start of the present row of regular heartbeats; None before the first one."""
        self._suppressed: set[str] = set()
        self._suspended: float | None = None
        self._reader: FrameReader | None = None
        self._timer: Timer | None = None

    @property
    def _usual(self) -> float:
        return self._behaviour.heartbeat or self.request.spec.health.heartbeat_interval_s

    def expect(self, *times: float) -> None:
        """Something will happen to this worker at these times."""
        self._expected = tuple(sorted(times))

    def start(self) -> None:
        """Send the first one."""
        if not self._suppressed:
            self._beat()
        else:
            self._regular_since = self._runtime.clock.monotonic()

    def stop(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def tell(self, message: object) -> None:
        """The timer: it is time for a heartbeat."""
        self._timer = None
        if not self._suppressed:
            self._beat()

    # ── disturbed by a fault ─────────────────────────────────────────────────────────────

    @property
    def is_suppressed(self) -> bool:
        """Whether it says nothing."""
        return bool(self._suppressed)

    def suppress(self, reason: str) -> None:
        """Send nothing as long as this reason holds."""
        self._catch_up()
        self._suppressed.add(reason)

    def allow(self, reason: str) -> None:
        """This reason no longer holds; if it was the last one, send a heartbeat at once."""
        if reason in self._suppressed:
            self._suppressed.discard(reason)
            if not self._suppressed and self._regular_since is not None:
                self._beat()

    def set_interval(self, seconds: float | None) -> None:
        """Change the interval, counted from the last heartbeat; None is the usual one."""
        interval = seconds or self._usual
        if interval == self._interval:
            return
        self._catch_up()
        self._interval = interval
        if self._regular_since is not None and not self._suppressed:
            self._regular_since = self._sent
            self._wait(1, self._runtime.clock.monotonic())

    def report_job(self, job: Job | None) -> None:
        """The process holds another job, and says so at once, as far as it says anything."""
        self._job = job
        if self._regular_since is not None and not self._suppressed:
            self._beat()

    def suspend(self) -> None:
        """The host is suspended now: nothing is sent until it resumes."""
        if self._suspended is None:
            self._suspended = self._runtime.clock.monotonic()

    def _catch_up(self) -> None:
        """Something unexpected happens: send the last heartbeat that was left out."""
        if self._regular_since is not None and not self._suppressed:
            now = self._runtime.clock.monotonic()
            if self._last_due(now) > self._sent + _SAME_S:
                self.send(HEALTHY)

    def silent_s(self) -> float:
        """How long the process has really been silent: a heartbeat that was left out counts as sent."""
        now = self._runtime.clock.monotonic()
        return now - (self._sent if self._suppressed else self._last_due(now))

    def _last_due(self, now: float) -> float:
        """The time of the last heartbeat, also if it was left out."""
        if self._regular_since is None or self._suppressed or self._interval == inf:
            return self._sent
        until = min(now, self._due, inf if self._suspended is None else self._suspended)
        beats = ceil((until - self._regular_since) / self._interval - _SAME_S) - 1
        return max(self._sent, self._regular_since + max(0, beats) * self._interval)

    # ── sending ──────────────────────────────────────────────────────────────────────────

    def _beat(self) -> None:
        now = self._runtime.clock.monotonic()
        self._suspended = None
        recovering = self._behaviour.says_recovering
        if recovering is not None and now < self._created + recovering:
            self.send(Frame(status="recovering", recover_for_s=recovering))
            self._regular_since = now
            self._wait(1, now)
            return
        job = None if self.idle else self._job
        self.send(HEALTHY if job is None else Frame(status="healthy", current_job=job))
        self._regular_since, self._due = now, inf
        if beats := self._beats_until_next(now):
            self._wait(beats, now)

    def _wait(self, beats: int, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._regular_since is not None
        self._due = self._regular_since + beats * self._interval
        if self._due < inf:
            self._timer = self._runtime.timers.after(self._due - now, self, None)

    def _beats_until_next(self, now: float) -> int:
        """How many intervals until the next heartbeat that could be missed; 0 if there is none."""
        if self._changes is None:
            return 1
        staleness = self.request.spec.health.staleness_s
        if staleness is None:
            return 0
        most = max(1, ceil(staleness / self._interval) - 1)
        change = min(_next(self._expected, now), _next(self._changes, now))
        if change == inf:
            return most
        return max(1, min(most, floor((change - now) / self._interval + _SAME_S)))

    def send(self, frame: Frame) -> None:
        """Send a frame."""
        now = self._sent = self._runtime.clock.monotonic()
        request = self.request
        self._note(Heard(now, request.spec.id, request.generation, frame.status or "", frame.recover_for_s))
        tell(request.monitor, FrameReceived(request.spec.id, request.generation, frame))

    def send_garbage(self, lines: int) -> None:
        """Send lines that are not frames."""
        request = self.request
        if self._suppressed or not request.spec.run.reports_health:
            return
        if self._reader is None:
            self._reader = FrameReader(request.spec.health.max_bad_frames)
        for _ in self._reader.feed(b"\xff{no frame\n" * lines, self._runtime.clock.monotonic()):
            pass
        if self._reader.violation is not None:
            now = self._runtime.clock.monotonic()
            self._note(Heard(now, request.spec.id, request.generation, "garbage"))
            violated = ProtocolViolated(request.spec.id, request.generation, self._reader.violation)
            tell(request.monitor, violated)


def _next(times: Sequence[float], now: float) -> float:
    index = bisect_right(times, now)
    return times[index] if index < len(times) else inf
