"""One scripted process: how it lives, and how it takes what is done to it."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable

from ..deaths.death import Exit
from ..messages.internal import ProcessExited
from ..ports import Runtime, SpawnRequest, Timer
from ..runtime.resilient_actor import tell
from .heartbeats import Voice
from .scenarios.behaviours import Behaviour
from .scenarios.history import Ended, History

_DIES_WITHOUT_S = 0.1
"""How soon a worker that needs the database dies without it."""

_HARMLESS = frozenset({signals.SIGCHLD, signals.SIGURG, signals.SIGWINCH})
ITSELF, FAULT, SUPERVISOR, CLEANUP = "itself", "fault", "supervisor", "cleanup"


class Player:
    """One process of a worker, acting out its behaviour."""

    __slots__ = (
        "_history", "_pending", "_runtime", "_timers", "alive", "behaviour", "frozen", "hung", "pid",
        "request", "since", "voice",
    )  # fmt: skip

    def __init__(
        self, runtime: Runtime, history: History, request: SpawnRequest, behaviour: Behaviour, pid: int
    ) -> None:
        self.request = request
        self.behaviour = behaviour
        self.pid = pid
        self.alive = True
        self.frozen = self.hung = False
        self.since = runtime.clock.monotonic()
        self.voice: Voice
        self._runtime = runtime
        self._history = history
        self._pending: tuple[int, str] | None = None
        """A signal that waits for it to be thawed, and whose it is."""
        self._timers: list[Timer] = []

    def begin(self, *, database_is_away: bool) -> None:
        """Start to live."""
        does = self.behaviour
        if does.dies_after is not None:
            self.later(does.dies_after, lambda: self.end(does.how, ITSELF))
        if does.needs_database is not None and database_is_away:
            self.die_without_database()
        silences = ((does.hangs_after, self.hang), (does.stops_heartbeating_after, self.fall_silent))
        for after, what in silences:
            if after is not None:
                self.later(after, what)
        self.voice.expect(*(self.since + after for after, _ in silences if after is not None))
        if does.healthy_after is not None and self.request.spec.run.reports_health:
            self.later(0.0 if does.says_recovering is not None else does.healthy_after, self.voice.begin)

    def later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Do something later; one that is frozen by then does it when it is thawed."""
        self._timers.append(self._runtime.timers.after(delay_s, self, what))

    def tell(self, message: Callable[[], None]) -> None:
        """A timer: something of its own is due."""
        if self.alive and self.frozen:
            self.later(0.25, message)
        elif self.alive:
            message()

    def die_without_database(self) -> None:
        """It needs the database, which is away."""
        self.later(_DIES_WITHOUT_S, lambda: self.end(Exit(code=1), ITSELF))

    def hang(self) -> None:
        """Neither say nor hear anything any more."""
        self.hung = True
        self.voice.mute("hung")

    def fall_silent(self) -> None:
        """Say nothing any more."""
        self.voice.mute("silent")

    def freeze(self) -> None:
        """Stop, as by SIGSTOP."""
        self.frozen = True
        self.voice.mute("frozen")

    def thaw(self) -> None:
        """Go on, and take what has come meanwhile."""
        self.frozen = False
        if self._pending is not None:
            self.end(Exit(signal=self._pending[0]), self._pending[1])
        if self.alive:
            self.voice.unmute("frozen")

    def asked_to_stop(self) -> None:
        """The supervisor asks over the channel."""
        if not self.behaviour.ignores_request and not self.hung:
            self.later(self.behaviour.stops_after, lambda: self.end(Exit(code=0), SUPERVISOR))

    def signalled(self, signum: int, by: str) -> None:
        """A signal arrives."""
        if signum == signals.SIGKILL:
            if by == FAULT or not self.behaviour.ignores_kill:
                self.end(Exit(signal=signum), by)
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

    def _ignores(self, signum: int) -> bool:
        """Whether it takes no notice, also of the signal that its policy stops it with."""
        polite = self.request.spec.stop.signal_number
        if signum in (signals.SIGTERM, polite):
            return self.behaviour.ignores_term
        return signum in _HARMLESS

    def end(self, exit_: Exit, by: str) -> None:
        """Die, and be reaped at once."""
        if not self.alive:
            return
        self.alive = False
        self.voice.end()
        for timer in self._timers:
            timer.cancel()
        request = self.request
        id_, generation = request.spec.id, request.generation
        self._history.add(
            Ended(self._runtime.clock.monotonic(), id_, generation, exit_.code, exit_.signal, by)
        )
        if by != CLEANUP:
            exited = ProcessExited(id_, generation, exit_)
            tell(request.observer, exited)
            tell(request.monitor, exited)
