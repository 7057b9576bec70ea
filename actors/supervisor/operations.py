"""The commands of hosts and operators, and the replies to them.

Belongs to the Supervisor and runs in it. What stays in force is in the `StandingOrders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs
from msgspec.structs import replace

from .. import supervision
from ..deaths.evidence import Versions
from ..facts.generations import EVERY_OTHER, GenerationsSettled
from ..facts.records import MetaSet, Remembered
from ..messages import (
    AddWorker,
    ChangeWorkers,
    Done,
    EssentialEnded,
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
    StopWorkers,
    WorkersChanged,
)
from ..messages.internal.to_persistence import Persist
from ..ports import Clock, Receiver
from ..runtime.resilient_actor import tell
from ..spec.policies.stop_policy import Urgency
from ..spec.spec_changes import Changes, compare
from ..spec.start_order import order_problem
from ..spec.worker_spec import WorkerSpec
from ..supervision import failures
from ..supervision.lost_lives import lost_death
from ..supervision.pauses import (
    EVERYTHING,
    Pause,
    Pauses,
    length_refusal,
    postponed,
    resume_reply,
    start_refusal,
    start_reply,
)
from ..supervision.worker import Failed, StopReason, Worker, WorkerStep, World
from .breakers import Breakers
from .groups import Groups
from .pause_ends import PauseEnds
from .standing_orders import StandingOrders
from .status_reports import StatusReports
from .upkeep import Upkeep
from .workers import Workers

Change = Callable[[Worker, World], WorkerStep]
Reply = Done | Refused
DONE = Done()
Ids = tuple[str, ...] | None
"""Some workers, or all of them."""


class Operations:
    """Carries out the commands of hosts and answers them."""

    def __init__(
        self,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        upkeep: Upkeep,
        *,
        groups: Groups,
        reports: StatusReports,
        pause_ends: PauseEnds,
        clock: Clock,
        persistence: Receiver,
    ) -> None:
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._upkeep = upkeep
        self._groups = groups
        self._reports = reports
        self._pause_ends = pause_ends
        self._clock = clock
        self._persistence = persistence
        self._remembered = Remembered()

    def world(self, worker: Worker, at: float | None = None) -> World:
        """The moment as it is for this worker."""
        return self._orders.world(worker, self._breakers.holds(worker), at)

    def declare(self, specs: Iterable[WorkerSpec], remembered: Remembered) -> None:
        """Take in the workers, as the former run left them."""
        self._remembered = remembered
        self._orders.pauses = Pauses.from_meta(remembered.meta)
        self._pause_ends.restore(self._orders.pauses.left_ms(self._clock.wall_ms()))
        for life in remembered.lost:
            tell(self._persistence, Persist(lost_death(life, remembered.of(life.component_id))))
        for spec in specs:
            self._adopt(spec)
        self._groups.restore(remembered.meta)
        self.end_pauses()
        self._breakers.restore(remembered.meta)

    def handle(self, command: HostCommand) -> None:
        """Carry out one command and answer it, then do what follows for groups, recycling and breakers."""
        self._carry_out(command)
        if not isinstance(command, ReportStatus):  # a question changes nothing
            self._groups.start_restored()

    def _carry_out(self, command: HostCommand) -> None:
        match command:
            case StartWorkers(ids=ids, reply_to=reply_to, versions=versions):
                self._orders.versions.update(versions)
                self._start(ids, reply_to)
                self._recheck()
                self._breakers.watch()
            case StopWorkers(ids=ids, reply_to=reply_to, urgency=urgency):
                self._stop(ids, reply_to, urgency)
                self._recheck()
            case RestartWorker(component_id=id_, reply_to=reply_to):
                answer = start_refusal(self._known((id_,)), self._orders.pauses, "restart") or Done()
                self._change((id_,), reply_to, _despite_breaker(supervision.restart), answer)
                self._recheck()
            case ResetWorker(component_id=id_, reply_to=reply_to):
                self._change((id_,), reply_to, supervision.reset)
                self._recheck()
            case PauseWorkers():
                self._pause(command)
                self._recheck()
            case ResumeWorkers(ids=ids, reply_to=reply_to):
                self._resume(ids, reply_to)
                self._recheck()
            case AddWorker(spec=spec, reply_to=reply_to, versions=versions):
                self._add(spec, versions, reply_to)
                self._breakers.watch()
            case RemoveWorker(component_id=id_, reply_to=reply_to):
                self._remove(id_, reply_to)
                self._upkeep.recycle_due()
                self._breakers.specs_changed()
            case ChangeWorkers(specs=specs, reply_to=reply_to, versions=versions):
                self._replace(specs, versions, reply_to)
                self._upkeep.specs_changed()
                self._breakers.specs_changed()
            case ReportStatus(reply_to=reply_to):
                self._reports.send(reply_to)
            case Shutdown(reply_to=reply_to, urgency=urgency):
                self._shut_down(reply_to, urgency)
                self._recheck()

    def _recheck(self) -> None:
        """Workers may have started or stopped: recycle those that can be spared, check the canaries."""
        self._upkeep.recycle_due()
        self._breakers.check_canaries()

    def _settle_numbers(self) -> None:
        """Give back the reserved numbers: no process will be started any more."""
        known = {*self._remembered.generations, *self._remembered.workers}
        latest = {id_: self._remembered.of(id_).last_generation for id_ in known}
        latest[EVERY_OTHER] = self._remembered.generations.get(EVERY_OTHER, 0)
        latest |= self._workers.latest_generations()
        settled = tuple(GenerationsSettled(id_, number) for id_, number in latest.items())
        tell(self._persistence, Persist(settled))

    def _shut_down(self, reply_to: Receiver | None, urgency: Urgency) -> None:
        self._orders.stopping = True
        self._settle_numbers()
        self._stop(None, reply_to, urgency)

    def end_all(self, ended: EssentialEnded) -> None:
        """A worker has ended without which the others are of no use: stop them, and start none again."""
        if not self._orders.stopping:
            tell(self._persistence, ended)
            self._shut_down(None, Urgency.GRACEFUL)

    def stand_down(self) -> None:
        """Another supervisor owns the store: stop all workers, firmly, and start none again."""
        self._orders.stopping = True
        self._stop(None, None, Urgency.FIRM)

    # ── starting, stopping, restarting ───────────────────────────────────────────────────

    def _start(self, ids: Ids, reply_to: Receiver | None) -> None:
        failed = next((why for id_ in ids or () if (why := self._failure(id_)) is not None), None)
        if failed is not None:
            tell(reply_to, Refused(failed))
            return
        if ids is None:
            self._orders.started = True
            self._change(None, reply_to, failures.start)
            return
        # A worker that an operator names starts even if its breaker is open: it is a canary by hand.
        answer = start_reply(self._known(ids), self._orders.pauses)
        self._change(ids, reply_to, _despite_breaker(failures.start), answer)

    def _failure(self, component_id: str) -> str | None:
        """Why a failed worker cannot be started."""
        worker = self._workers.get(component_id)
        if worker is None:
            return None
        down = self._groups.down(worker)
        return failures.refusal(worker, self.world(worker)) if down is None else f"{worker.id} waits: {down}"

    def _change(self, ids: Ids, reply_to: Receiver | None, change: Change, answer: Reply = DONE) -> None:
        answer = self._unknown(ids) or self._refused_by_shutdown() or self._about_to_stop(ids) or answer
        if isinstance(answer, Done):
            for id_ in self._staying(ids):
                self._workers.step(id_, lambda w: change(w, self.world(w)))
        tell(reply_to, answer)

    def _about_to_stop(self, ids: Ids) -> Refused | None:
        stopping = next((id_ for id_ in self._chosen(ids) if self._workers.is_to_stop(id_)), None)
        return None if stopping is None else Refused(f"{stopping} is about to be stopped; try again")

    def _stop(self, ids: Ids, reply_to: Receiver | None, urgency: Urgency) -> None:
        refusal = self._unknown(ids)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        reason = StopReason.SHUTDOWN if self._orders.stopping else StopReason.OPERATOR
        self._stop_these(self._chosen(ids), reply_to, urgency, reason)

    def _stop_these(
        self, chosen: tuple[str, ...], reply_to: Receiver | None, urgency: Urgency, reason: StopReason
    ) -> None:
        if reply_to is not None:
            self._workers.stops.watch(chosen, reply_to)
        self._workers.stop(chosen, urgency, reason)
        self._workers.answer_stops()

    # ── pauses ───────────────────────────────────────────────────────────────────────────

    def _pause(self, command: PauseWorkers) -> None:
        refusal = self._unknown(command.ids) or length_refusal(command.for_s)
        if refusal is None:
            ends = None if command.for_s is None else round(command.for_s * 1000) + self._clock.wall_ms()
            self._orders.pauses, records = self._orders.pauses.paused(
                command.ids, Pause(command.reason, ends)
            )
            for id_ in command.ids or (EVERYTHING,):
                self._pause_ends.set(id_, command.for_s)
            begun = [PauseBegan(id_, command.reason, command.for_s) for id_ in command.ids or (None,)]
            self._persist_pauses(records, begun)
            self._workers.pause(self._staying(command.ids))
        tell(command.reply_to, refusal or Done())

    def _resume(self, ids: Ids, reply_to: Receiver | None) -> None:
        refusal = self._unknown(ids) or self._refused_by_shutdown() or self._about_to_stop(ids)
        if refusal is None and ids is not None and self._orders.pauses.everything:
            refusal = Refused("everything is paused; resume everything first")
        answer = refusal or resume_reply(self._known(self._chosen(ids)), self._orders.pauses, ids)
        if refusal is None:
            self._end_pauses_of(ids)
        tell(reply_to, answer)

    def _end_pauses_of(self, ids: Ids) -> None:
        """End these pauses and start the workers that nothing else holds back."""
        ended = [PauseEnded(id_ or None) for id_ in ids or (EVERYTHING,) if id_ in self._orders.pauses.by_id]
        self._orders.pauses, records = self._orders.pauses.resumed(ids)
        for id_ in ids or (EVERYTHING,):
            self._pause_ends.remove(id_)
        self._persist_pauses(records, ended)
        if self._orders.stopping:
            return
        free = [
            id_ for id_ in self._staying(ids) if id_ in self._workers and not self._orders.pauses.holds(id_)
        ]
        for id_ in free:  # all of them first: a worker that continues may let workers pause that it needs
            self._workers.unpause(id_)
        for id_ in free:
            self._workers.step(id_, lambda w: supervision.resume(w, self.world(w)))

    def _persist_pauses(self, records: Iterable[MetaSet], events: Iterable[PauseBegan | PauseEnded]) -> None:
        tell(self._persistence, Persist((*records, *events)))
        self._pause_ends.arm()

    def end_pauses(self) -> None:
        """End the pauses whose time is over, and wait for the next end."""
        for id_ in self._pause_ends.elapsed():
            self._end_pauses_of(None if id_ == EVERYTHING else (id_,))
        self._pause_ends.arm()

    # ── which workers are supervised ─────────────────────────────────────────────────────

    def _adopt(self, spec: WorkerSpec) -> None:
        known = self._remembered.of(spec.id)
        self._workers.adopt(spec, known, self._orders.world(None))

    def _add(self, spec: WorkerSpec, versions: Versions, reply_to: Receiver | None) -> None:
        refusal = self._refused_by_shutdown()
        if refusal is None and spec.id in self._workers:
            refusal = Refused(f"a worker is called {spec.id!r} already")
        if refusal is None:
            refusal = _refused(order_problem([*(worker.spec for worker in self._workers), spec], spec.id))
        if refusal is None:
            self._orders.versions.update(versions)
            self._add_and_start(spec)
            self._workers.declare()
        tell(reply_to, refusal or Done())

    def _add_and_start(self, spec: WorkerSpec) -> None:
        self._adopt(spec)
        if self._orders.started:
            self._workers.step(spec.id, lambda w: failures.start(w, self.world(w)))

    def _remove(self, component_id: str, reply_to: Receiver | None) -> None:
        refusal = self._unknown((component_id,))
        if refusal is not None:
            tell(reply_to, refusal)
            return
        self._dismiss((component_id,), reply_to)

    def _dismiss(self, ids: tuple[str, ...], reply_to: Receiver | None) -> None:
        for id_ in ids:
            self._workers.dismiss(id_)
        if any(id_ in self._orders.pauses.by_id for id_ in ids):
            self._end_pauses_of(ids)
        self._stop_these(ids, reply_to, Urgency.GRACEFUL, StopReason.REMOVAL)

    def _replace(self, specs: tuple[WorkerSpec, ...], versions: Versions, reply_to: Receiver | None) -> None:
        refusal = self._refused_by_shutdown() or self._being_removed(specs) or _refused(order_problem(specs))
        if refusal is not None:
            tell(reply_to, refusal)
            return
        before = {
            worker.id: worker.spec for worker in self._workers if not self._workers.is_leaving(worker.id)
        }
        changes = compare(before, specs)
        self._orders.versions = dict(versions)
        lifted = self._apply(changes, {spec.id: spec for spec in specs})
        self._workers.arrange(spec.id for spec in specs)
        self._workers.declare()
        changed = [(w, self._orders.pauses.holds(w.id)) for w in self._workers if w.id in changes.restarted]
        tell(reply_to, WorkersChanged(postponed(replace(changes, lifted=lifted), changed)))

    def _apply(self, changes: Changes, wanted: dict[str, WorkerSpec]) -> tuple[str, ...]:
        self._dismiss(changes.removed, None)
        for id_ in (*changes.restarted, *changes.adjusted):
            self._workers.respec(wanted[id_])
        for id_ in changes.restarted:
            self._workers.step(id_, lambda w: supervision.renew(w, StopReason.CHANGE))
        # Also workers with an unchanged spec: the code that it names may be another version.
        lifted = self._clear_failures((*changes.restarted, *changes.adjusted, *changes.unchanged))
        for id_ in changes.added:
            self._add_and_start(wanted[id_])
        self._workers.start_ready()
        return lifted

    def _clear_failures(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        change = failures.start if self._orders.started else failures.clear_if_changed
        failed = [id_ for id_ in ids if self._is_failed(id_)]
        for id_ in failed:
            self._workers.step(id_, lambda w: change(w, self.world(w)))
        return tuple(id_ for id_ in failed if not self._is_failed(id_))

    def _is_failed(self, component_id: str) -> bool:
        worker = self._workers.get(component_id)
        return worker is not None and isinstance(worker.phase, Failed)

    def _being_removed(self, specs: Iterable[WorkerSpec]) -> Refused | None:
        leaving = next((spec.id for spec in specs if self._workers.is_leaving(spec.id)), None)
        return None if leaving is None else Refused(f"{leaving} is still being removed; try again")

    # ── which workers a command is for ───────────────────────────────────────────────────

    def _unknown(self, ids: Ids) -> Refused | None:
        unknown = next(
            (id_ for id_ in ids or () if id_ not in self._workers or self._workers.is_leaving(id_)), None
        )
        return None if unknown is None else Refused(f"no worker is called {unknown!r}", unknown)

    def _refused_by_shutdown(self) -> Refused | None:
        return Refused("the system is stopping") if self._orders.stopping else None

    def _chosen(self, ids: Ids) -> tuple[str, ...]:
        return tuple(worker.id for worker in self._workers) if ids is None else ids

    def _known(self, ids: tuple[str, ...]) -> list[Worker]:
        return [worker for id_ in ids if (worker := self._workers.get(id_)) is not None]

    def _staying(self, ids: Ids) -> tuple[str, ...]:
        return tuple(id_ for id_ in self._chosen(ids) if not self._workers.is_leaving(id_))


def _despite_breaker(change: Change) -> Change:
    """The same change, carried out even if a breaker is open."""
    return lambda worker, world: change(worker, structs.replace(world, held=None, by_hand=True))


def _refused(reason: str | None) -> Refused | None:
    return None if reason is None else Refused(reason)
