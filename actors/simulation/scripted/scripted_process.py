"""One scripted process: what it does, and how it reacts to requests, signals and faults."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Sequence

from ...deaths.death import Exit
from ...deaths.evidence import Remains
from ...facts.notify_datagram import NotifyDatagram
from ...messages.internal.to_monitor import ConditionChecked, NoticeReceived
from ...messages.internal.to_proxy import ProcessExited
from ...ports import Runtime, SpawnRequest, Timer
from ...runtime.resilient_actor import tell
from ...spec.policies.ready_policy import Condition
from ..scenarios.behaviours import Behaviour
from ..scenarios.history import ConditionMet, Ended, Heard, History
from .heartbeats import Heartbeats
from .scripted_jobs import JobServer
from .scripted_probe import ScriptedProbe
from .scripted_queues import ScriptedQueues

_DIES_WITHOUT_S = 0.1
"""How soon a worker that needs the database dies without it."""
_FROZEN_S = 0.25
"""How often a frozen process looks whether it was continued."""

_HARMLESS = frozenset({signals.SIGCHLD, signals.SIGURG, signals.SIGWINCH})
ITSELF, FAULT, SUPERVISOR, CLEANUP = "itself", "fault", "supervisor", "cleanup"


class ScriptedProcess:
    """One process of a worker."""

    __slots__ = (
        "_history",
        "_pending",
        "_probe",
        "_runtime",
        "_timers",
        "alive",
        "behaviour",
        "fails_probes",
        "frozen",
        "heartbeats",
        "hung",
        "jobs",
        "pid",
        "request",
        "since",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        history: History,
        request: SpawnRequest,
        behaviour: Behaviour,
        pid: int,
        changes: Sequence[float] | None,
        queues: ScriptedQueues | None = None,
    ) -> None:
        self.request = request
        self.behaviour = behaviour
        self.pid = pid
        self.alive = True
        self.frozen = self.hung = self.fails_probes = False
        self.since = runtime.clock.monotonic()
        self.heartbeats = Heartbeats(runtime, request, behaviour, changes, history.add)
        self._runtime = runtime
        self._history = history
        self.jobs = JobServer(self, queues) if queues is not None and request.spec.serves else None
        self._pending: tuple[int, str] | None = None
        """A signal that arrived while the process was frozen, and who sent it."""
        self._timers: list[Timer] = []
        alive = request.spec.alive
        self._probe = (
            None if alive is None else ScriptedProbe(runtime, history, request, alive, self._why_not)
        )

    def start(self, *, database_is_away: bool) -> None:
        """Schedule everything that the behaviour does by itself."""
        does = self.behaviour
        if does.dies_after is not None:
            self.later(does.dies_after, lambda: self.end(does.how, ITSELF))
        if does.needs_database is not None and database_is_away:
            self.die_without_database()
        silences = ((does.hangs_after, self.hang), (does.stops_heartbeating_after, self.fall_silent))
        for after, what in silences:
            if after is not None:
                self.later(after, what)
        self.heartbeats.expect(*(self.since + after for after, _ in silences if after is not None))
        if does.healthy_after is not None and self.request.spec.run.reports_health:
            self.later(0.0 if does.says_recovering is not None else does.healthy_after, self.heartbeats.start)
        if does.healthy_after is not None and self.jobs is not None:
            self.later(does.healthy_after, self.jobs.look)
        if does.healthy_after is not None and self.request.spec.ready is not None:
            self.later(does.healthy_after, self.become_ready)
        if (ready := self.request.spec.ready) is not None and ready.watchdog_s is not None:
            self.keep_alive(ready.watchdog_s / 2)

    def report_to(self, request: SpawnRequest) -> None:
        """Another program supervises it from now on."""
        self.request = self.heartbeats.request = request
        if self._probe is not None:
            self._probe.request = request

    def become_ready(self) -> None:
        """Meet every condition of its readiness, except those that the monitor sees by itself."""
        spec, generation = self.request.spec, self.request.generation
        conditions = () if spec.ready is None or self.hung else spec.ready.conditions
        for condition in conditions:
            if condition is not Condition.AFTER_S:
                self._history.add(
                    ConditionMet(self._runtime.clock.monotonic(), spec.id, generation, condition)
                )
                tell(self.request.monitor, ConditionChecked(spec.id, generation, condition, is_met=True))

    def pass_probes(self) -> None:
        """From now on its probe does not fail."""
        self.fails_probes = False

    def _why_not(self) -> str | None:
        """Why it does not answer its probe now."""
        if self.fails_probes:
            return "connection refused"
        return "no answer within 2 s" if self.hung or self.frozen else None

    def keep_alive(self, every_s: float) -> None:
        """Send keep-alives over its notify socket, until it hangs or falls silent."""
        if not self.hung and not self.heartbeats.is_suppressed:
            spec, generation = self.request.spec, self.request.generation
            self._history.add(Heard(self._runtime.clock.monotonic(), spec.id, generation, "alive"))
            tell(self.request.monitor, NoticeReceived(spec.id, generation, NotifyDatagram(is_alive=True)))
        self.later(every_s, lambda: self.keep_alive(every_s))

    def later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Do something later; a process that is frozen by then does it once it is continued."""
        self._timers.append(self._runtime.timers.after(delay_s, self, what))

    def tell(self, message: Callable[[], None]) -> None:
        """A timer: something that the process does is due."""
        if self.alive and self.frozen:
            self.later(_FROZEN_S, message)
        elif self.alive:
            message()

    def die_without_database(self) -> None:
        """The process needs the database, which is away."""
        self.later(_DIES_WITHOUT_S, lambda: self.end(Exit(code=1), ITSELF))

    def hang(self) -> None:
        """From now on send nothing and ignore requests."""
        self.hung = True
        self.heartbeats.suppress("hung")

    def fall_silent(self) -> None:
        """From now on send nothing."""
        self.heartbeats.suppress("silent")

    def freeze(self) -> None:
        """Stop, as by SIGSTOP."""
        self.frozen = True
        self.heartbeats.suppress("frozen")

    def thaw(self) -> None:
        """Continue, and take the signal that arrived meanwhile."""
        self.frozen = False
        if self._pending is not None:
            self.end(Exit(signal=self._pending[0]), self._pending[1])
        if self.alive:
            self.heartbeats.allow("frozen")

    def request_stop(self) -> None:
        """The supervisor asks over the channel."""
        if self.behaviour.ignores_request or self.hung:
            return
        if self.jobs is None:
            self._stop()
        else:
            self.jobs.stop(self._stop)

    def _stop(self) -> None:
        self.later(self.behaviour.stops_after, lambda: self.end(Exit(code=0), SUPERVISOR))

    def receive_signal(self, signum: int, by: str) -> None:
        """A signal arrives."""
        if signum == signals.SIGKILL:
            self._killed(by)
        elif signum == signals.SIGSTOP:
            self.freeze()
        elif signum == signals.SIGCONT:
            self.thaw()
        elif self._ignores(signum):
            pass
        elif self.frozen:
            self._pending = self._pending or (signum, by)
        else:
            self.end(Exit(signal=signum), by)

    def _killed(self, by: str) -> None:
        """SIGKILL arrives; a process that waits for a disk dies of it later, or never."""
        does = self.behaviour
        if by == FAULT or (not does.ignores_kill and does.kill_takes is None):
            self.end(Exit(signal=signals.SIGKILL), by)
        elif does.kill_takes is not None:
            self._timers.append(self._runtime.timers.after(does.kill_takes, _Death(self, by), None))

    def _ignores(self, signum: int) -> bool:
        """`ignores_term` also covers the signal that the stop policy of the worker names."""
        polite = self.request.spec.stop.signal_number
        if signum in (signals.SIGTERM, polite):
            return self.behaviour.ignores_term
        return signum in _HARMLESS

    def end(self, exit_: Exit, by: str) -> None:
        """Die, and be reaped at once."""
        if not self.alive:
            return
        self.alive = False
        self.heartbeats.stop()
        if self._probe is not None:
            self._probe.stop()
        for timer in self._timers:
            timer.cancel()
        request = self.request
        id_, generation = request.spec.id, request.generation
        self._history.add(
            Ended(self._runtime.clock.monotonic(), id_, generation, exit_.code, exit_.signal, by)
        )
        if by != CLEANUP:
            begun = None if self.jobs is None else Remains(begun_jobs=tuple(self.jobs.begun.items()))
            exited = ProcessExited(id_, generation, exit_, begun)
            tell(request.observer, exited)
            tell(request.monitor, exited)


class _Death:
    """The timer of a SIGKILL that takes effect late, also on a process that is frozen by then."""

    def __init__(self, process: ScriptedProcess, by: str) -> None:
        self._process = process
        self._by = by

    def tell(self, message: object) -> None:
        """The timer is due."""
        self._process.end(Exit(signal=signals.SIGKILL), self._by)
