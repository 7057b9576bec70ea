"""What hosts and operators want of a Supervisor, and what they are answered.

Belongs to the Supervisor and runs in it. Keeps what has been wished: which workers are paused,
whether the system was started, whether it is stopping for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Never

from loguru import logger
from msgspec import structs
from msgspec.structs import replace

from .. import supervision
from ..deaths.evidence import Versions
from ..errors import SpecError
from ..facts.records import MetaSet, Remembered
from ..messages import (
    AddWorker,
    BreakerStatus,
    ChangeWorkers,
    Done,
    HostCommand,
    PauseBegan,
    PauseEnded,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ReportStatus,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StatusReport,
    StopWorkers,
    StoreDegraded,
    WorkersChanged,
    WorkerStatus,
)
from ..messages.internal import KeepTogether, PauseElapsed
from ..ports import Receiver, Runtime, Timer
from ..runtime.resilient_actor import tell
from ..spec.spec_changes import Changes, compare
from ..spec.start_order import check_order
from ..spec.stop_urgency import Urgency
from ..spec.worker_spec import WorkerSpec
from ..supervision import failures
from ..supervision.pauses import EVERYTHING, Pause, Pauses
from ..supervision.postponing import answer_to_resume, answer_to_start, impossible_length, paused, put_off
from ..supervision.worker import Failed, Step, StopReason, Worker, World
from ..views.worker_status import worker_status
from .crew import Crew

Change = Callable[[Worker, World], Step]
Reply = Done | Refused
DONE = Done()
Ids = tuple[str, ...] | None
"""Some workers, or all of them."""


class Operations:
    """Carries out the commands of hosts."""

    def __init__(self, runtime: Runtime, crew: Crew, supervisor: Receiver, broker: Receiver) -> None:
        self.degraded: StoreDegraded | None = None
        self.unanswered: set[tuple[str, int]] = set()
        """Deaths that the store did not answer for in time, as (component_id, generation)."""
        self._runtime = runtime
        self._crew = crew
        self._supervisor = supervisor
        self._broker = broker
        self._remembered = Remembered()
        self._pauses = Pauses()
        self._pause_ends: dict[str, float] = {}
        """When pauses end by themselves, on the monotonic clock: setting the other one moves no end."""
        self._pause_timer: Timer | None = None
        self._started = self._stopping = False
        self._versions: dict[str, str] = {}
        """What code and configuration were when somebody last looked, of those where it matters."""
        self.held: Callable[[Worker], str | None] = lambda worker: None
        """Why a breaker holds a worker back."""
        self.held_in_full: Callable[[Worker], str | None] = lambda worker: None
        """The same for people, with what happens next."""
        self.breakers: Callable[[], tuple[BreakerStatus, ...]] = tuple
        """The breakers that are open."""

    def world(self, worker: Worker | None, at: float | None = None) -> World:
        """The moment, as it is for this worker."""
        clock = self._runtime.clock
        spec = None if worker is None else worker.spec
        return World(
            now_ms=round((clock.monotonic() if at is None else at) * 1000),
            wall_ms=clock.wall_ms(),
            stopping=self._stopping,
            paused=spec is not None and self._pauses.holds(spec.id),
            held=None if worker is None or worker.spec.breaker is None else self.held(worker),
            chance=self._runtime.chance() if spec is not None and spec.restart.jitter else 0.0,
            version=None if spec is None else self._versions.get(spec.id),
        )

    def declare(self, specs: Iterable[WorkerSpec], remembered: Remembered) -> None:
        """Take in the workers, as the former run left them."""
        self._remembered = remembered
        self._pauses = Pauses.from_meta(remembered.meta)
        now = self._runtime.clock.monotonic()
        left = self._pauses.left_ms(self._runtime.clock.wall_ms())
        self._pause_ends = {id_: now + milliseconds / 1000 for id_, milliseconds in left.items()}
        for spec in specs:
            self._adopt(spec)
        self.end_pauses()

    def handle(self, command: HostCommand) -> None:
        """Carry out one command, and answer it."""
        match command:
            case StartWorkers(ids=ids, reply_to=reply_to, versions=versions):
                self._versions.update(versions)
                self._start(ids, reply_to)
            case StopWorkers(ids=ids, reply_to=reply_to, urgency=urgency):
                self._stop(ids, reply_to, urgency)
            case RestartWorker(component_id=id_, reply_to=reply_to):
                answer = paused(self._known((id_,)), self._pauses, "restart") or Done()
                self._change((id_,), reply_to, _in_spite(supervision.restart), answer)
            case ResetWorker(component_id=id_, reply_to=reply_to):
                self._change((id_,), reply_to, supervision.reset)
            case PauseWorkers():
                self._pause(command)
            case ResumeWorkers(ids=ids, reply_to=reply_to):
                self._resume(ids, reply_to)
            case AddWorker(spec=spec, reply_to=reply_to, versions=versions):
                self._add(spec, versions, reply_to)
            case RemoveWorker(component_id=id_, reply_to=reply_to):
                self._remove(id_, reply_to)
            case ChangeWorkers(specs=specs, reply_to=reply_to, versions=versions):
                self._replace(specs, versions, reply_to)
            case ReportStatus(reply_to=reply_to):
                tell(reply_to, self._report())
            case Shutdown(reply_to=reply_to, urgency=urgency):
                self.stand_down()
                self._stop(None, reply_to, urgency)
            case unknown:
                _note_unknown(unknown)

    def stand_down(self) -> None:
        """Start nothing any more."""
        self._stopping = True

    # ── starting, stopping, restarting ───────────────────────────────────────────────────

    def _start(self, ids: Ids, reply_to: Receiver | None) -> None:
        failed = next((why for id_ in ids or () if (why := self._failure(id_)) is not None), None)
        if failed is not None:
            tell(reply_to, Refused(failed))
            return
        if ids is None:
            self._started = True
            self._change(None, reply_to, failures.begin)
            return
        # One that an operator names is started whatever a breaker says: it is a canary by hand.
        answer = answer_to_start(self._known(ids), self._pauses)
        self._change(ids, reply_to, _in_spite(failures.begin), answer)

    def _failure(self, component_id: str) -> str | None:
        """Why a failed worker is not to be started."""
        worker = self._crew.get(component_id)
        return None if worker is None else failures.refusal(worker, self.world(worker))

    def _change(self, ids: Ids, reply_to: Receiver | None, change: Change, answer: Reply = DONE) -> None:
        answer = self._unknown(ids) or self._too_late() or self._about_to_stop(ids) or answer
        if isinstance(answer, Done):
            for id_ in self._staying(ids):
                self._crew.step(id_, lambda w: change(w, self.world(w)))
        tell(reply_to, answer)

    def _about_to_stop(self, ids: Ids) -> Refused | None:
        stopping = next((id_ for id_ in self._chosen(ids) if self._crew.is_to_stop(id_)), None)
        return None if stopping is None else Refused(f"{stopping} is about to be stopped; try again")

    def _stop(self, ids: Ids, reply_to: Receiver | None, urgency: Urgency) -> None:
        refusal = self._unknown(ids)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        reason = StopReason.SHUTDOWN if self._stopping else StopReason.OPERATOR
        self._bring_to_rest(self._chosen(ids), reply_to, urgency, reason)

    def _bring_to_rest(
        self, chosen: tuple[str, ...], reply_to: Receiver | None, urgency: Urgency, reason: StopReason
    ) -> None:
        if reply_to is not None:
            self._crew.stops.watch(chosen, reply_to)
        self._crew.stop(chosen, urgency, reason)
        self._crew.answer_stops()

    # ── pauses ───────────────────────────────────────────────────────────────────────────

    def _pause(self, command: PauseWorkers) -> None:
        refusal = self._unknown(command.ids) or impossible_length(command.for_s)
        if refusal is None:
            clock = self._runtime.clock
            ends = None if command.for_s is None else round(command.for_s * 1000) + clock.wall_ms()
            self._pauses, records = self._pauses.paused(command.ids, Pause(command.reason, ends))
            for id_ in command.ids or (EVERYTHING,):
                self._pause_ends.pop(id_, None)
                if command.for_s is not None:
                    self._pause_ends[id_] = clock.monotonic() + command.for_s
            begun = [PauseBegan(id_, command.reason, command.for_s) for id_ in command.ids or (None,)]
            self._keep_pauses(records, begun)
            self._crew.pause(self._staying(command.ids))
        tell(command.reply_to, refusal or Done())

    def _resume(self, ids: Ids, reply_to: Receiver | None) -> None:
        refusal = self._unknown(ids) or self._too_late() or self._about_to_stop(ids)
        if refusal is None and ids is not None and self._pauses.everything:
            refusal = Refused("everything is paused; resume everything first")
        answer = refusal or answer_to_resume(self._known(self._chosen(ids)), self._pauses, ids)
        if refusal is None:
            self._lift(ids)
        tell(reply_to, answer)

    def _lift(self, ids: Ids) -> None:
        """End these pauses, whoever they are of, and start whom nothing holds back any more."""
        ended = [PauseEnded(id_ or None) for id_ in ids or (EVERYTHING,) if id_ in self._pauses.by_id]
        self._pauses, records = self._pauses.resumed(ids)
        for id_ in ids or (EVERYTHING,):
            self._pause_ends.pop(id_, None)
        self._keep_pauses(records, ended)
        if self._stopping:
            return
        free = [id_ for id_ in self._staying(ids) if id_ in self._crew and not self._pauses.holds(id_)]
        for id_ in free:  # all of them first: one that goes on lets those be paused that it needs
            self._crew.unpause(id_)
        for id_ in free:
            self._crew.step(id_, lambda w: supervision.resume(w, self.world(w)))

    def _keep_pauses(self, records: Iterable[MetaSet], events: Iterable[PauseBegan | PauseEnded]) -> None:
        tell(self._broker, KeepTogether((*records, *events)))
        self._await_end_of_pause()

    def end_pauses(self) -> None:
        """End what was paused for a time that is over, and wait for the next end."""
        now = self._runtime.clock.monotonic()
        for id_ in [id_ for id_, end in self._pause_ends.items() if end <= now]:
            self._lift(None if id_ == EVERYTHING else (id_,))
        self._await_end_of_pause()

    def _await_end_of_pause(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None
        if self._pause_ends:
            delay = max(0.0, min(self._pause_ends.values()) - self._runtime.clock.monotonic())
            self._pause_timer = self._runtime.timers.after(delay, self._supervisor, PauseElapsed())

    # ── who is supervised ────────────────────────────────────────────────────────────────

    def _adopt(self, spec: WorkerSpec) -> None:
        known = self._remembered.of(spec.id)
        self._crew.adopt(spec, known, self.world(None))

    def _add(self, spec: WorkerSpec, versions: Versions, reply_to: Receiver | None) -> None:
        refusal = self._too_late()
        if refusal is None and spec.id in self._crew:
            refusal = Refused(f"a worker is called {spec.id!r} already")
        if refusal is None:
            refusal = _disorder([*(worker.spec for worker in self._crew), spec], spec)
        if refusal is None:
            self._versions.update(versions)
            self._take_up(spec)
        tell(reply_to, refusal or Done())

    def _take_up(self, spec: WorkerSpec) -> None:
        self._adopt(spec)
        if self._started:
            self._crew.step(spec.id, lambda w: failures.begin(w, self.world(w)))

    def _remove(self, component_id: str, reply_to: Receiver | None) -> None:
        refusal = self._unknown((component_id,))
        if refusal is not None:
            tell(reply_to, refusal)
            return
        self._dismiss((component_id,), reply_to)

    def _dismiss(self, ids: tuple[str, ...], reply_to: Receiver | None) -> None:
        for id_ in ids:
            self._crew.dismiss(id_)
        if any(id_ in self._pauses.by_id for id_ in ids):
            self._lift(ids)
        self._bring_to_rest(ids, reply_to, Urgency.GRACEFUL, StopReason.REMOVAL)

    def _replace(self, specs: tuple[WorkerSpec, ...], versions: Versions, reply_to: Receiver | None) -> None:
        refusal = self._too_late() or self._still_leaving(specs) or _disorder(specs)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        before = {worker.id: worker.spec for worker in self._crew if not self._crew.is_leaving(worker.id)}
        changes = compare(before, specs)
        self._versions = dict(versions)
        lifted = self._apply(changes, {spec.id: spec for spec in specs})
        changed = [(w, self._pauses.holds(w.id)) for w in self._crew if w.id in changes.restarted]
        tell(reply_to, WorkersChanged(put_off(replace(changes, lifted=lifted), changed)))

    def _apply(self, changes: Changes, wanted: dict[str, WorkerSpec]) -> tuple[str, ...]:
        self._dismiss(changes.removed, None)
        for id_ in (*changes.restarted, *changes.adjusted):
            self._crew.respec(wanted[id_])
        for id_ in changes.restarted:
            self._crew.step(id_, lambda w: supervision.renew(w, StopReason.CHANGE))
        # Also those whose spec is the same: what it names may be another version nevertheless.
        lifted = self._lift_failures((*changes.restarted, *changes.adjusted, *changes.unchanged))
        for id_ in changes.added:
            self._take_up(wanted[id_])
        self._crew.start_those_who_waited()
        return lifted

    def _lift_failures(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        change = failures.begin if self._started else failures.lift
        failed = [id_ for id_ in ids if self._is_failed(id_)]
        for id_ in failed:
            self._crew.step(id_, lambda w: change(w, self.world(w)))
        return tuple(id_ for id_ in failed if not self._is_failed(id_))

    def _is_failed(self, component_id: str) -> bool:
        worker = self._crew.get(component_id)
        return worker is not None and isinstance(worker.phase, Failed)

    def _still_leaving(self, specs: Iterable[WorkerSpec]) -> Refused | None:
        leaving = next((spec.id for spec in specs if self._crew.is_leaving(spec.id)), None)
        return None if leaving is None else Refused(f"{leaving} is still being removed; try again")

    # ── small things ─────────────────────────────────────────────────────────────────────

    def _report(self) -> StatusReport:
        unsaved, degraded = self._trouble()
        return StatusReport(
            tuple(self._status(worker) for worker in self._crew),
            paused=self._pauses.everything,
            unsaved=unsaved,
            degraded=degraded,
            breakers=self.breakers(),
        )

    def _status(self, worker: Worker) -> WorkerStatus:
        now = self._runtime.clock.monotonic()
        end = self._pause_ends.get(self._pauses.key(worker.id))
        return worker_status(
            worker,
            round(now * 1000),
            pause=self._pauses.of(worker.id),
            pause_ends_in_s=None if end is None else max(0.0, end - now),
            waits_for=self._crew.waits_for(worker),
            held=self.held_in_full(worker) if supervision.is_held(worker) else None,
        )

    def _trouble(self) -> tuple[int, str | None]:
        """How many records the store has not taken, and why, as far as we know."""
        if self.degraded is not None:
            return self.degraded.unsaved, self.degraded.reason
        if self.unanswered:
            return len(self.unanswered), "the store does not answer"
        return 0, None

    def _unknown(self, ids: Ids) -> Refused | None:
        unknown = next(
            (id_ for id_ in ids or () if id_ not in self._crew or self._crew.is_leaving(id_)), None
        )
        return None if unknown is None else Refused(f"no worker is called {unknown!r}", unknown)

    def _too_late(self) -> Refused | None:
        return Refused("the system is stopping") if self._stopping else None

    def _chosen(self, ids: Ids) -> tuple[str, ...]:
        return tuple(worker.id for worker in self._crew) if ids is None else ids

    def _known(self, ids: tuple[str, ...]) -> list[Worker]:
        return [worker for id_ in ids if (worker := self._crew.get(id_)) is not None]

    def _staying(self, ids: Ids) -> tuple[str, ...]:
        return tuple(id_ for id_ in self._chosen(ids) if not self._crew.is_leaving(id_))


def _in_spite(change: Change) -> Change:
    """The same change, also where a breaker is open."""
    return lambda worker, world: change(worker, structs.replace(world, held=None, by_hand=True))


def _note_unknown(message: Never) -> None:
    logger.warning("the Supervisor does not understand {!r}", message)


def _disorder(specs: Iterable[WorkerSpec], newcomer: WorkerSpec | None = None) -> Refused | None:
    """Why these cannot be supervised together; the others may name somebody who has left already."""
    try:
        check_order(specs, None if newcomer is None else newcomer.id)
    except SpecError as error:
        return Refused(str(error))
    return None
