"""The commands of hosts and operators, and the replies to them.

Belongs to the Supervisor and runs in it. What stays in force is in the `StandingOrders`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from msgspec import structs

from .. import supervision
from ..messages import (
    AddWorker,
    ChangeWorkers,
    Done,
    EssentialEnded,
    FenceWorkers,
    HostCommand,
    PauseWorkers,
    RefundRestarts,
    Refused,
    RemoveWorker,
    ReportStatus,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    RollOut,
    RunNow,
    Shutdown,
    StartWorkers,
    StopWorkers,
)
from ..ports import Receiver
from ..runtime.resilient_actor import tell
from ..spec.deployment.rollout_policy import RolloutPolicy
from ..spec.policies.stop_policy import Urgency
from ..supervision import failures
from ..supervision.pauses import (
    start_refusal,
    start_reply,
)
from ..supervision.worker import StopReason, SupervisedWorker, Up, WorkerStep, World
from .breakers import Breakers
from .groups import Groups
from .orders.chosen_workers import ChosenWorkers, Ids
from .orders.declarations import Declarations
from .orders.pause_orders import PauseOrders
from .orders.standing_orders import StandingOrders
from .rollouts import Rollouts
from .schedules import Schedules
from .status_reports import StatusReports
from .upkeep import Upkeep
from .workers import Workers

Change = Callable[[SupervisedWorker, World], WorkerStep]
Reply = Done | Refused
DONE = Done()


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
        schedules: Schedules,
        reports: StatusReports,
        pauses: PauseOrders,
        declarations: Declarations,
        rollouts: Rollouts,
        persistence: Receiver,
    ) -> None:
        self._rollouts = rollouts
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._upkeep = upkeep
        self._groups = groups
        self._schedules = schedules
        self._reports = reports
        self._pauses = pauses
        self._declarations = declarations
        self._choice = ChosenWorkers(workers, orders)
        self._persistence = persistence

    def handle(self, command: HostCommand) -> None:
        """Carry out one command and answer it, then do what follows for groups, recycling and breakers."""
        self._carry_out(command)
        if not isinstance(command, ReportStatus):  # a question changes nothing
            self._groups.start_restored()
            self._schedules.look()
            self._rollouts.look()

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
                answer = start_refusal(self._choice.known((id_,)), self._orders.pauses, "restart") or Done()
                self._change((id_,), reply_to, _despite_breaker(supervision.restart), answer)
                self._recheck()
            case ResetWorker(component_id=id_, reply_to=reply_to):
                self._change((id_,), reply_to, supervision.reset)
                self._recheck()
            case PauseWorkers():
                self._pauses.pause(command)
                self._recheck()
            case ResumeWorkers(ids=ids, reply_to=reply_to):
                self._pauses.resume(ids, reply_to)
                self._recheck()
            case RunNow(component_id=id_, reply_to=reply_to):
                refusal = self._choice.unknown((id_,)) or self._choice.refused_by_shutdown()
                tell(reply_to, refusal or self._schedules.run_now(id_))
            case RollOut():
                tell(command.reply_to, self._roll_out(command))
            case AddWorker(spec=spec, reply_to=reply_to, versions=versions, known=known):
                self._declarations.add(spec, versions, reply_to, known)
                self._breakers.watch()
            case RemoveWorker(component_id=id_, reply_to=reply_to, moves=moves):
                self._declarations.remove(id_, reply_to, StopReason.MOVE if moves else StopReason.REMOVAL)
                self._upkeep.recycle_due()
                self._breakers.specs_changed()
            case FenceWorkers(ids=ids, reply_to=reply_to):
                there = self._choice.leased() if ids is None else tuple(w.id for w in self._choice.known(ids))
                self._workers.stop(there, Urgency.KILL, StopReason.FENCED, reply_to)
                self._recheck()
            case RefundRestarts(component_id=id_, restarts=restarts, reply_to=reply_to):
                self._change((id_,), reply_to, lambda worker, _world: supervision.refund(worker, restarts))
            case ChangeWorkers(specs=specs, reply_to=reply_to, versions=versions):
                self._declarations.replace(specs, versions, reply_to)
                self._upkeep.specs_changed()
                self._breakers.specs_changed()
                self._schedules.specs_changed()
            case ReportStatus(reply_to=reply_to):
                self._reports.send(reply_to)
            case Shutdown(reply_to=reply_to, urgency=urgency):
                self._shut_down(reply_to, urgency)
                self._recheck()

    def _recheck(self) -> None:
        """Workers may have started or stopped: recycle those that can be spared, check the canaries."""
        self._upkeep.recycle_due()
        self._breakers.check_canaries()

    def _roll_out(self, command: RollOut) -> Reply:
        name = command.name
        chosen = [worker for worker in self._workers if name in (worker.spec.group, worker.id)]
        if not chosen:
            return Refused(f"no workers are called {name!r}", name)
        refusal = self._choice.refused_by_shutdown() or self._choice.about_to_stop(
            tuple(w.id for w in chosen)
        )
        running = [worker for worker in chosen if isinstance(worker.phase, Up)]
        why = self._rollouts.refusal(chosen[0].spec.group or chosen[0].id)
        if refusal is not None or why is not None:
            return refusal or Refused(why or "")
        if any(worker.spec.is_task for worker in chosen) or not running:
            return Refused(f"{name} has no service that runs: a rollout replaces running processes")
        policy = running[0].spec.rollout or RolloutPolicy()
        if command.surge is not None:
            policy = dataclasses.replace(policy, surge=command.surge)
        table, ids = running[0].spec.group or running[0].id, [worker.id for worker in running]
        self._rollouts.begin(table, ids, policy, StopReason.RESTART, puts_back=command.roll_back)
        return DONE

    def _shut_down(self, reply_to: Receiver | None, urgency: Urgency) -> None:
        self._orders.stopping = self._workers.shutting_down = True
        self._rollouts.end_all()
        self._declarations.settle_numbers()
        self._stop(None, reply_to, urgency)

    def end_all(self, ended: EssentialEnded) -> None:
        """A worker has ended without which the others are of no use: stop them, and start none again."""
        if not self._orders.stopping:
            tell(self._persistence, ended)
            self._shut_down(None, Urgency.GRACEFUL)

    def stand_down(self) -> None:
        """Another supervisor owns the store: stop all workers, firmly, and start none again."""
        self._orders.stopping = self._workers.shutting_down = True
        self._rollouts.end_all()
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
        answer = start_reply(self._choice.known(ids), self._orders.pauses)
        self._change(ids, reply_to, _despite_breaker(failures.start), answer)

    def _failure(self, component_id: str) -> str | None:
        """Why a failed worker cannot be started."""
        worker = self._workers.get(component_id)
        if worker is None:
            return None
        down = self._orders.down(worker)
        return (
            failures.refusal(worker, self._breakers.world(worker))
            if down is None
            else f"{worker.id} waits: {down}"
        )

    def _change(self, ids: Ids, reply_to: Receiver | None, change: Change, answer: Reply = DONE) -> None:
        answer = self._choice.refusal(ids) or answer
        if isinstance(answer, Done):
            for id_ in sorted(self._choice.staying(ids), key=self._is_free):
                self._workers.step(id_, lambda w: change(w, self._breakers.world(w)))
        tell(reply_to, answer)

    def _is_free(self, component_id: str) -> bool:
        """Whether no delay of a former run holds it back: the others come first, and their groups wait."""
        worker = self._workers.get(component_id)
        due_ms = None if worker is None else worker.not_before_ms
        return worker is None or due_ms is None or due_ms <= self._breakers.world(worker).now_ms

    def _stop(self, ids: Ids, reply_to: Receiver | None, urgency: Urgency) -> None:
        refusal = self._choice.unknown(ids)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        reason = StopReason.SHUTDOWN if self._orders.stopping else StopReason.OPERATOR
        self._workers.stop(self._choice.chosen(ids), urgency, reason, reply_to)


def _despite_breaker(change: Change) -> Change:
    """The same change, carried out even if a breaker is open."""
    return lambda worker, world: change(worker, structs.replace(world, held=None, by_hand=True))
