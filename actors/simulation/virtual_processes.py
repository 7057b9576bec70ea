"""The process table of a scenario in virtual time."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Mapping, Sequence

from ..deaths.death import Exit
from ..facts.usage import Usage
from ..messages.internal import ProcessFound, ProcessStarted, SpawnFailed
from ..ports import Control, Receiver, Runtime, SpawnRequest
from ..runtime.resilient_actor import tell
from .heartbeats import Voice
from .scenarios.behaviours import life_of
from .scenarios.history import History, Spawned, SpawnRefused
from .scenarios.moves import Phase
from .scenarios.scenario import Role
from .scripted_process import CLEANUP, SUPERVISOR, Player

_LITTLE = Usage(memory_mb=1.0)


class Stage:
    """A process table without processes, for one life of a supervisor."""

    def __init__(
        self,
        runtime: Runtime,
        roles: Mapping[str, Role],
        history: History,
        *,
        played: dict[str, int],
        changes: Sequence[float] = (),
        sparse: bool = True,
        reached: Callable[[Phase, str], None] = lambda phase, worker: None,
    ) -> None:
        """Set the stage.

        Args:
            runtime: whose clock and timers the workers have.
            roles: who plays what.
            history: where starts and ends are written.
            played: how often each worker was started, over all lives of the supervisor.
            changes: the times at which something may happen to a worker's heartbeats, sorted.
            sparse: leave heartbeats out that change nothing.
            reached: is told when a worker is being started or stopped.
        """
        self.runtime = runtime
        self.history = history
        self.now = runtime.clock.monotonic
        self.changes = changes
        self.sparse = sparse
        self.database_is_away = False
        self._roles = roles
        self._played = played
        self._reached = reached
        self._table: dict[str, Player] = {}
        self._is_open = True

    def close(self) -> None:
        """The supervisor was killed: its guardian ends everybody."""
        self._is_open = False
        for player in self._table.values():
            player.end(Exit(signal=signals.SIGKILL), CLEANUP)

    # ── for the actors ───────────────────────────────────────────────────────────────────

    def spawn(self, request: SpawnRequest) -> None:
        """Begin the next life of this worker."""
        id_, generation = request.spec.id, request.generation
        self._reached(Phase.SPAWN, id_)
        if not self._is_open:
            return
        number = self._played.get(id_, 0)
        self._played[id_] = number + 1
        behaviour = life_of(self._roles[id_].lives, number, self.now())
        if behaviour.cannot_be_spawned is not None:
            self.history.add(SpawnRefused(self.now(), id_, generation, behaviour.cannot_be_spawned))
            failed = SpawnFailed(id_, generation, behaviour.cannot_be_spawned)
            tell(request.observer, failed)
            tell(request.monitor, failed)
            return
        pid = 1000 + sum(self._played.values())
        player = self._table[id_] = Player(self.runtime, self.history, request, behaviour, pid)
        player.voice = Voice(self.runtime, request, behaviour, self.changes if self.sparse else None)
        self.history.add(Spawned(self.now(), id_, generation, pid))
        started = ProcessStarted(id_, generation, pid)
        tell(request.observer, started)
        tell(request.monitor, started)
        player.begin(database_is_away=self.database_is_away)

    def send(self, component_id: str, generation: int, control: Control) -> None:
        """Ask the worker to stop, to idle or to go on."""
        player = self._of(component_id, generation)
        if player is None:
            return
        if control is Control.STOP:
            self._reached(Phase.STOP, component_id)
            if player.alive:
                player.asked_to_stop()
        else:
            player.voice.idle = control is Control.PAUSE

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send the worker a signal, as the supervisor."""
        player = self._of(component_id, generation)
        if player is not None:
            self._reached(Phase.STOP, component_id)
            player.signalled(signum, SUPERVISOR)

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """They have none to show."""
        return False

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Actors have none."""

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Say what runs."""
        player = self.living(component_id)
        if player is None:
            tell(receiver, ProcessFound(component_id, None))
        else:
            tell(receiver, ProcessFound(component_id, player.request.generation, player.pid))

    def output(self, component_id: str) -> tuple[str, ...]:
        """Actors write nothing."""
        return ()

    def condition(self, component_id: str) -> str:
        """Frozen ones are stopped."""
        player = self.living(component_id)
        return "gone" if player is None else "stopped" if player.frozen else "sleeping"

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """Next to nothing."""
        return None if self._of(component_id, generation) is None else _LITTLE

    def forget(self, component_id: str) -> None:
        """Drop the worker from the table."""
        self._table.pop(component_id, None)

    # ── for the scenario ─────────────────────────────────────────────────────────────────

    def living(self, component_id: str) -> Player | None:
        """The living process of a worker."""
        player = self._table.get(component_id)
        return player if player is not None and player.alive else None

    def latest(self, component_id: str) -> Player | None:
        """The latest process of a worker, dead or alive."""
        return self._table.get(component_id)

    def set_database(self, away: bool) -> None:
        """The database went away or came back; who needs it now dies of it."""
        self.database_is_away = away
        if not away:
            return
        for player in self._table.values():
            needs = player.behaviour.needs_database
            if player.alive and needs is not None and self.now() - player.since < needs:
                player.die_without_database()

    def sleep(self) -> None:
        """The host is suspended now."""
        for player in self._table.values():
            player.voice.sleep()

    def _of(self, component_id: str, generation: int) -> Player | None:
        player = self.living(component_id)
        return player if player is not None and player.request.generation == generation else None
