"""One worker under everything that can happen to it, in any order: rules 3 to 6 of the design."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.builders import spec
from tests.unit.supervision.supervised import Scene

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.stop_ladder import Absent, Alive
from rekindle.actors.spec.stop_urgency import Urgency
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision.worker import Failed, Idle, Up

EXITS = st.sampled_from([Exit(0), Exit(1), Exit(signal=9), Exit()])
SPECS = st.sampled_from(
    [
        spec("steady", restart={"max_in_window": 3, "max_lifetime": 5}),
        spec("patient", restart={"max_lifetime": 3}),
        spec("patient", restart={"max_lifetime": 2, "on_exhausted": "notify_only"}),
        spec("notify", restart={"enabled": True}),
        spec("plugin", restart={"max_consecutive": 2}),
        spec("plugin", restart={"on_exhausted": "notify_only", "max_consecutive": 2}),
        spec("steady", restart={"enabled": False}),
    ]
)


class Supervised(RuleBasedStateMachine):
    """Commands, deaths, late messages and lost timers, for one worker."""

    scene: Scene

    @initialize(spec=SPECS)
    def declare(self, spec: WorkerSpec) -> None:
        self.scene = Scene(spec)
        self.restarts = self.generation = 0
        self.failed = False

    # ── operators; the Supervisor refuses what would start something once it is stopping ──

    @precondition(lambda self: not self.scene.stopping)
    @rule()
    def start(self) -> None:
        self.scene.take(lambda w: supervision.start(w, self.scene.world))

    @rule(urgency=st.sampled_from(Urgency))
    def stop(self, urgency: Urgency) -> None:
        self.scene.take(lambda w: supervision.stop(w, urgency))

    @rule()
    def pause(self) -> None:
        self.scene.paused = True
        self.scene.take(supervision.pause)

    @precondition(lambda self: not self.scene.stopping)
    @rule()
    def resume(self) -> None:
        self.scene.paused = False
        self.scene.take(lambda w: supervision.resume(w, self.scene.world))

    @precondition(lambda self: not self.scene.stopping)
    @rule()
    def reset(self) -> None:
        self.restarts, self.failed = 0, False
        self.scene.take(lambda w: supervision.reset(w, self.scene.world))

    @precondition(lambda self: not self.scene.stopping)
    @rule()
    def restart(self) -> None:
        self.restarts, self.failed = 0, False
        self.scene.take(lambda w: supervision.restart(w, self.scene.world))

    @rule()
    def shut_down(self) -> None:
        self.scene.stopping = True
        self.scene.take(supervision.stop)

    # ── the world ────────────────────────────────────────────────────────────────────────

    @rule(seconds=st.integers(0, 400))
    def time_passes(self, seconds: int) -> None:
        self.scene.now_ms += seconds * 1000

    @rule()
    def the_process_is_there(self) -> None:
        self.scene.spawned()

    @rule()
    def the_process_cannot_be_started(self) -> None:
        self.scene.spawn_fails()

    @rule(exit_=EXITS, healthy_for_s=st.sampled_from([0, 1, 1000]))
    def the_process_ends(self, exit_: Exit, healthy_for_s: int) -> None:
        self.scene.ends(exit_, healthy_for_ms=healthy_for_s * 1000)

    @rule()
    def the_process_falls_silent(self) -> None:
        self.scene.falls_silent()

    @rule(status=st.sampled_from([Status.HEALTHY, Status.UNHEALTHY, Status.RECOVERING]))
    def its_health_changes(self, status: Status) -> None:
        self.scene.reports(status)

    @rule()
    def a_step_of_the_ladder_is_over(self) -> None:
        self.scene.rung_elapses()

    # ── messages arrive, each sender's in their order ────────────────────────────────────

    @rule()
    def the_proxy_reports(self) -> None:
        self.scene.deliver(self.scene.from_proxy)

    @rule()
    def the_monitor_reports(self) -> None:
        self.scene.deliver(self.scene.from_monitor)

    @rule()
    def the_persistence_actor_reports(self) -> None:
        self.scene.deliver(self.scene.from_persistence)

    @rule()
    def the_store_commits(self) -> None:
        self.scene.commit()

    @rule()
    def the_store_is_overdue(self) -> None:
        self.scene.save_overdue()

    @rule(data=st.data())
    def a_timer_fires(self, data: st.DataObject) -> None:
        timers = [*self.scene.timers.values(), *self.scene.cancelled]
        if timers:
            self.scene.fire(data.draw(st.sampled_from(timers)))

    @rule()
    def everything_arrives(self) -> None:
        self.scene.settle()

    @rule(exit_=EXITS, healthy_for_s=st.sampled_from([0, 1000]))
    def a_life_goes_by(self, exit_: Exit, healthy_for_s: int) -> None:
        self.scene.settle()
        self.scene.ends(exit_, healthy_for_ms=healthy_for_s * 1000)
        self.scene.settle()
        if BackoffElapsed in self.scene.timers:
            self.scene.fire(self.scene.timers[BackoffElapsed])

    @rule()
    def the_supervisor_is_replaced(self) -> None:
        self.scene.reconcile()

    # ── what always holds ────────────────────────────────────────────────────────────────

    @invariant()
    def every_launch_has_a_generation_of_its_own(self) -> None:
        assert self.scene.launches == sorted(set(self.scene.launches))
        assert self.scene.worker.generation == max(self.scene.launches, default=0)

    @invariant()
    def only_a_wait_has_a_pending_restart(self) -> None:
        timer = self.scene.timers.get(BackoffElapsed)
        if isinstance(timer, BackoffElapsed):
            waiting = self.scene.backing_off
            assert (timer.generation, timer.attempt) == (waiting.record.generation, waiting.attempt)

    @invariant()
    def failed_lasts_until_a_reset(self) -> None:
        assert isinstance(self.scene.worker.phase, Failed) or not self.failed
        self.failed = isinstance(self.scene.worker.phase, Failed)

    @invariant()
    def the_lifetime_count_only_grows_and_by_one(self) -> None:
        count = self.scene.counters.restart_count
        assert self.restarts <= count
        assert self.scene.counters.streak_count <= count
        self.restarts = count

    @invariant()
    def the_store_counts_what_memory_counts(self) -> None:
        memory, stored = self.scene.counters, self.scene.stored
        assert (stored.restart_count, stored.streak_count) == (memory.restart_count, memory.streak_count)
        assert stored.last_restart_wall_ms == memory.last_restart_ms
        assert stored.failure_reason == self.scene.failure

    @invariant()
    def a_process_that_may_live_is_known(self) -> None:
        process = self.scene.process
        assert isinstance(process, Absent) or self.scene.worker.lingering == process.generation

    def teardown(self) -> None:
        if not hasattr(self, "scene"):
            return
        scene = self.scene
        scene.come_to_an_end()
        assert isinstance(scene.worker.phase, Up | Idle | Failed), "stuck"
        if isinstance(scene.worker.phase, Up):
            assert scene.process == Alive(scene.worker.generation, 77)
        else:
            assert scene.process == Absent()
            assert scene.worker.lingering is None


TestSupervised = pytest.mark.timeout(60)(Supervised.TestCase)
Supervised.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
