"""The rollouts under way: new processes that take over from old ones, as `rules.rollout` decides.

Belongs to the Supervisor and runs in it. A rollout is begun by an operator, by a changed configuration, or to
recycle one worker. There is one at a time for the workers of one table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from .. import supervision
from ..messages import RolloutAdvanced, RolloutEnded, RolloutEvent, RolloutStarted, RolloutStatus
from ..messages.internal.to_supervisor import RolloutDue
from ..ports import Receiver, Runtime, Timer
from ..rules import rollout as rules
from ..rules.rollout import Finish, Lower, Order, PutBack, Raise, Replace, Rollout, Sight, Stage
from ..runtime.resilient_actor import tell
from ..spec.deployment.rollout_policy import RolloutPolicy
from ..spec.worker_spec import WorkerSpec
from ..supervision.worker import BackingOff, Failed, Idle, Rest, Stopping, StopReason, SupervisedWorker, Up
from ..views.sentences.rollout_sentences import rollout_sentence
from .breakers import Breakers
from .orders.declarations import Declarations
from .workers import Workers

PATIENCE_S = 30.0
"""How much longer than its own time limits a worker may take until it is ready."""

_WAITS = frozenset({Rest.NEW, Rest.HELD, Rest.PAUSED})
"""Why a worker that is to start may not have started yet."""


_STEPS: Mapping[type[Order], str] = {Raise: "raise", Replace: "replace", PutBack: "put_back", Lower: "lower"}


@dataclass(slots=True)
class _UnderWay:
    """One rollout, and what it needs to carry out its orders."""

    rollout: Rollout
    reason: StopReason
    detail: str
    """Why the worker is recycled, in words."""
    wanted: Mapping[str, WorkerSpec]
    """The new specs, where they differ from those that the workers have."""
    former: Mapping[str, WorkerSpec]
    timer: Timer | None = None
    steps: tuple[str, ...] = ()
    """What happened so far, in words."""


class Rollouts:
    """Begins rollouts, and takes them from step to step."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        breakers: Breakers,
        declarations: Declarations,
        *,
        supervisor: Receiver,
        persistence: Receiver,
    ) -> None:
        self._runtime = runtime
        self._workers = workers
        self._breakers = breakers
        self._declarations = declarations
        self._supervisor = supervisor
        self._persistence = persistence
        self._under_way: dict[str, _UnderWay] = {}
        self._next: dict[str, _UnderWay] = {}
        """Those that wait for the end of another one of the same workers."""
        self._ended: dict[str, RolloutStatus] = {}
        self.are_held = False
        """The Supervisor is being replaced: none begins, as the next program would not know of it."""
        self.specs_changed: Callable[[], None] = lambda: None
        """Called after workers got other specs."""

    # ── beginning ────────────────────────────────────────────────────────────────────────

    def refusal(self, name: str) -> str | None:
        """Why no rollout can begin; None if one can. A recycling is not in the way of another one."""
        if self.are_held:
            return "the supervisor is being upgraded; try again in a moment"
        under_way = self._next.get(name) or self._under_way.get(name)
        if under_way is None or under_way.reason is StopReason.RECYCLE:
            return None
        return f"a rollout of {name} is under way; try again when it has ended"

    @property
    def under_way(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple({**self._under_way, **self._next})

    @property
    def releases(self) -> tuple[str, ...]:
        """The names of those that are not recyclings."""
        known = {**self._under_way, **self._next}
        return tuple(name for name, each in known.items() if each.reason is not StopReason.RECYCLE)

    def begin(
        self,
        name: str,
        ids: Iterable[str],
        policy: RolloutPolicy,
        reason: StopReason,
        *,
        wanted: Mapping[str, WorkerSpec] | None = None,
        puts_back: bool = True,
        detail: str = "",
    ) -> None:
        """Begin a rollout of these workers, or after the recycling that is under way."""
        members = [worker for id_ in ids if (worker := self._workers.get(id_)) is not None]
        wanted = wanted or {}
        first = wanted.get(members[0].id, members[0].spec)
        rollout = Rollout(
            name=name,
            members=tuple(worker.id for worker in members),
            spares=self._spare_ids(first.id, min(policy.surge, len(members))),
            patience_ms=round((first.stop.total_s + first.health.startup_timeout_s + PATIENCE_S) * 1000),
            settle_ms=round(policy.settle_s * 1000),
            puts_back=puts_back and bool(wanted),
        )
        former = {worker.id: worker.spec for worker in members}
        begun = _UnderWay(rollout, reason, detail, wanted, former)
        if name in self._under_way:
            self._next[name] = begun
        else:
            self._start(begun)

    def is_busy(self, name: str) -> bool:
        """Whether a rollout of these workers is under way, or none can begin."""
        return self.are_held or name in self._under_way

    def _start(self, begun: _UnderWay) -> None:
        rollout = begun.rollout
        self._under_way[rollout.name] = begun
        self._ended.pop(rollout.name, None)
        reason = begun.reason.value
        event = RolloutStarted(rollout.name, rollout.members, rollout.spares, reason, begun.detail)
        self._tell(begun, event)
        self._take(begun, rules.begin(rollout, self._now_ms()))

    def _spare_ids(self, component_id: str, count: int) -> tuple[str, ...]:
        """The next free numbers after those of the table, or names made of an id without a number."""
        stem, _, number = component_id.rpartition(":")
        stem = stem if stem and number.isdecimal() else component_id
        taken = {id_ for each in self._next.values() for id_ in each.rollout.spares}
        numbered = (f"{stem}:{number}" for number in itertools.count())
        free = (id_ for id_ in numbered if id_ not in self._workers and id_ not in taken)
        return tuple(itertools.islice(free, count))

    # ── continuing ─────────────────────────────────────────────────────────────────────────

    def look(self) -> None:
        """Something happened, or time has passed: take every rollout as far as it goes."""
        for under_way in tuple(self._under_way.values()):
            self._take(under_way, rules.advance(under_way.rollout, self._sights(under_way), self._now_ms()))

    def end_all(self) -> None:
        """The supervisor stops: nothing more is started."""
        for under_way in self._under_way.values():
            self._cancel_timer(under_way)
        self._under_way.clear()
        self._next.clear()

    @property
    def spares(self) -> frozenset[str]:
        """The additional workers of all rollouts."""
        return frozenset(id_ for each in self._under_way.values() for id_ in each.rollout.spares)

    @property
    def specs_to_come(self) -> tuple[WorkerSpec, ...]:
        """The specs that workers do not have yet, or may get back."""
        known = (*self._under_way.values(), *self._next.values())
        return tuple(spec for each in known for spec in (*each.wanted.values(), *each.former.values()))

    def report(self) -> tuple[RolloutStatus, ...]:
        """Those under way, and for each table the latest one that has ended."""
        return (*(_status(each) for each in self._under_way.values()), *self._ended.values())

    def _take(self, under_way: _UnderWay, turn: rules.Turn) -> None:
        while True:
            before, under_way.rollout = under_way.rollout, turn.rollout
            self._tell_change(under_way, before, turn.orders)
            for order in turn.orders:
                self._perform(under_way, order)
            if not turn.orders or turn.rollout.stage is Stage.OVER:
                break
            turn = rules.advance(under_way.rollout, self._sights(under_way), self._now_ms())
        self._look_again(under_way, turn.look_at_ms)

    def _perform(self, under_way: _UnderWay, order: Order) -> None:
        match order:
            case Raise(ids=ids):
                self._raise(under_way, ids)
            case Replace(ids=ids):
                self._give(under_way.wanted, ids)
                for id_ in ids:
                    self._renew(under_way, id_)
            case PutBack(ids=ids):
                self._give(under_way.former, ids)
                for id_ in ids:
                    self._restart(id_)
            case Lower(ids=ids):
                there = tuple(id_ for id_ in ids if id_ in self._workers)
                self._declarations.dismiss(there)
            case Finish():
                self._finish(under_way)

    def _raise(self, under_way: _UnderWay, ids: tuple[str, ...]) -> None:
        first = under_way.rollout.members[0]
        spec = under_way.wanted.get(first, under_way.former[first])
        for id_ in ids:
            self._declarations.add_spare(replace(spec, id=id_, membership=(), essential=False, recycle=None))

    def _give(self, specs: Mapping[str, WorkerSpec], ids: tuple[str, ...]) -> None:
        changed = [specs[id_] for id_ in ids if id_ in specs and id_ in self._workers]
        for spec in changed:
            self._workers.respec(spec)
        if changed:
            self._workers.declare()
            self.specs_changed()

    def _renew(self, under_way: _UnderWay, component_id: str) -> None:
        if under_way.reason is StopReason.RECYCLE:
            change = partial(supervision.recycle, reason=under_way.detail)
        else:
            change = partial(supervision.renew, reason=under_way.reason)
        self._workers.step(component_id, change)

    def _restart(self, component_id: str) -> None:
        """Also one that was given up with the new configuration, but not one that an operator stopped."""
        worker = self._workers.get(component_id)
        if worker is not None and not _is_kept_down(worker):
            self._workers.step(component_id, lambda w: supervision.restart(w, self._breakers.world(w)))

    def _finish(self, under_way: _UnderWay) -> None:
        rollout = under_way.rollout
        del self._under_way[rollout.name]
        self._cancel_timer(under_way)
        self._tell(under_way, RolloutEnded(rollout.name, rollout.replaced, rollout.problem))
        self._ended[rollout.name] = _status(under_way)
        self._workers.declare()  # the specs of before are no longer needed, nor are their sockets
        if (following := self._next.pop(rollout.name, None)) is not None:
            self._start(following)

    def _look_again(self, under_way: _UnderWay, at_ms: int | None) -> None:
        self._cancel_timer(under_way)
        if at_ms is not None and under_way.rollout.name in self._under_way:
            delay_s = max(0, at_ms - self._now_ms()) / 1000
            under_way.timer = self._runtime.timers.after(delay_s, self._supervisor, RolloutDue())

    def _cancel_timer(self, under_way: _UnderWay) -> None:
        if under_way.timer is not None:
            under_way.timer.cancel()
            under_way.timer = None

    def _tell_change(self, under_way: _UnderWay, before: Rollout, orders: tuple[Order, ...]) -> None:
        after = under_way.rollout
        replaced = after.replaced[len(before.replaced) :] if after.stage is not Stage.PUT_BACK else ()
        if replaced:
            self._tell(under_way, RolloutAdvanced(after.name, "replaced", replaced))
        for order in orders:
            if not isinstance(order, Finish):
                detail = after.problem if after.problem != before.problem else ""
                self._tell(under_way, RolloutAdvanced(after.name, _STEPS[type(order)], order.ids, detail))

    def _tell(self, under_way: _UnderWay, event: RolloutEvent) -> None:
        under_way.steps = (*under_way.steps, rollout_sentence(event).text)
        tell(self._persistence, event)

    def _sights(self, under_way: _UnderWay) -> dict[str, Sight]:
        ids = (*under_way.rollout.members, *under_way.rollout.spares)
        found = {id_: self._workers.get(id_) for id_ in ids}
        return {id_: _sight(worker) for id_, worker in found.items() if worker is not None}

    def _now_ms(self) -> int:
        return round(self._runtime.clock.monotonic() * 1000)


def _is_kept_down(worker: SupervisedWorker) -> bool:
    match worker.phase:
        case Idle(rest=rest) | Stopping(rest=rest, relaunch=False):
            return rest in (Rest.STOPPED, Rest.PAUSED)
        case _:
            return False


def _sight(worker: SupervisedWorker) -> Sight:
    match worker.phase:
        case Up():
            return Sight(worker.generation, is_up=True, is_ready=worker.is_healthy)
        case BackingOff():
            return Sight(worker.generation, is_dead=True)
        case Failed():
            return Sight(worker.generation, is_down=True)
        case Idle(rest=rest):
            return Sight(worker.generation, is_down=rest not in _WAITS)
        case _:
            return Sight(worker.generation)


def _status(under_way: _UnderWay) -> RolloutStatus:
    rollout = under_way.rollout
    return RolloutStatus(
        rollout.name,
        rollout.stage.value,
        rollout.members,
        rollout.replaced,
        rollout.spares,
        under_way.reason.value,
        rollout.problem,
        under_way.steps,
    )
