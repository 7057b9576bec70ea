"""`Worker`: reports a worker's status to its supervisor, and receives the supervisor's requests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from .channel import inherited
from .heartbeat import Heartbeat, call_on_thread, end_orphan
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
    """The worker's side of its supervision. Every method may be called from any thread.

    Create it once per process; the runner does so for its function. It starts as `pending`, and a
    separate thread repeats its report every interval, however long a job takes. Outside of Rekindle,
    and in a forked child, all methods work, but nothing is sent or received and no thread is started.

    Attributes:
        component_id: The worker's id; empty outside of Rekindle.
        generation: Which incarnation of the worker this process is; 0 outside of Rekindle.
        node: The name of the node of a cluster that it runs on; empty without a cluster.
        token: A number that only grows from one process of this worker to the next, on whichever node: send
            it with every change outside, so that the change of an older process can be refused. 0 without
            a cluster.
        stopping: Set once the worker is asked to stop. To set it, call `stop`.
    """

    def __init__(self) -> None:
        self.component_id = os.environ.get("REKINDLE_WORKER", "")
        self.generation = int(os.environ.get("REKINDLE_GENERATION", "0"))
        self.node = os.environ.get("REKINDLE_NODE", "")
        self.token = int(os.environ.get("REKINDLE_TOKEN", "0"))
        self.stopping = threading.Event()
        self._resumed = threading.Event()
        self._resumed.set()
        self._draining = threading.Event()
        self._on_drain: Callable[[], object] | None = None
        self._interruption: Interruption | None = None
        self._orphaned = False
        self._database: str | None = None
        self._addressed = threading.Event()
        self._report = Report()
        # Reentrant, because a signal handler may report something while a frame is being sent.
        self._lock = threading.RLock()
        self._rate_limit = RateLimit()
        self.on_cancelled_job: Callable[[int, int], None] | None = None
        """Called with the number and the attempt of a job that should end."""
        self._finished_job: int | str | None = None
        """The latest job that began since the last frame, if the next frame is delayed."""
        self._channel = inherited()
        self._heartbeat: Heartbeat | None = None
        if self._channel is not None:
            self._heartbeat = Heartbeat(
                self._channel, _interval_s(), beat=self._send, on_control=self._on_control
            )
            self._connect(self._heartbeat)

    @property
    def running(self) -> bool:
        """Whether to continue: False once the worker is asked to stop."""
        return not self.stopping.is_set()

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor is gone; this process will be killed shortly."""
        return self._orphaned

    @property
    def paused(self) -> bool:
        """Whether to take no new job for now. A worker that is asked to stop is no longer paused."""
        return not self._resumed.is_set()

    @property
    def draining(self) -> bool:
        """Whether to take no new work from now on, because the worker is about to be asked to stop."""
        return self._draining.is_set() or not self.running

    def on_drain(self, callback: Callable[[], object]) -> None:
        """Have this called once, on the thread of the heartbeat, when the worker is to take no new work.

        It must not take long. Call `drained` when no work is left.
        """
        self._on_drain = callback
        if self._draining.is_set():
            callback()

    def drained(self) -> None:
        """Report that no work is left, so that the supervisor need no longer wait."""
        with self._lock:
            self._report.drained = True
            self._report_now()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait, without limit if `seconds` is None; return True at once when the worker is asked to stop."""
        return self.stopping.wait(seconds)

    def hear(self) -> None:
        """Handle what the supervisor has said so far, such as a pause, instead of moments later."""
        if self._heartbeat is not None:
            self._heartbeat.hear()

    def wait_while_paused(self) -> None:
        """Return when the worker is not paused, or is asked to stop."""
        self._resumed.wait()

    def interruption(self) -> int:
        """A descriptor for `poll`: readable while the worker is paused, drained or asked to stop."""
        if self._interruption is None:
            with self._lock:
                self._interruption = self._interruption or Interruption()
            self._interrupt()  # a request that came before it existed
        return self._interruption.fileno()

    def stop(self) -> None:
        """Ask this worker to stop, as its supervisor would."""
        self.stopping.set()
        self._resumed.set()
        self._interrupt()

    def database(self, timeout_s: float = 10.0) -> str | None:
        """The address of the queues that this worker serves; None if it was given none.

        It comes over the channel: other processes can read a password in the environment.
        """
        if self._channel is not None:
            self._addressed.wait(timeout_s)
        return self._database

    @property
    def current_job(self) -> int | str | None:
        """The job that this worker holds. Setting it notifies the supervisor at once.

        Jobs of a few milliseconds are too many to report each of them: the supervisor is then notified
        about twenty times a second of the current one.

        Raises:
            TypeError: The job is neither an int nor a str.
            ValueError: The job is an int beyond 64 bits, or a str of more than 1024 characters.
        """
        return self._report.job

    @current_job.setter
    def current_job(self, job: int | str | None) -> None:
        if job is not None:
            checked("a job", job)
        with self._lock:
            self._report.job = job
            if job is not None:
                self._finished_job = job
            self._report_now()

    def job(self, job: int | str) -> Holding:
        """Hold the job for the duration of a `with` block, however the block ends."""
        return Holding(self, job)

    def progress(self, mark: int | str | None = None) -> None:
        """Report progress of the work itself; without a mark, a counter is used.

        Heartbeats come from a separate thread and continue when the work hangs; this mark does
        not. It is cheap, and is sent with the next frame.
        """
        if mark is not None:
            checked("a mark of progress", mark)
        with self._lock:
            self._report.advance(mark)
            self._report.busy(None)

    def busy(self, for_s: float) -> Busy:
        """Announce that there will be no progress for this time: until `progress`, or for a `with` block.

        For a step that cannot report in between. A worker without progress is ended only if
        `health.progress_timeout_s` is set, and not before this time is over.

        Raises:
            ValueError: the time is not positive, or is more than a week.
        """
        if not 0 < for_s <= LONGEST_BUSY_S:
            raise ValueError(f"a worker can be busy for up to {LONGEST_BUSY_S:g} s, not {for_s!r}")
        with self._lock:
            self._report.busy(time.monotonic() + for_s)
            self._report_now()
        return Busy(self)

    def healthy(self) -> None:
        """Report that the worker is healthy, and that a slow start or a problem is over."""
        self._say("healthy")

    def unhealthy(self, detail: str = "") -> None:
        """Report a problem. The supervisor ends a worker that stays unhealthy."""
        self._say("unhealthy", detail)

    def recovering(self, for_s: float = 30.0) -> Recovery:
        """Ask for time to recover: until `healthy`, or for a `with` block.

        The worker counts as unhealthy once the time has run out.
        """
        self._say("recovering", recovered_by=time.monotonic() + for_s)
        return Recovery(self)

    def shows_stacks_on(self, signum: int) -> None:
        """Notify the supervisor which signal makes this process write its stacks; the runner calls it."""
        with self._lock:
            self._report.stack_signal = signum

    def _say(self, status: str, detail: str = "", *, recovered_by: float | None = None) -> None:
        with self._lock:
            self._report.say(status, detail, recovered_by=recovered_by)
            self._report_now()

    def _report_now(self) -> None:
        """Send a frame now, or soon if there were many: the supervisor ends a worker that sends too many."""
        if self._heartbeat is None or self._heartbeat.is_scheduled:
            return  # the scheduled beat reports it
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
                # It began and ended since the last frame; the supervisor checks only jobs that were reported.
                self._channel.send({**frame, "current_job": finished_job})
            self._channel.send(frame)

    def _on_control(self, line: dict[str, object]) -> None:
        match line:
            case {"do": "pause"} if not self.draining:
                self._resumed.clear()
                self._interrupt()
            case {"do": "resume"}:
                self._resumed.set()
                if self._interruption is not None:
                    self._interruption.clear()
                self._interrupt()  # if it was asked to stop meanwhile
            case {"do": "stop"}:
                self.stop()
            case {"do": "drain"} if not self._draining.is_set():
                self._drain()
            case {"do": "cancel", "job": int(job), "attempt": int(attempt)}:
                if self.on_cancelled_job is not None:
                    self.on_cancelled_job(job, attempt)
            case {"database": str() | None as address}:
                self._database = address
                self._addressed.set()
            case _:
                pass  # from a newer supervisor, or too late

    def _drain(self) -> None:
        self._draining.set()
        self._resumed.set()
        self._interrupt()
        if self._on_drain is not None:
            self._on_drain()

    def _interrupt(self) -> None:
        if self._interruption is not None and (self.paused or self.draining):
            self._interruption.set()

    def _connect(self, heartbeat: Heartbeat) -> None:
        os.register_at_fork(after_in_child=self._disconnect)
        call_on_thread(lambda: self._serve(heartbeat))

    def _serve(self, heartbeat: Heartbeat) -> None:
        heartbeat.run()
        self._orphaned = True
        self.stop()
        end_orphan()

    def _disconnect(self) -> None:
        # The thread that held the lock at the time of the fork does not exist in the child.
        self._lock = threading.RLock()
        channel, self._channel, self._heartbeat = self._channel, None, None
        if channel is not None:
            channel.abandon()


class Interruption:
    """A descriptor for `poll`, readable from `set` until `clear`. Both may be called from any thread."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def set(self) -> None:
        """Make it readable."""
        os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Make it unreadable."""
        try:  # noqa: SIM105  # contextlib would double the cost of this import
            os.eventfd_read(self._descriptor)
        except BlockingIOError:
            pass


class Holding:
    """A job that is held for the duration of a `with` block."""

    def __init__(self, worker: Worker, job: int | str) -> None:
        self._worker = worker
        self._job = job

    def __enter__(self) -> None:
        self._worker.current_job = self._job

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Another thread may hold the next job by now, which must not be cleared.
        if self._worker.current_job == self._job:
            self._worker.current_job = None


class Recovery:
    """A recovery that ends with a `with` block: healthy after it, unhealthy if it raised."""

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
    """A step without progress; the end of the `with` block is progress."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.progress()


def slow_start(function: F) -> F:
    """Mark a worker's function that calls `healthy` itself when it is ready.

    For all others the runner reports healthy right before it calls them. The import of the module
    always counts as starting.
    """
    function.slow_start = True  # type: ignore[attr-defined]
    return function


def _interval_s() -> float:
    return float(os.environ.get("REKINDLE_HEARTBEAT_S", DEFAULT_HEARTBEAT_S))
