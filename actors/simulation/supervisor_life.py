"""One life of a supervisor in a scenario: its actors, its processes, and the moves made on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pykka

from .. import messages
from ..facts.runs import RunKept
from ..messages import (
    ReportStatus,
    RolloutAdvanced,
    Shutdown,
    StatusChanged,
    StatusReport,
    StopWorkers,
    is_event,
)
from ..messages.internal.hand_over import GoOn, ReportMemory
from ..messages.internal.to_broker import Subscribe
from ..messages.internal.to_persistence import Commit, Flush, Persist
from ..messages.internal.to_proxy import LadderElapsed
from ..messages.internal.to_supervisor import (
    BackoffElapsed,
    HealthSustained,
    PauseElapsed,
    RolloutDue,
    SaveOverdue,
)
from ..runtime.resilient_actor import tell
from ..spec.policies.alert_policy import AlertPolicy
from ..spec.policies.stop_policy import Urgency
from ..supervision.handed_over_worker import HandedOverFleet
from ..supervisor.handed_over_actors import HandedOverActors
from ..system.assembly import EVENT_LINGER_S, Options, assemble
from . import observer
from .faulty_store import FaultyStore
from .recorded_timers import RecordedRuntime
from .scenarios.behaviours import Behaviour
from .scenarios.history import (
    DatabaseChanged,
    FinalReport,
    Ordered,
    SupervisorEnded,
    SupervisorStarted,
)
from .scenarios.moves import DatabaseState, Phase
from .scripted.scripted_processes import ScriptedProcesses

if TYPE_CHECKING:
    from .virtual_run import VirtualRun


ROUNDS = 4
"""How often an upgrade writes what the actors say, until they have nothing to say."""


class ScriptedMistakeError(RuntimeError):
    """Raised in an actor because the scenario says so."""


class SupervisorLife:
    """A supervisor from its start to its end."""

    def __init__(self, run: VirtualRun, number: int) -> None:
        self.run = run
        self.number = number
        self.runtime = RecordedRuntime(run, run.seed * 1_000_003 + number, self._sent_to_persistence)
        self.processes = ScriptedProcesses(
            self.runtime,
            run.scripts,
            history=run.history,
            pids=run.pids,
            changes=run.changes,
            reached=self._reached,
            queues=run.queues,
        )
        self.store = FaultyStore(
            run.store,
            now=run.clock.monotonic,
            note=run.note,
            committed=self._committed,
            released=self._look_for_jobs,
        )
        self.has_stopped = self.has_flushed = False
        self.is_over = False
        self._takes_s = 0.0
        """How long a commit takes."""
        self._mistakes: dict[str, int] = {}
        self.runtime.reactions = {
            Commit: self._commits,
            StatusChanged: self._status_changed,
            StopWorkers: self._stops,
            Shutdown: self._stops,
        }

    def begin(self) -> None:
        """Assemble the actors, and start every worker."""
        run = self.run
        if run.queues is not None:
            run.queues.run, run.queues.is_away = f"run {self.number}", False
        run.note(SupervisorStarted(run.clock.now, self.number, run.clock.wall_ms()))
        self._assemble()
        self.actors.supervisor.tell(messages.StartWorkers(None))

    def _assemble(self, left: HandedOverActors | None = None) -> None:
        run = self.run
        self.actors = assemble(
            [role.spec for role in run.scenario.roles],
            runtime=self.runtime,
            processes=self.processes,
            store=self.store.as_store(),
            options=Options(
                run=f"run {self.number}",
                max_concurrent_starts=run.scenario.max_concurrent_starts,
                event_linger_s=EVENT_LINGER_S,  # as on real threads
                alerts=AlertPolicy(),
                left=left,
                limits=() if run.queues is None else run.queues.jobs.limits(),
            ),
        )
        self.actors.broker.tell(Subscribe(_Listener(self)))

    def upgrade(self) -> None:
        """Replace the actors; the processes run on, and report to the new ones.

        The document goes through JSON, as between two programs. While the store does not answer, or the
        supervisor stops, an upgrade is refused and nothing changes.
        """
        memory = None
        for _ in range(ROUNDS):  # a commit leads to further messages, which may lead to further records
            if self.store.state is not DatabaseState.BACK or self.has_stopped or self.is_over:
                return
            self.has_flushed = False
            self.flush()
            self.runtime.settle()
            memory = self._memory()
        if not self.has_flushed or memory is None or self.is_over:
            return
        self.has_flushed = False
        document = msgspec.json.encode(memory)
        self.runtime.retire()
        self._assemble(msgspec.json.decode(document, type=HandedOverActors))
        self.runtime.settle()
        self.actors.supervisor.tell(GoOn(_Inbox(lambda _: None)))
        self.runtime.settle()

    def _memory(self) -> HandedOverActors | None:
        """What only the actors know; None if the Supervisor refuses."""
        answers: list[Any] = []
        health: list[Any] = []
        if self.is_over:
            return None
        self.actors.supervisor.tell(ReportMemory(_Inbox(answers.append)))
        self.actors.monitor.tell(ReportMemory(_Inbox(health.append)))
        self.runtime.settle()
        if not answers or not isinstance(answers[0], HandedOverFleet):
            return None
        fleet, *processes = answers
        return HandedOverActors(
            fleet=fleet,
            health=health[0],
            processes={each.component_id: each for each in processes},
            at=self.run.clock.now,
        )

    def kill(self) -> None:
        """End it as kill -9 does; its guardian ends the workers."""
        self.is_over = True
        self.runtime.crash()
        self.run.note(SupervisorEnded(self.run.clock.now, self.number, killed=True))
        self.processes.close()

    def close(self) -> None:
        """End the actors of a supervisor that has stopped."""
        self.run.note(SupervisorEnded(self.run.clock.now, self.number, killed=False))
        self.runtime.crash()

    # ── what is observed ─────────────────────────────────────────────────────────────────

    def hear(self, event: messages.Event) -> None:
        """Record a published event."""
        self.run.note(observer.event_entry(self.run.clock.now, event, on_our_clock=True))

    def _make_mistake(self, actor: pykka.Actor, _message: object) -> None:
        name = type(actor).__name__
        if self._mistakes.get(name):
            self._mistakes[name] -= 1
            if not self._mistakes[name]:
                self._mistakes.pop(name)
                self.runtime.watch = self._make_mistake if self._mistakes else None

            def wrong(_message: object) -> None:
                del actor.handle  # type: ignore[attr-defined]
                raise ScriptedMistakeError("the scenario makes this actor raise")

            actor.handle = wrong  # type: ignore[attr-defined]

    def _sent_to_persistence(self, message: object) -> None:
        """Record decisions and events in the moment in which an actor sends them."""
        if isinstance(message, Persist):
            died_at = None
            for item in message.items:
                if isinstance(item, StatusChanged):
                    died_at = item.at
                self._sent(item, died_at)
        else:
            self._sent(message, None)

    def _sent(self, item: object, died_at: float | None) -> None:
        now = self.run.clock.now
        if isinstance(item, RolloutAdvanced) and item.step == "replace":
            for worker in filter(self.processes.alive, item.workers):
                self.run.note(Ordered(now, "renew", worker))
        if is_event(item):
            self.run.note(observer.announced(now, item))
        elif isinstance(item, RunKept):
            self.run.note(observer.run_recorded(now, item.run, self.run.clock.wall_ms()))
        elif (entry := observer.decided(now, item, self._silent_s, died_at)) is not None:
            self.run.note(entry)

    def _silent_s(self, worker: str) -> float | None:
        life = self.processes.latest(worker)
        return None if life is None else round(life.heartbeats.silent_s(), 6)

    def _commits(self, writer: pykka.Actor, message: object) -> bool:
        """Delay a commit of a slow store."""
        takes, self._takes_s = self._takes_s, 0.0
        if not takes or self.store.state is not DatabaseState.SLOW:
            return False
        self.runtime.timers.after(takes, writer.actor_ref, message)
        return True

    def _status_changed(self, actor: pykka.Actor, changed: StatusChanged) -> bool:
        if changed.death is None or not self.run.waits_for_phases or type(actor).__name__ != "Supervisor":
            return False
        self.run.reached(Phase.BEFORE_DECIDE, changed.component_id)
        return self.is_over

    def _stops(self, _actor: pykka.Actor, order: StopWorkers | Shutdown) -> bool:
        ids = order.ids if isinstance(order, StopWorkers) else None
        word = "stop" if isinstance(order, StopWorkers) else "shutdown"
        for worker in ids or (None,):
            self.run.note(Ordered(self.run.clock.now, word, worker, urgency=int(order.urgency)))
        return False

    def _reached(self, phase: Phase, worker: str) -> None:
        if self.run.waits_for_phases:
            self.run.reached(phase, worker)

    def _committed(self, worker: str) -> None:
        self._reached(Phase.AFTER_COMMIT, worker)

    def _look_for_jobs(self) -> None:
        if self.run.queues is not None:
            self.run.queues.wake()

    # ── what moves change ────────────────────────────────────────────────────────────────

    def have_it_raise(self, actor: str, times: int) -> None:
        """Make an actor raise at its next messages."""
        self._mistakes[actor] = times
        self.runtime.watch = self._make_mistake

    def deliver_stale_timers(self, worker: str, generations: int) -> None:
        """Deliver what timers of a worker send that were cancelled when they were on their way already."""
        now = self.generation(worker)
        former = now - max(1, generations)
        for message in (
            BackoffElapsed(worker, former, former),
            HealthSustained(worker, former),
            PauseElapsed(),
            RolloutDue(),
            SaveOverdue(),
        ):
            self.actors.supervisor.tell(message)
        proxy = self.runtime.proxies.get(worker)
        for rung in (LadderElapsed(former, 1), LadderElapsed(now, 0)):
            tell(proxy, rung)

    def set_database(self, state: DatabaseState, takes_s: float) -> None:
        """Change what the store answers; a commit of a slow one takes `takes_s`."""
        if state is not self.store.state:
            self.run.note(DatabaseChanged(self.run.clock.now, state))
        self.store.state = state
        self._takes_s = takes_s
        self.processes.set_database(state in (DatabaseState.LOCKED, DatabaseState.GONE, DatabaseState.FULL))

    def generation(self, worker: str) -> int:
        """The generation of a worker's latest process."""
        life = self.processes.latest(worker)
        return 0 if life is None else life.request.generation

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def calm_down(self) -> None:
        """End the faults: continue frozen processes, deliver heartbeats again, bring the database back."""
        self._mistakes.clear()
        self.runtime.watch = None
        self.set_database(DatabaseState.BACK, 0.0)
        for id_ in self.run.roles:
            life = self.processes.living(id_)
            if life is not None:
                life.thaw()
                life.heartbeats.allow("lost")
                life.heartbeats.set_interval(None)
                life.pass_probes()

    def report(self) -> list[FinalReport]:
        """What the supervisor reports of every worker now, beside the state of its process."""
        answers: list[StatusReport] = []
        self.actors.supervisor.tell(ReportStatus(_Inbox(answers.append)))
        self.runtime.settle()
        now = self.run.clock.now
        known = [each for each in answers[0].workers if each.component_id in self.run.roles]
        return [self._reported(now, status) for status in known]

    def _reported(self, now: float, status: messages.WorkerStatus) -> FinalReport:
        life = self.processes.living(status.component_id)
        return FinalReport(
            now,
            status.component_id,
            status.shown,
            None if status.status is None else status.status.value,
            status.generation,
            status.restart_count,
            status.streak_count,
            None if status.next_attempt_in_s is None else round(status.next_attempt_in_s, 6),
            alive=life is not None,
            stable=life is not None and is_stable(life.behaviour),
            waits=bool(status.waits_for),
        )

    def shut_down(self) -> None:
        """Make the supervisor shut down."""

        def stopped(_answer: object) -> None:
            self.has_stopped = True

        self.actors.supervisor.tell(Shutdown(_Inbox(stopped)))

    def escalate_stop(self, urgency: Urgency) -> None:
        """Make its shutdown firmer, as a second Ctrl-C does."""
        self.actors.supervisor.tell(Shutdown(None, urgency))

    def flush(self) -> None:
        """Persist everything; `has_flushed` is set when that is done."""

        def flushed(_answer: object) -> None:
            self.has_flushed = True

        self.actors.persistence.tell(Flush(_Inbox(flushed)))

    def left(self) -> tuple[str, ...]:
        """The workers that still have a process."""
        return tuple(id_ for id_ in self.run.roles if self.processes.living(id_) is not None)


def is_stable(does: Behaviour) -> bool:
    """Whether a worker with this behaviour stays healthy if nothing is done to it."""
    return (
        does.dies_after is None
        and does.healthy_after is not None
        and does.hangs_after is None
        and does.stops_heartbeating_after is None
        and does.says_recovering is None
        and does.heartbeat is None
    )


class _Listener:
    """Records events in the history."""

    def __init__(self, life: SupervisorLife) -> None:
        self._life = life

    def tell(self, message: Any) -> None:
        """Record one."""
        self._life.hear(message)


class _Inbox:
    """Passes a reply to a function."""

    def __init__(self, take: Callable[[Any], object]) -> None:
        self._take = take

    def tell(self, message: Any) -> None:
        """Pass the reply on."""
        self._take(message)
