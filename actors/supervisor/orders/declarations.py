"""Which workers are supervised: at the start, and after each change.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ... import supervision
from ...deaths.evidence import Versions
from ...facts.generations import EVERY_OTHER, GenerationsSettled
from ...facts.records import MetaSet, Remembered, RememberedWorker
from ...messages import Done, Refused, WorkerPlaced, WorkersChanged
from ...messages.internal.to_persistence import Persist
from ...ports import Receiver
from ...rules.restarts import RestartState
from ...runtime.resilient_actor import tell
from ...spec.deployment.assigned import META as EPOCH_META
from ...spec.deployment.assigned import Assigned, counted_after, stored
from ...spec.policies.stop_policy import Urgency
from ...spec.spec_changes import Changes, compare
from ...spec.start_order import order_problem
from ...spec.worker_spec import WorkerSpec
from ...supervision import failures
from ...supervision.after_death.lost_lives import lost_death
from ...supervision.handed_over_worker import HandedOverFleet
from ...supervision.pauses import postponed
from ...supervision.worker import Failed, StopReason, SupervisedWorker, Up
from ..breakers import Breakers
from ..groups import Groups
from ..handed_over_actors import HandedOverActors
from ..schedules import Schedules
from ..workers import Workers
from .chosen_workers import ChosenWorkers
from .pause_orders import PauseOrders
from .standing_orders import StandingOrders

if TYPE_CHECKING:
    from ..rollouts import Rollouts


class Declarations:
    """Takes workers in, removes them and changes their specs."""

    def __init__(
        self,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        groups: Groups,
        schedules: Schedules,
        pauses: PauseOrders,
        persistence: Receiver,
    ) -> None:
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._groups = groups
        self._schedules = schedules
        self._choice = ChosenWorkers(workers, orders)
        self._pauses = pauses
        self._persistence = persistence
        self._remembered = Remembered()
        self.rollouts: Rollouts | None = None
        """Where workers get their new specs that have a policy for it; set by the Supervisor."""
        self._epochs: dict[str, Assigned] = {}
        """The latest epoch of each worker on this node of a cluster."""

    def restore(
        self, specs: Iterable[WorkerSpec], remembered: Remembered, left: HandedOverActors | None = None
    ) -> None:
        """Take in the workers, as the former run left them, or as the former program of this process did."""
        self._remembered = remembered
        self._pauses.restore(remembered.meta)
        self._epochs = stored(remembered.meta)
        # A former program of this process lost no process: it hands over also the deaths it could not write.
        for life in remembered.lost if left is None else ():
            tell(self._persistence, Persist(lost_death(life, remembered.of(life.component_id))))
        self._schedules.restore(remembered.meta, remembered.seen_at_wall_ms)
        for spec in specs:
            known = None if left is None else left.fleet.workers.get(spec.id)
            if left is None or known is None:
                self._adopt(spec)
            else:
                self._workers.take_over(spec, known, left.processes.get(spec.id))
        self._schedules.close_others()
        self._groups.restore(remembered.meta)
        if left is None:
            self._pauses.end_elapsed()  # else in `go_on`: the starts under way are not known yet
        else:
            self._breakers.take_over(left.fleet.breakers)
        self._breakers.restore(remembered.meta)

    def go_on(self, fleet: HandedOverFleet) -> None:
        """Go on where the former program of this process stopped."""
        self._orders.started = fleet.started
        self._orders.versions = dict(fleet.versions)
        self._pauses.end_elapsed()
        self._schedules.recover()
        if fleet.started:  # what the new program's file declares in addition
            for worker in self._workers:
                if worker.id not in fleet.workers:
                    self._workers.step(worker.id, lambda w: failures.start(w, self._breakers.world(w)))

    def settle_numbers(self) -> None:
        """Give back the reserved numbers: no further process will be started."""
        known = {*self._remembered.generations, *self._remembered.workers}
        latest = {id_: self._remembered.of(id_).last_generation for id_ in known}
        latest[EVERY_OTHER] = self._remembered.generations.get(EVERY_OTHER, 0)
        latest |= self._workers.latest_generations()
        settled = tuple(GenerationsSettled(id_, number) for id_, number in latest.items())
        tell(self._persistence, Persist(settled))

    def _adopt(self, spec: WorkerSpec, arrives_with: RememberedWorker | None = None) -> None:
        known = self._remembered.of(spec.id)
        if arrives_with is not None:
            # Numbers of processes belong to this journal, whatever else comes from another one.
            latest = max(known.last_generation, self._workers.latest_generations().get(spec.id, 0))
            known = replace(arrives_with, last_generation=latest)
        spec = self._assigned(spec, known)
        self._workers.adopt(spec, known, self._orders.world(None), arrives=arrives_with is not None)
        self._schedules.adopt(spec.id, arrives_with)

    def _assigned(self, spec: WorkerSpec, known: RememberedWorker) -> WorkerSpec:
        """The spec with the number that the tokens of its epoch are counted from; an epoch keeps it."""
        if spec.assigned is None:
            return spec
        assigned = self._epochs.get(spec.id)
        if assigned is None or assigned.epoch != spec.assigned.epoch:
            after = counted_after(known.last_generation)
            assigned = dataclasses.replace(spec.assigned, after=after)
            tell(self._persistence, Persist((MetaSet(EPOCH_META + spec.id, assigned.text()),)))
            placed = WorkerPlaced(spec.id, assigned.node, assigned.epoch, known.restart_count)
            tell(self._persistence, placed)
        self._epochs[spec.id] = assigned
        return dataclasses.replace(spec, assigned=assigned)

    def _with_epoch(self, spec: WorkerSpec) -> WorkerSpec:
        """The spec of a worker that stays under its epoch: its tokens continue."""
        known = self._epochs.get(spec.id)
        if spec.assigned is None or known is None or known.epoch != spec.assigned.epoch:
            return spec
        return dataclasses.replace(spec, assigned=known)

    def add(
        self,
        spec: WorkerSpec,
        versions: Versions,
        reply_to: Receiver | None,
        known: RememberedWorker | None = None,
    ) -> None:
        """Supervise one more worker."""
        refusal = self._choice.refused_by_shutdown()
        if refusal is None and spec.id in self._workers:
            refusal = Refused(f"a worker is called {spec.id!r} already")
        if refusal is None:
            refusal = _refused(order_problem([*(worker.spec for worker in self._workers), spec], spec.id))
        if refusal is None:
            self._orders.versions.update(versions)
            self._add_and_start(spec, known)
            self._workers.declare()
        tell(reply_to, refusal or Done())

    def _add_and_start(self, spec: WorkerSpec, known: RememberedWorker | None = None) -> None:
        self._adopt(spec, known)
        if self._orders.started:
            self._workers.step(spec.id, lambda w: failures.start(w, self._breakers.world(w)))

    def add_spare(self, spec: WorkerSpec) -> None:
        """Supervise an additional worker for the time of a rollout.

        What was counted against an earlier one of the same id is not held against it.
        """
        self._adopt(spec)
        if (known := self._workers.get(spec.id)) is not None and _has_a_past(known):
            self._workers.step(spec.id, lambda w: supervision.reset(w, self._breakers.world(w)))
        if self._orders.started:
            self._workers.step(spec.id, lambda w: failures.start(w, self._breakers.world(w)))
        self._workers.declare()

    def dismiss(self, ids: tuple[str, ...]) -> None:
        """Stop these workers and forget them."""
        self._dismiss(ids, None)

    def remove(
        self, component_id: str, reply_to: Receiver | None, reason: StopReason = StopReason.REMOVAL
    ) -> None:
        """Stop a worker and forget it."""
        refusal = self._choice.unknown((component_id,))
        if refusal is not None:
            tell(reply_to, refusal)
            return
        self._dismiss((component_id,), reply_to, reason)

    def _dismiss(
        self, ids: tuple[str, ...], reply_to: Receiver | None, reason: StopReason = StopReason.REMOVAL
    ) -> None:
        for id_ in ids:
            self._workers.dismiss(id_)
        if any(id_ in self._orders.pauses.by_id for id_ in ids):
            self._pauses.end(ids)
        self._workers.stop(ids, Urgency.GRACEFUL, reason, reply_to)

    def replace(self, specs: tuple[WorkerSpec, ...], versions: Versions, reply_to: Receiver | None) -> None:
        """Supervise exactly these workers from now on."""
        specs = tuple(self._with_epoch(spec) for spec in specs)
        refusal = (
            self._choice.refused_by_shutdown()
            or self._choice.being_removed(specs)
            or _refused(order_problem(specs))
            or _refused(self._rollout_in_the_way(specs))
        )
        if refusal is not None:
            tell(reply_to, refusal)
            return
        before = {
            worker.id: worker.spec
            for worker in self._workers
            if not self._workers.is_leaving(worker.id) and worker.id not in self._spares
        }
        changes = compare(before, specs)
        self._orders.versions = dict(versions)
        wanted = {spec.id: spec for spec in specs}
        rolled_out = self._roll_out(changes, wanted)
        changes = replace(changes, rolled_out=rolled_out)
        lifted = self._apply(changes, wanted)
        self._workers.arrange(spec.id for spec in specs)
        self._workers.declare()
        changed = [(w, self._orders.pauses.holds(w.id)) for w in self._workers if w.id in changes.restarted]
        tell(reply_to, WorkersChanged(postponed(replace(changes, lifted=lifted), changed)))

    def _apply(self, changes: Changes, wanted: dict[str, WorkerSpec]) -> tuple[str, ...]:
        self._dismiss(changes.removed, None)
        now = tuple(id_ for id_ in changes.restarted if id_ not in changes.rolled_out)
        for id_ in (*now, *changes.adjusted):
            self._workers.respec(wanted[id_])
        for id_ in now:
            self._workers.step(id_, lambda w: supervision.renew(w, StopReason.CHANGE))
        # Also workers with an unchanged spec: the code that it names may be another version.
        lifted = self._clear_failures((*changes.restarted, *changes.adjusted, *changes.unchanged))
        for id_ in changes.added:
            self._add_and_start(wanted[id_])
        self._workers.start_ready()
        return lifted

    @property
    def _spares(self) -> frozenset[str]:
        return frozenset() if self.rollouts is None else self.rollouts.spares

    def _rollout_in_the_way(self, specs: Iterable[WorkerSpec]) -> str | None:
        """Why these workers cannot be declared now; None if they can."""
        taken = next((spec.id for spec in specs if spec.id in self._spares), None)
        if taken is not None:
            return f"{taken} exists for the time of a rollout; try again when it has ended"
        if self.rollouts is None:
            return None
        names = self.rollouts.releases
        return self.rollouts.refusal(names[0] if names else "")

    def _roll_out(self, changes: Changes, wanted: dict[str, WorkerSpec]) -> tuple[str, ...]:
        """Begin the rollouts of changed workers that run and have a policy for it; their ids."""
        tables: dict[str, list[str]] = {}
        for id_ in changes.restarted:
            worker = self._workers.get(id_)
            if wanted[id_].rollout is not None and worker is not None and isinstance(worker.phase, Up):
                tables.setdefault(wanted[id_].group or id_, []).append(id_)
        for name, ids in tables.items():
            policy = wanted[ids[0]].rollout
            assert policy is not None
            assert self.rollouts is not None
            new = {id_: wanted[id_] for id_ in ids}
            self.rollouts.begin(name, ids, policy, StopReason.CHANGE, wanted=new)
        return tuple(id_ for ids in tables.values() for id_ in ids)

    def _clear_failures(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        change = failures.start if self._orders.started else failures.clear_if_changed
        failed = [id_ for id_ in ids if self._is_failed(id_)]
        for id_ in failed:
            self._workers.step(id_, lambda w: change(w, self._breakers.world(w)))
        return tuple(id_ for id_ in failed if not self._is_failed(id_))

    def _is_failed(self, component_id: str) -> bool:
        worker = self._workers.get(component_id)
        return worker is not None and isinstance(worker.phase, Failed)


def _has_a_past(worker: SupervisedWorker) -> bool:
    return isinstance(worker.phase, Failed) or worker.restarts != RestartState()


def _refused(reason: str | None) -> Refused | None:
    return None if reason is None else Refused(reason)
