"""What a worker's author holds: how to say how it goes, and how to hear what is wanted."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from .channel import inherited
from .heartbeat import Heartbeat, end_orphan
from .rate_limit import RateLimit
from .status_report import Report, checked

TYPE_CHECKING = False  # typing itself would double the cost of this import
if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., object])

DEFAULT_HEARTBEAT_S = 1.0
LONGEST_BUSY_S = 7 * 86_400.0


class Worker:
    """The worker's side of its supervision. All of it may be called from any thread.

    It is made once a process, by the runner or, in a program of its own, by hand; it begins
    as `pending`, and a side thread repeats its report every interval, however long a job
    takes. Outside of Rekindle it says nothing and starts no thread, and all methods work.

    The same holds in a forked child: it is silent there, and hears no control lines.

    Attributes:
        component_id: The worker's id, as its supervisor knows it; empty outside of Rekindle.
        generation: Which incarnation of the worker this process is; 0 outside of Rekindle.
        stopping: Set once the worker is asked to stop. Ask for it with `stop`.
    """

    def __init__(self) -> None:
        self.component_id = os.environ.get("REKINDLE_WORKER", "")
        self.generation = int(os.environ.get("REKINDLE_GENERATION", "0"))
        self.stopping = threading.Event()
        self._resumed = threading.Event()
        self._resumed.set()
        self._orphaned = False
        self._database: str | None = None
        self._addressed = threading.Event()
        self._report = Report()
        # Reentrant, for an author's signal handler that says something in the middle of a frame.
        self._lock = threading.RLock()
        self._rate_limit = RateLimit()
        self._finished_job: int | str | None = None
        """The latest job that was begun since the last frame, if that had to wait."""
        self._channel = inherited()
        self._heartbeat: Heartbeat | None = None
        if self._channel is not None:
            self._heartbeat = Heartbeat(
                self._channel, _interval_s(), beat=self._send, on_control=self._on_control
            )
            self._connect(self._heartbeat)

    @property
    def running(self) -> bool:
        """Whether to go on: False once the worker is asked to stop."""
        return not self.stopping.is_set()

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor has gone; the process is about to be ended."""
        return self._orphaned

    @property
    def paused(self) -> bool:
        """Whether to take no new job for now. A worker that is to stop is not paused any more."""
        return not self._resumed.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait, for ever without a number; True, and at once, when the worker is asked to stop."""
        return self.stopping.wait(seconds)

    def wait_while_paused(self) -> None:
        """Return when the worker is not paused, or is to stop."""
        self._resumed.wait()

    def stop(self) -> None:
        """Ask this worker to stop, as its supervisor would."""
        self.stopping.set()
        self._resumed.set()

    def database(self, timeout_s: float = 10.0) -> str | None:
        """The address of the queues that this worker serves; None if it was given none.

        It comes over the channel: a password in an environment is there for everyone to read.
        """
        if self._channel is not None:
            self._addressed.wait(timeout_s)
        return self._database

    @property
    def current_job(self) -> int | str | None:
        """The job that this worker holds. Setting it tells the supervisor at once.

        Jobs that are over in a few milliseconds are too many to tell of each: of those the
        supervisor hears some twenty times a second which one it is.

        Raises:
            TypeError: The job is neither an int nor a text.
            ValueError: The job is an int beyond 64 bits, or a text of more than 1024 characters.
        """
        return self._report.job

    @current_job.setter
    def current_job(self, job: int | str | None) -> None:
        if job is not None:
            checked("a job", job)
        with self._lock:
            self._report.job = job
            self._report_job()

    def job(self, job: int | str) -> Holding:
        """Hold the job inside a `with` block; however the block ends, the job is let go of."""
        return Holding(self, job)

    def progress(self, mark: int | str | None = None) -> None:
        """Note that the work itself has moved on; without a mark, a counter does.

        Heartbeats come from a side thread and go on when the work hangs; this mark does
        not. It is cheap, and goes out with the next frame.
        """
        if mark is not None:
            checked("a mark of progress", mark)
        with self._lock:
            self._report.advance(mark)
            self._report.busy(None)

    def busy(self, for_s: float) -> Busy:
        """Say that the work will not move for so long: until `progress`, or for a `with` block.

        For a step that cannot report in between. A worker whose work does not move is ended
        only where `health.progress_timeout_s` asks for that, and not before this time is over.

        Raises:
            ValueError: it is no time, or more than a week.
        """
        if not 0 < for_s <= LONGEST_BUSY_S:
            raise ValueError(f"a worker can be busy for up to {LONGEST_BUSY_S:g} s, not {for_s!r}")
        with self._lock:
            self._report.busy(time.monotonic() + for_s)
            self._report_now()
        return Busy(self)

    def healthy(self) -> None:
        """Say that all is well, and that a slow start or a trouble is over."""
        self._say("healthy")

    def unhealthy(self, detail: str = "") -> None:
        """Say that something is wrong. The supervisor ends a worker that stays so."""
        self._say("unhealthy", detail)

    def recovering(self, for_s: float = 30.0) -> Recovery:
        """Ask for time to put something right: until `healthy`, or for a `with` block.

        The worker counts as unhealthy once the time has run out.
        """
        self._say("recovering", recovered_by=time.monotonic() + for_s)
        return Recovery(self)

    def shows_stacks_on(self, signum: int) -> None:
        """Tell the supervisor by which signal it gets the stacks of this process; the runner does."""
        with self._lock:
            self._report.stack_signal = signum

    def _say(self, status: str, detail: str = "", *, recovered_by: float | None = None) -> None:
        with self._lock:
            self._report.say(status, detail, recovered_by=recovered_by)
            self._report_now()

    def _report_job(self) -> None:
        if self._report.job is not None:
            self._finished_job = self._report.job
        self._report_now()

    def _report_now(self) -> None:
        """Send a frame now, or soon if there were many: a supervisor ends whoever sends too much."""
        if self._heartbeat is None or self._heartbeat.is_scheduled:
            return  # the beat that comes tells it
        now = time.monotonic()
        wait_s = self._rate_limit.wait_s(now)
        if wait_s:
            self._heartbeat.beat_by(now + wait_s)
        else:
            self._send()

    def _send(self) -> None:
        if self._channel is None:
            return
        with self._lock:
            frame = self._report.frame(time.monotonic())
            finished_job, self._finished_job = self._finished_job, None
            if finished_job is not None and self._report.job is None:
                # Begun and ended since the last frame: without a word nobody would look for its result.
                self._channel.send({**frame, "current_job": finished_job})
            self._channel.send(frame)

    def _on_control(self, line: dict[str, object]) -> None:
        match line:
            case {"do": "pause"} if self.running:
                self._resumed.clear()
            case {"do": "resume"}:
                self._resumed.set()
            case {"do": "stop"}:
                self.stop()
            case {"database": str(address)}:
                self._database = address
                self._addressed.set()
            case _:
                pass  # of a newer supervisor, or too late

    def _connect(self, heartbeat: Heartbeat) -> None:
        os.register_at_fork(after_in_child=self._disconnect)
        threading.Thread(
            target=self._serve, args=(heartbeat,), name="rekindle-heartbeat", daemon=True
        ).start()

    def _serve(self, heartbeat: Heartbeat) -> None:
        heartbeat.run()
        self._orphaned = True
        self.stop()
        end_orphan()

    def _disconnect(self) -> None:
        # The thread that held the lock at the moment of the fork does not exist in the child.
        self._lock = threading.RLock()
        channel, self._channel, self._heartbeat = self._channel, None, None
        if channel is not None:
            channel.abandon()


class Holding:
    """A job that is held for the length of a `with` block."""

    def __init__(self, worker: Worker, job: int | str) -> None:
        self._worker = worker
        self._job = job

    def __enter__(self) -> None:
        self._worker.current_job = self._job

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Another thread may have taken the next job by now, which is not ours to clear.
        if self._worker.current_job == self._job:
            self._worker.current_job = None


class Recovery:
    """A recovery that a `with` block ends: healthy after it, unhealthy if it raised."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._worker.healthy()
        else:
            self._worker.unhealthy(f"recovery failed: {error!r}")


class Busy:
    """A step of the work that does not move for a while; the end of a `with` block is progress."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.progress()


def slow_start(function: F) -> F:
    """Mark a worker's function that says `healthy` itself, when it is ready.

    The runner says so for all others right before it calls them. What a module does while
    it is imported counts as starting in any case.
    """
    function.slow_start = True  # type: ignore[attr-defined]
    return function


def _interval_s() -> float:
    return float(os.environ.get("REKINDLE_HEARTBEAT_S", DEFAULT_HEARTBEAT_S))
