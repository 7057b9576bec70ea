"""Watches the processes of workers: what they send, what they write, and their end.

Runs on the thread of one loop, which alone uses the descriptors of a process.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from functools import partial

from loguru import logger

from ...deaths.death import Exit
from ...deaths.evidence import Remains
from ...facts.frames import Frame
from ...messages.internal.to_monitor import ChannelClosed, FrameReceived, ProtocolViolated
from ...messages.internal.to_proxy import ProcessExited, ProcessStarted, SpawnFailed
from ...ports import Clock, SpawnRequest
from ...runtime.lanes import attempt
from ...runtime.resilient_actor import tell
from ..checks.notify_reader import NotifyReader
from ..checks.worker_checks import WorkerChecks
from ..child import Child
from ..claims.claim_desk import ClaimDesk
from ..ended_processes import EndedProcesses
from ..oom_kills import OomKills
from .epoll_loop import EpollLoop

CHANNEL_GRACE_S = 0.1
"""An ending process closes its channel a moment before it is gone; only after this time is a
closed channel reported by itself."""

TIDY_S = 0.005
"""How long after the report of an end its descriptors are closed: until then the actors that decide on the
restart, and the thread that starts the next process, need the interpreter."""

TRACED_S = 0.1
"""How often the table tries to reap an ended process that a debugger holds."""


class ChildWatch:
    """Reports the start, the frames and the end of each process to its proxy and to the monitor."""

    def __init__(
        self,
        clock: Clock,
        loop: EpollLoop,
        outputs: EpollLoop,
        memory: OomKills,
        checks: WorkerChecks,
        ended: EndedProcesses,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._outputs = outputs
        self._clock = clock
        self._memory = memory
        self._checks = checks
        self._ended = ended
        self._on_end = on_end
        """Called after the end of each process was reported."""
        self._reported: list[Child] = []
        """Ended processes whose descriptors are still open."""
        self.claims: ClaimDesk | None = None
        """Where workers exchange jobs that do not know the database."""

    def begin(self, child: Child) -> None:
        """Watch a new process and report its start."""
        request = child.request
        try:
            self._watch(child)
        except OSError as error:
            # The kernel's limit of watched descriptors is reached; an unwatched process must not run.
            child.signal(signal.SIGKILL)
            child.exit = child.reap(wait=True)
            self._unwatch(child)
            child.close()
            self._outputs.post(partial(child.output.close, self._outputs))
            failed = SpawnFailed(child.id, child.generation, f"the process cannot be watched: {error}")
            report_to_both(request, failed)
            return
        report_to_both(request, ProcessStarted(child.id, child.generation, child.pid, child.start_note))
        self._checks.begin(child)

    def take_over(self, child: Child) -> None:
        """Watch a process that the former program of this process started."""
        try:
            self._watch(child)
        except OSError as error:
            text = "upgrade: {} cannot be watched and is killed: {}"
            logger.bind(worker=child.id).error(text, child.id, str(error))
            child.signal(signal.SIGKILL)
            self.on_exit(child)
            return
        self._checks.begin(child)

    def _watch(self, child: Child) -> None:
        # Urgent: an exit must not wait for the output of other workers.
        self._loop.watch(child.pidfd, lambda: self.on_exit(child), urgent=True)
        child.output.watch(self._outputs)
        if child.channel is not None:
            self._loop.watch(child.channel.fileno(), lambda: self._on_frames(child))
        if child.notify is not None:
            NotifyReader(child, child.notify, self._loop).watch()

    def _on_frames(self, child: Child) -> None:
        assert child.channel is not None
        frames, open_still = child.read_frames(self._clock.monotonic())
        self._pass_on(child, frames)
        if not open_still:
            self._loop.unwatch(child.channel.fileno())
            self._loop.after(CHANNEL_GRACE_S, lambda: self._report_closed_channel(child))

    def _pass_on(self, child: Child, frames: Iterable[Frame]) -> None:
        """Send the monitor what came over a channel."""
        monitor = child.request.monitor
        for frame in frames:
            if frame.drained:
                child.report_drained()
            monitor.tell(FrameReceived(child.id, child.generation, frame))
        violation = child.new_violation()
        if violation is not None:
            monitor.tell(ProtocolViolated(child.id, child.generation, violation))

    def on_exit(self, child: Child) -> None:
        """The process is a zombie: read what it sent, kill its group, reap it, report, close."""
        if child.exit is not None:
            return
        # Its death is reported even if reading its last output fails.
        if child.channel is not None and self._loop.watches(child.channel.fileno()):
            attempt(lambda: self._pass_on(child, child.last_frames(self._clock.monotonic())))
        attempt(child.finish_notices)
        child.exit = child.reap()
        if child.exit is None:
            self._loop.unwatch(child.pidfd)
            self._loop.after(TRACED_S, lambda: self.on_exit(child))
            return
        self._ended.add(child, partial(self._report_exit, child, child.exit))
        self._unwatch(child)

    def _report_exit(self, child: Child, exit_: Exit) -> None:
        if self.claims is not None:
            # First: what is claimed for the worker after its claims were released would stay claimed.
            self.claims.revoke(child.id, child.generation)
        report_to_both(child.request, ProcessExited(child.id, child.generation, exit_, self._remains(child)))
        self._reported.append(child)
        if len(self._reported) == 1:
            self._loop.after(TIDY_S, self.tidy)
        self._on_end()

    def tidy(self) -> None:
        """Close the descriptors of processes whose end was reported."""
        reported, self._reported = self._reported, []
        for child in reported:
            self._outputs.post(partial(child.output.close, self._outputs))
            self._unwatch(child)
            attempt(child.close)

    def _remains(self, child: Child) -> Remains | None:
        try:
            return child.remains(self._memory)
        except Exception as error:  # noqa: BLE001
            log = logger.bind(worker=child.id).opt(exception=error)
            log.error("processes: cannot read the evidence of {}", child.id)
            return None

    def _unwatch(self, child: Child) -> None:
        for descriptor in child.descriptors():
            self._loop.unwatch(descriptor)

    def _report_closed_channel(self, child: Child) -> None:
        if child.exit is None:
            tell(child.request.monitor, ChannelClosed(child.id, child.generation))


def report_to_both(request: SpawnRequest, news: ProcessStarted | SpawnFailed | ProcessExited) -> None:
    """Tell the proxy and the monitor of a worker what became of its process."""
    # The proxy first: when the Supervisor is notified of the death, it already knows that the
    # process is gone, and does not order its end.
    tell(request.observer, news)
    tell(request.monitor, news)
