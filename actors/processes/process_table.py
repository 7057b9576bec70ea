"""The real process table: watches pidfds, channels and output pipes.

It starts, signals and reaps our own children and no others: starts on the launcher's thread, everything
else on the thread of one loop. Orders are posted there, so only the thread that closes a descriptor
uses it. The actors have threads of their own: a worker that floods the supervisor with output must not
keep them from answering.
"""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Callable, Iterable
from queue import Empty

from loguru import logger

from rekindle.worker.guardian import marked_processes

from ..deaths.evidence import Remains
from ..facts.frames import Frame
from ..facts.usage import Usage
from ..messages.internal import (
    ChannelClosed,
    FrameReceived,
    ProcessExited,
    ProcessFound,
    ProcessStarted,
    ProtocolViolated,
    SpawnFailed,
)
from ..ports import Clock, Control, Receiver, SpawnRequest
from ..runtime.lanes import Call, attempt
from ..runtime.mailbox import Mailbox
from ..runtime.resilient_actor import tell
from .child import Child
from .fingerprints import Fingerprints
from .guardian_link import GuardianLink
from .oom_kills import OomKills
from .spawn.launcher import Launcher
from .spawn.pending_starts import PendingStarts
from .spawn.spawner import Begun, Spawner
from .strays import reap_orphans, session_of
from .usage_sampler import UsageSampler
from .watch.epoll_loop import EpollLoop
from .watch.transcript import OutputLine, Transcript

CHANNEL_GRACE_S = 0.1
"""An ending process closes its channel a moment before it is gone; only after this long is a
closed channel news of its own."""

CLOSE_S = 5.0
"""How long the end of everything is waited for."""

TIDY_UP_S = 0.002
"""How long after a death its descriptors are closed. Nobody waits for that, while whoever waits for the
next incarnation would: it keeps the interpreter from those who write the death down."""

KEPT_S = 0.1
"""How often an ended process that a debugger keeps is looked after."""


class RealProcesses:
    """Starts, watches and ends real processes."""

    def __init__(
        self,
        clock: Clock,
        *,
        guarded: bool = True,
        database: str | None = None,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        self.mark = uuid.uuid4().hex
        """Stands in the environment of every process of this system, as REKINDLE_SYSTEM."""
        self._clock = clock
        self._children: dict[str, Child] = {}
        self._untidy: list[Child] = []
        """Those who have ended and whose descriptors are not closed yet."""
        self._pending_starts = PendingStarts()
        self._is_closing = False
        """Nobody is to be started any more."""
        self._is_ending = False
        """Nobody is being started any more: once the last one is gone, all is over."""
        self.transcript = Transcript(self.mark)
        self._sampler = UsageSampler()
        self._sampling = threading.Lock()
        self._spawner = Spawner(self.mark, database)
        self._fingerprints = fingerprints or Fingerprints()
        self._memory = OomKills()
        try:
            self._launcher = Launcher()
            self._loop = self._start_loop()
        except BaseException:
            self._spawner.close()
            self._memory.close()
            raise
        self._guardian = GuardianLink(self.mark, self._loop) if guarded else None
        if self._guardian is not None:
            self._loop.post(self._guardian.start)

    def _start_loop(self) -> EpollLoop:
        try:
            return EpollLoop("watcher")
        except BaseException:  # no thread could be started, or no descriptor is left
            self._launcher.close(CLOSE_S)
            raise

    # ── for the actors ───────────────────────────────────────────────────────────────────

    def spawn(self, request: SpawnRequest) -> None:
        """Start the process."""
        self._pending_starts.expect(request.spec.id)
        self._launcher.start(lambda: self._spawn(request))

    def send(self, component_id: str, generation: int, control: Control) -> None:
        """Tell the worker something over its channel."""
        self._order(component_id, generation, lambda child: child.send(control))

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send a signal; SIGKILL goes to the whole process group."""
        self._order(component_id, generation, lambda child: child.signal(signum))

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """Whether the worker has said that it knows how to write its stacks down."""
        child = self._children.get(component_id)
        return child is not None and child.generation == generation and child.can_show_stacks

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Have a worker write its stacks down, if it has said that it knows how to."""
        self._order(component_id, generation, Child.show_stacks)

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Answer with ProcessFound."""
        self._once_there(component_id, lambda: self._report(component_id, receiver))

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines of the latest incarnation."""
        return tuple([line.text for line in self.written(component_id)])

    def written(self, component_id: str) -> tuple[OutputLine, ...]:
        """The same, with their numbers in the transcript of all."""
        child = self._children.get(component_id)
        return () if child is None else child.tail.last()

    def condition(self, component_id: str) -> str:
        """What the kernel says that the process does: running, sleeping, stopped…"""
        child = self._children.get(component_id)
        return "gone" if child is None else child.condition()

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """What the incarnation and all that it started use; looked up by the caller's thread."""
        child = self._children.get(component_id)
        if child is None or child.generation != generation:
            return None
        with self._sampling:
            usage = self._sampler.usage(child.pid)
            # Reaped meanwhile, its number may have been another's already.
            if child.exit is not None:
                self._sampler.forget(child.pid)
                return None
        return usage

    def strays(self, timeout_s: float = 5.0) -> tuple[tuple[int, str], ...]:
        """Processes that left their worker's session, with the worker that they came from."""
        marked = marked_processes(self.mark)
        # Asked after the look around: a worker that was just being started is known by then.
        answer: Mailbox[set[int]] = Mailbox()
        self._launcher.post(lambda: answer.put({child.pid for child in self._living()}))
        try:
            sessions = answer.get(timeout_s)
        except Empty:
            return ()
        return tuple((pid, id_) for pid, id_ in marked if id_ and session_of(pid) not in {*sessions, None})

    def reap_orphans(self) -> None:
        """Reap ended children that are no workers of ours; never in a host's process."""
        # By the thread that starts workers: it knows every one of them before it does anything else.
        self._launcher.post(lambda: reap_orphans({child.pid for child in self._living()}))

    def forget(self, component_id: str) -> None:
        """Keep nothing of a worker that was removed."""
        # By the thread that starts workers: one that is added anew must not be forgotten.
        self._launcher.post(lambda: self._forget(component_id))

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Kill what is left, reap it, and end the threads; whether that succeeded in time.

        A process that cannot be killed is still waited for afterwards.
        """
        self._is_closing = True
        # Those who run, at once: a start that hangs must not keep them alive. Then everyone, once it is over.
        self._loop.post(self._kill_all)
        self._launcher.post(lambda: self._loop.post(self._begin_end))
        ended = self._loop.join(timeout_s)
        return self._launcher.close(timeout_s) and ended

    def _order(self, component_id: str, generation: int, act: Callable[[Child], None]) -> None:
        self._once_there(component_id, lambda: self._with(component_id, generation, act))

    def _once_there(self, component_id: str, call: Call) -> None:
        self._loop.post(lambda: self._pending_starts.obey(component_id, call))

    # ── a process's life ─────────────────────────────────────────────────────────────────

    def _spawn(self, request: SpawnRequest) -> None:
        """Start a process; on the launcher's thread, like what is done about it afterwards."""
        try:
            if self._is_closing:
                raise OSError("the system is closing")
            kills = self._memory.kills()
            begun = self._spawner.begin(request.spec, request.generation)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this worker's misfortune alone
            self._refuse(request, error)
        else:
            self._launcher.afterwards(lambda: self._take_in(request, begun, kills))

    def _take_in(self, request: SpawnRequest, begun: Begun, kills: int | None) -> None:
        """Have a new process among the children: whoever looks for strangers must know it."""
        try:
            child = Child(request, begun.finish(), self.transcript, kills)
        except OSError as error:
            self._refuse(request, error)
            return
        self._children[child.id] = child
        self._spawner.get_ready()
        news = self._ended if child.pidfd == -1 else self._introduce
        self._loop.post(lambda: self._arrived(child.id, lambda: news(child)))

    def _refuse(self, request: SpawnRequest, error: Exception) -> None:
        failed = SpawnFailed(request.spec.id, request.generation, str(error))
        self._loop.post(lambda: self._arrived(failed.component_id, lambda: self._tell_both(request, failed)))

    def _arrived(self, component_id: str, tell_news: Call) -> None:
        """Tell what became of a start, then carry out the orders that waited for it."""
        orders = self._pending_starts.arrived(component_id)
        for call in (tell_news, *orders):
            attempt(call)

    def _introduce(self, child: Child) -> None:
        """Watch a new process, and tell that it is there."""
        request = child.request
        try:
            self._watch(child)
        except OSError as error:
            # The kernel watches nothing more for us: what cannot be watched must not run.
            child.signal(signal.SIGKILL)
            child.exit = child.reap(wait=True)
            self._unwatch(child)
            child.close()
            failed = SpawnFailed(child.id, child.generation, f"it cannot be watched: {error}")
            self._tell_both(request, failed)
            return
        self._tell_both(request, ProcessStarted(child.id, child.generation, child.pid))
        self._loop.defer(lambda: self._identify(child))

    def _identify(self, child: Child) -> None:
        """Look up which code it runs; one that has ended meanwhile was looked at then."""
        if child.fingerprint is None:
            child.fingerprint = self._fingerprints.of(child.request.spec)

    def _watch(self, child: Child) -> None:
        # An end leaves nothing else to be heard.
        self._loop.watch(child.pidfd, lambda: self._ended(child), urgent=True)
        for stream in child.streams:
            self._loop.watch(stream, lambda stream=stream: self._wrote(child, stream))  # type: ignore[misc]
        if child.channel is not None:
            self._loop.watch(child.channel.fileno(), lambda: self._said(child))

    def _wrote(self, child: Child, stream: int) -> None:
        if not child.read_output(stream):
            self._loop.unwatch(stream)
            child.close_stream(stream)

    def _said(self, child: Child) -> None:
        assert child.channel is not None
        frames, open_still = child.read_frames(self._clock.monotonic())
        self._pass_on(child, frames)
        if not open_still:
            self._loop.unwatch(child.channel.fileno())
            self._loop.after(CHANNEL_GRACE_S, lambda: self._report_closed_channel(child))

    def _pass_on(self, child: Child, frames: Iterable[Frame]) -> None:
        """Tell what came over a channel."""
        monitor = child.request.monitor
        for frame in frames:
            monitor.tell(FrameReceived(child.id, child.generation, frame))
        violation = child.new_violation()
        if violation is not None:
            monitor.tell(ProtocolViolated(child.id, child.generation, violation))

    def _ended(self, child: Child) -> None:
        """The process is a zombie: take its last words, end its group, reap it, tell, tidy up."""
        if child.exit is not None:
            return
        # Whatever cannot be gathered of it, its death is told.
        if child.channel is not None and self._loop.watches(child.channel.fileno()):
            attempt(lambda: self._pass_on(child, child.last_frames(self._clock.monotonic())))
        attempt(child.drain_output)
        child.exit = child.reap()
        if child.exit is None:
            self._loop.unwatch(child.pidfd)
            self._loop.after(KEPT_S, lambda: self._ended(child))
            return
        exited = ProcessExited(child.id, child.generation, child.exit, self._remains(child))
        self._tell_both(child.request, exited)
        self._unwatch(child)
        self._untidy.append(child)
        self._loop.after(TIDY_UP_S, self._tidy_up)
        self._finish_end()

    def _tidy_up(self) -> None:
        while self._untidy:
            self._untidy.pop().close()

    def _remains(self, child: Child) -> Remains | None:
        try:
            self._identify(child)
            return child.remains(self._memory)
        except Exception as error:  # noqa: BLE001
            logger.opt(exception=error).error("what {} left behind cannot be told", child.id)
            return None

    def _unwatch(self, child: Child) -> None:
        for descriptor in child.descriptors():
            self._loop.unwatch(descriptor)

    def _report_closed_channel(self, child: Child) -> None:
        if child.exit is None:
            tell(child.request.monitor, ChannelClosed(child.id, child.generation))

    def _tell_both(self, request: SpawnRequest, news: ProcessStarted | SpawnFailed | ProcessExited) -> None:
        # The proxy first: the Supervisor then knows that the process is gone when it hears of
        # the death, and need not ask for its end.
        tell(request.observer, news)
        tell(request.monitor, news)

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _with(self, component_id: str, generation: int, act: Callable[[Child], None]) -> None:
        child = self._children.get(component_id)
        if child is not None and child.generation == generation and child.exit is None:
            act(child)

    def _report(self, component_id: str, receiver: Receiver) -> None:
        child = self._children.get(component_id)
        if child is None or child.exit is not None:
            tell(receiver, ProcessFound(component_id, None))
        else:
            tell(receiver, ProcessFound(component_id, child.generation, child.pid))

    def _forget(self, component_id: str) -> None:
        child = self._children.get(component_id)
        if child is None or child.exit is not None:
            self._children.pop(component_id, None)
            self._spawner.forget(component_id)
            self._fingerprints.forget(component_id)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _living(self) -> list[Child]:
        return [child for child in tuple(self._children.values()) if child.exit is None]

    def _kill_all(self) -> None:
        for child in self._living():
            if child.pidfd != -1:
                child.signal(signal.SIGKILL)

    def _begin_end(self) -> None:
        self._is_ending = True
        self._kill_all()
        self._finish_end()

    def _finish_end(self) -> None:
        """Once the last one is gone, let go of everything."""
        if not self._is_ending or self._living():
            return
        self._tidy_up()
        if self._guardian is not None:
            self._guardian.dismiss()
        self._spawner.close()
        self._memory.close()
        self._loop.end()
