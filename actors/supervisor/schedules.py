"""The clock of a Supervisor: when scheduled workers run.

Belongs to the Supervisor and runs in it. `supervision.on_schedule` decides; this module has the one timer
for the next time at which something is due. Timers run on the monotonic clock and schedules on the wall
clock, which may be set or continue while the machine sleeps: so the timer fires at least once a minute while
a worker is scheduled, and every look is at the wall clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from .. import supervision
from ..facts.records import RememberedWorker
from ..messages import Done, Refused
from ..messages.internal.to_supervisor import RunOvertime, RunsDue
from ..ports import Receiver, Runtime, Timer
from ..rules.schedules.timetable import next_look_ms
from ..runtime.resilient_actor import tell
from ..supervision import on_schedule
from ..supervision.worker import SupervisedWorker, WorkerStep, World
from .breakers import Breakers
from .links import Links
from .orders.standing_orders import StandingOrders
from .workers import Workers

LOOK_S = 60.0
"""How long a change of the wall clock may go unnoticed."""


class Schedules:
    """The timetables of all scheduled workers."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        links: Links,
    ) -> None:
        self._runtime = runtime
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._to = links
        self._supervisor: Receiver = links.supervisor
        self._stored: Mapping[str, str] = {}
        self._seen_ms = 0
        self._timer: Timer | None = None

    def restore(self, meta: Mapping[str, str], seen_ms: int) -> None:
        """Take over the timetables of the former run, whose last sign of life was then."""
        self._stored, self._seen_ms = meta, seen_ms

    def close_others(self) -> None:
        """End the runs of workers that the former run had and this one has not."""
        for key, text in self._stored.items():
            id_ = key.removeprefix(on_schedule.META)
            if id_ != key and id_ not in self._workers:
                self._to.keep_and_announce(on_schedule.closed(text, self._orders.world(None)))
        self._arm()

    def adopt(self, component_id: str, arrives_with: RememberedWorker | None = None) -> None:
        """A worker is supervised from now on; it may bring its timetable from another node."""
        if arrives_with is None:
            stored, seen_ms, since_ms = self._stored.get(on_schedule.META + component_id), self._seen_ms, None
        else:
            stored, since_ms = arrives_with.timetable, arrives_with.scheduled_since_wall_ms
            seen_ms = since_ms or 0
        self._step(component_id, lambda w, world: on_schedule.scheduled(w, stored, seen_ms, world, since_ms))

    def specs_changed(self) -> None:
        """Specs may have changed: follow the new schedules."""
        for worker in self._workers:
            self._step(worker.id, on_schedule.replanned)
            if on_schedule.rests(worker) and worker.spec.schedule is None and self._orders.started:
                self._step(worker.id, supervision.start)

    def look(self) -> None:
        """Record what is due by now, start what waits no longer, and wait for the next time."""
        if self._orders.stopping:
            return
        for worker in self._workers:
            if worker.spec.schedule is not None and not self._workers.is_leaving(worker.id):
                self._step(worker.id, on_schedule.look)
        self._arm()

    def overtime(self, late: RunOvertime) -> None:
        """A run has taken as long as it may."""
        self._workers.step(late.component_id, lambda w: on_schedule.overtime(w, late.run))

    def run_now(self, component_id: str) -> Done | Refused:
        """Begin a run beside those of the schedule."""
        worker = self._workers.get(component_id)
        refusal = None if worker is None else on_schedule.run_refusal(worker, self._world(worker))
        if refusal is not None:
            return Refused(refusal)
        self._step(component_id, on_schedule.run_now)
        self._arm()
        return Done()

    def recover(self) -> None:
        """Set the timers again that an exception may have cost."""
        for worker in self._workers:
            table, policy = worker.timetable, worker.spec.schedule
            if table is not None and table.is_running and policy is not None and policy.timeout_s is not None:
                assert table.current is not None
                passed = self._runtime.clock.wall_ms() - (table.current.started_at_wall_ms or 0)
                left = max(0, round(policy.timeout_s * 1000) - max(0, passed))
                self._workers.timers.schedule(worker.id, left, RunOvertime(worker.id, table.current.number))
        if any(worker.timetable is not None for worker in self._workers):
            tell(self._supervisor, RunsDue())

    def _step(self, component_id: str, change: Callable[[SupervisedWorker, World], WorkerStep]) -> None:
        self._workers.step(component_id, lambda w: change(w, self._world(w)))

    def _world(self, worker: SupervisedWorker) -> World:
        world = self._orders.world(worker, self._breakers.holds(worker))
        policy = worker.spec.schedule
        return replace(world, chance=self._runtime.chance()) if policy and policy.jitter_s else world

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._runtime.clock.wall_ms()
        looks = [
            next_look_ms(worker.timetable, worker.spec.schedule, now)
            for worker in self._workers
            if worker.timetable is not None and worker.spec.schedule is not None
        ]
        if looks and not self._orders.stopping:
            delay = min(max(0.0, (min(looks) - now) / 1000), LOOK_S)
            self._timer = self._runtime.timers.after(delay, self._supervisor, RunsDue())
