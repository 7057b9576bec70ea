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
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import Empty

from ..deaths.death import Exit
from ..facts.usage import Usage
from ..handover import Estate, Inheritance
from ..messages.internal.to_proxy import ProcessExited, ProcessFound, SpawnFailed
from ..ports import CancelledJob, ClaimSource, Clock, Control, Receiver, SpawnRequest
from ..runtime.lanes import Call, attempt
from ..runtime.mailbox import Mailbox
from ..runtime.resilient_actor import tell
from ..spec.deployment.drain_policy import DrainPolicy
from .cgroups.cgroups import Cgroups
from .checks.worker_checks import WorkerChecks
from .child import Child
from .claims.claim_desk import ClaimDesk
from .code_lookups import CodeLookups
from .detached_processes import DetachedProcesses, stray_processes
from .ended_processes import EndedProcesses
from .fingerprints import Fingerprints
from .guardian_link import GuardianLink
from .logs.log_writer import LogWriter
from .oom_kills import OomKills
from .sockets.listening_sockets import ListeningSockets
from .spawn.launcher import Launcher
from .spawn.pending_starts import PendingStarts
from .spawn.scarcity import is_scarce
from .spawn.spawner import Begun, Spawner
from .spawn.start_marks import StartMarks
from .spawn.warm.warm_processes import WarmProcesses
from .strays import reap_orphans, session_of, waited_for
from .takeover.freeze import HandOverFreeze
from .takeover.inherited_table import InheritedTable, Lasting, leave
from .usage_sampler import UsageSampler
from .watch.child_watch import TIDY_S, ChildWatch, report_to_both
from .watch.children import Children
from .watch.epoll_loop import EpollLoop
from .watch.transcript import OutputLine, Transcript

CLOSE_S = 5.0
"""How long `close` waits for the threads."""

ANNOUNCED_S = 2.0
"""How long the first start in a control group waits until the guardian is told of the group."""


class RealProcesses:
    """Starts, watches and ends real processes."""

    def __init__(
        self,
        clock: Clock,
        *,
        guarded: bool = True,
        adopts: bool = False,
        database: str | None = None,
        claims: ClaimSource | None = None,
        fingerprints: Fingerprints | None = None,
        inherited_sockets: Mapping[str, int] | None = None,
        launcher: Launcher | None = None,
        inheritance: Inheritance | None = None,
    ) -> None:
        self._inherited = InheritedTable(inheritance)
        left_table = self._inherited.table
        self.mark = uuid.uuid4().hex if left_table is None else left_table.mark
        """In the environment of every process of this system, as REKINDLE_SYSTEM."""
        self._children = Children()
        self._pending_starts = PendingStarts(self._inherited.ids)
        self._is_closing = False
        """No process is started from now on."""
        self._is_ending = False
        """No start is in progress: the table closes with the last process."""
        self._is_frozen = False
        """Starts that have not begun are left to the program that replaces this one."""
        self.transcript = Transcript(self.mark)
        self.logs = LogWriter()
        self._sampler = UsageSampler()
        self._marks = StartMarks(self.mark) if adopts else None
        self._spawner = Spawner(self.mark, database, self._marks)
        self.sockets = self._spawner.sockets = ListeningSockets(inherited_sockets, inheritance)
        self._memory = OomKills()
        with ExitStack() as undo:  # no thread could be started, or no descriptor is left
            undo.callback(self._spawner.close)
            undo.callback(self._memory.close)
            self._lookups = CodeLookups(fingerprints or Fingerprints())
            undo.callback(self._lookups.close)
            self._launcher, self._owns_launcher = launcher or Launcher(), launcher is None
            undo.callback(self._end_launcher, CLOSE_S)
            self._outputs = EpollLoop("output", hang_up_pause_s=TIDY_S)
            undo.callback(self._outputs.post, self._outputs.end)
            self._loop = EpollLoop("watcher")
            undo.pop_all()
        left = self._marks and DetachedProcesses(self.mark, self._marks, self._loop, self._known_pids)
        self._warm = self._spawner.warm = WarmProcesses(self._loop, self._launcher, on_end=self._finish_end)
        self._cgroups = Cgroups(self.mark, moves=adopts, announce=self._announce_cgroup)
        self._spawner.cgroups = self._cgroups
        self._checks = WorkerChecks(self.mark, self._loop, self._outputs)
        self._ended = EndedProcesses(self._loop, self._outputs, self._lookups, left or None)
        self._watch = ChildWatch(
            clock, self._loop, self._outputs, self._memory, self._checks, self._ended, self._finish_end
        )
        self._claims = None if claims is None else ClaimDesk(claims, self.mark)
        self._spawner.claims = self._watch.claims = self._claims
        if self._claims is not None and inheritance is not None:
            self._claims.take_over(inheritance)
        self._guardian = GuardianLink(self.mark, self._loop) if guarded else None
        self._lasting = Lasting(self.mark, self.transcript, self._marks, self._cgroups, self._guardian)
        self._inherited.restore(self._lasting)
        if self._guardian is not None:
            self._loop.post(self._guardian.start if self._guardian.pid is None else lambda: None)

    # ── for the actors ───────────────────────────────────────────────────────────────────

    def spawn(self, request: SpawnRequest) -> None:
        """Start the process."""
        self._pending_starts.add(request.spec.id)
        self._launcher.start(lambda: self._spawn(request))

    def adopt(self, request: SpawnRequest) -> None:
        """Watch a process that the former program of this process started."""
        self._launcher.post(partial(self._adopt, request))

    def send(self, component_id: str, generation: int, control: Control | CancelledJob) -> None:
        """Send the worker a control line over its channel."""
        self._order(component_id, generation, lambda child: child.send(control))

    def drain(self, component_id: str, generation: int, drain: DrainPolicy) -> None:
        """Tell the worker to take no more work; its proxy gets WorkDrained when it has none left."""
        self._order(component_id, generation, lambda child: self._checks.drain(child, drain))

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send a signal; SIGKILL goes to the whole process group."""
        self._order(component_id, generation, lambda child: child.signal(signum))

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """Whether the worker has reported that it can write its stacks."""
        child = self._children.get(component_id)
        return child is not None and child.generation == generation and child.can_show_stacks

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Ask a worker that can to write its stacks."""
        self._order(component_id, generation, Child.show_stacks)

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Answer with ProcessFound."""
        self._once_started(component_id, lambda: self._report(component_id, receiver))

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines of the latest incarnation."""
        return tuple([line.text for line in self.written(component_id)])

    def written(self, component_id: str) -> tuple[OutputLine, ...]:
        """The same, with their numbers in the transcript."""
        child = self._children.get(component_id)
        return () if child is None else child.output.tail.last()

    def condition(self, component_id: str) -> str:
        """The kernel's state of the process: running, sleeping, stopped…"""
        return "gone" if (child := self._children.get(component_id)) is None else child.condition()

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """What the incarnation and its descendants use; read by the calling thread."""
        child = self._children.get(component_id)
        if child is None or child.generation != generation:
            return None
        return self._sampler.usage_while(child.pid, lambda: child.exit is None)

    def strays(self, timeout_s: float = 5.0) -> tuple[tuple[int, str], ...]:
        """Processes that left their worker's session, with the worker that they came from."""
        found = stray_processes(self.mark, self._marks)
        # Asked after the scan: a worker whose start was in progress is known by then.
        answer: Mailbox[set[int]] = Mailbox()
        self._launcher.post(lambda: answer.put({child.pid for child in self._children.living()}))
        try:
            sessions = answer.get(timeout_s)
        except Empty:
            return ()
        # Only workers that exist: any process of theirs may give itself another's name.
        known = [(pid, id_) for pid, id_ in found if id_ in self._children]
        return tuple((pid, id_) for pid, id_ in known if session_of(pid) not in {*sessions, None})

    def watches(self, timeout_s: float) -> bool:
        """Whether the thread that watches the processes answers in time."""
        answer = threading.Event()
        self._loop.post(answer.set)
        return answer.wait(timeout_s)

    def busy_s(self) -> float:
        """How long the thread that watches the processes has been busy with one thing."""
        return self._loop.busy_s

    def reap_orphans(self) -> None:
        """Reap ended children that are not workers; must not be used in a host's process."""
        # On the thread that starts workers, which knows each of them before it makes the next call.
        known = self._children.is_living
        self._launcher.post(lambda: reap_orphans(lambda pid: known(pid) or pid in self._inherited.pids))

    def forget(self, component_id: str) -> None:
        """Drop everything about a worker that was removed."""
        # On the thread that starts workers: one that is added again must not be dropped.
        self._launcher.post(lambda: self._forget(component_id))

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Kill and reap the remaining processes and end the threads; whether that succeeded in time.

        The threads of a process that cannot be killed continue to wait for it.
        """
        self._is_closing = True
        # First what runs now: a start that hangs must not keep it alive. Then all, after the last start.
        self._loop.post(self._kill_all)
        self._launcher.post(self._warm.close)
        self._launcher.post(lambda: self._loop.post(self._begin_end))
        ended = self._loop.join(timeout_s)
        self._lookups.close()
        self._checks.close(timeout_s)
        # A process that writes may hold up the thread that reads: nothing depends on its end.
        self._outputs.join(0.2)
        self.logs.close()
        self.sockets.close()
        return self._end_launcher(timeout_s) and ended

    def _end_launcher(self, timeout_s: float) -> bool:
        end = self._launcher.close if self._owns_launcher else self._launcher.settle
        return end(timeout_s)

    def _order(self, component_id: str, generation: int, act: Callable[[Child], None]) -> None:
        self._once_started(component_id, lambda: self._act(component_id, generation, act))

    def _once_started(self, component_id: str, call: Call) -> None:
        self._loop.post(lambda: self._pending_starts.run_or_queue(component_id, call))

    # ── a process's life ─────────────────────────────────────────────────────────────────

    def _spawn(self, request: SpawnRequest, *, may_wait: bool = True) -> None:
        """Start a process. Runs on the launcher's thread, as `_register` does."""
        try:
            if self._is_closing:
                raise OSError("the system is closing")
            if self._guardian is not None:
                self._guardian.check_lease()
            if self._is_frozen:
                return
            resume = partial(self._launcher.start, lambda: self._spawn(request, may_wait=False))
            if may_wait and self._spawner.wait(request.spec, resume):
                return
            kills = self._memory.kills()
            begun = self._spawner.begin(request.spec, request.generation)
        except Exception as error:  # noqa: BLE001  # any error fails this start only
            self._fail_start(request, error)
        else:
            self._launcher.afterwards(lambda: self._register(request, begun, kills))

    def _register(self, request: SpawnRequest, begun: Begun, oom_kills: int | None) -> None:
        """Add a new process to the children, so that `reap_orphans` leaves it alone."""
        try:
            spawned = begun.finish()
        except OSError as error:
            self._fail_start(request, error)
            return
        log = self.logs.log_of(request.spec, request.generation)
        child = Child(request, spawned, self.transcript, oom_kills, self._lookups.begin(request.spec), log)
        self._children.put(child)
        news = self._watch.on_exit if child.pidfd == -1 else self._watch.begin
        self._loop.post(lambda: self._start_finished(child.id, lambda: news(child)))
        self._spawner.open_spare()

    def _fail_start(self, request: SpawnRequest, error: Exception) -> None:
        failed = SpawnFailed(request.spec.id, request.generation, str(error), is_scarce(error))
        report = partial(report_to_both, request, failed)
        self._loop.post(lambda: self._start_finished(failed.component_id, report))

    def _start_finished(self, component_id: str, tell_news: Call) -> None:
        """Report the outcome of a start, then carry out the orders that waited for it."""
        orders = self._pending_starts.finish(component_id)
        for call in (tell_news, *orders):
            attempt(call)

    # ── an upgrade of the supervisor ─────────────────────────────────────────────────────

    def _adopt(self, request: SpawnRequest) -> None:
        known = self._inherited.find(request.spec.id, request.generation)
        if known is None:
            report_to_both(request, ProcessExited(request.spec.id, request.generation, Exit()))
            return
        log = self.logs.log_of(request.spec, request.generation)
        spawned = self._inherited.spawned(known)
        child = Child(request, spawned, self.transcript, known.oom_kills, lambda: known.fingerprint, log)
        child.take_over(known)
        self._children.put(child)
        self._inherited.claimed(child.id)
        self._spawner.wait(request.spec, lambda: None)  # its warm process did not outlive the former program
        self._loop.post(lambda: self._start_finished(child.id, lambda: self._watch.take_over(child)))

    def end_unclaimed(self) -> None:
        """End what the former program left and this one does not supervise; it is reaped as a stranger."""
        self._launcher.post(lambda: self._inherited.end_unclaimed(self._loop, self._pending_starts))

    def freeze(self, timeout_s: float) -> bool:
        """Start, reap and read nothing from now on; whether everything that was begun is reported.

        Orders are carried out until `leave` ends the thread.
        """
        self._is_frozen = True
        self._launcher.post(self._warm.close)
        has_settled = self._launcher.settle(timeout_s)
        self._checks.close(timeout_s)
        freeze = HandOverFreeze(self._loop, self._outputs, self._ended).freeze
        return freeze(self._children.living, timeout_s) and has_settled

    def leave(self, estate: Estate, timeout_s: float) -> None:
        """End the threads and hand everything over."""
        self._loop.post(self._loop.end)
        self._loop.join(timeout_s)
        self.logs.close()
        leave(estate, self._lasting, self._children.living())
        self.sockets.leave(estate)
        if self._claims is not None:
            self._claims.leave(estate)

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _act(self, component_id: str, generation: int, act: Callable[[Child], None]) -> None:
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
            self._children.remove(component_id)
            self._spawner.forget(component_id)
            self._lookups.fingerprints.forget(component_id)
            self.logs.forget(component_id)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _known_pids(self) -> set[int | None]:
        """Children of this process that were not adopted."""
        guardian = None if self._guardian is None else self._guardian.pid
        return {*waited_for, guardian, *self._inherited.pids, *(each.pid for each in self._children.living())}

    def _announce_cgroup(self, path: Path) -> None:
        """Have the guardian end everything in the control group of all workers, if this process is killed."""
        # The first start in the group waits for it: a process that hides its marks would survive until then.
        is_known = threading.Event()
        if self._guardian is not None:
            self._loop.post(partial(self._guardian.add_cgroup, path))
            self._loop.post(is_known.set)
            is_known.wait(ANNOUNCED_S)

    def set_lease(self, until: float) -> None:
        """Have the guardian end all workers at that time on CLOCK_BOOTTIME, and start none from then on."""
        if self._guardian is not None:
            self._guardian.set_lease(until)

    def _kill_all(self) -> None:
        for child in self._children.living():
            if child.pidfd != -1:
                child.signal(signal.SIGKILL)

    def _begin_end(self) -> None:
        self._is_ending = True
        self._kill_all()
        self._finish_end()

    def _finish_end(self) -> None:
        """After the last exit, close everything."""
        if not self._is_ending or self._ended or self._children.living() or self._warm.running:
            return
        self._watch.tidy()
        if self._guardian is not None:
            self._guardian.dismiss()
        self._cgroups.close()
        self._spawner.close()
        self._memory.close()
        self._outputs.post(self._outputs.end)
        self._loop.end()
