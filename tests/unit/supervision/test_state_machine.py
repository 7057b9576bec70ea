"""One worker under everything that can happen to it, in any order: rules 3 to 6 of the design."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.builders import spec
from tests.unit.supervision.worker_harness import WorkerHarness

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.stop_ladder import Absent, Alive
from rekindle.actors.spec.policies.stop_policy import Urgency
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

    harness: WorkerHarness

    @initialize(spec=SPECS)
    def declare(self, spec: WorkerSpec) -> None:
        self.harness = WorkerHarness(spec)
        self.restarts = self.generation = 0
        self.failed = False

    # ── operators; the Supervisor refuses what would start something once it is stopping ──

    @precondition(lambda self: not self.harness.stopping)
    @rule()
    def start(self) -> None:
        self.harness.take(lambda w: supervision.start(w, self.harness.world))

    @rule(urgency=st.sampled_from(Urgency))
    def stop(self, urgency: Urgency) -> None:
        self.harness.take(lambda w: supervision.stop(w, urgency))

    @rule()
    def pause(self) -> None:
        self.harness.paused = True
        self.harness.take(supervision.pause)

    @precondition(lambda self: not self.harness.stopping)
    @rule()
    def resume(self) -> None:
        self.harness.paused = False
        self.harness.take(lambda w: supervision.resume(w, self.harness.world))

    @precondition(lambda self: not self.harness.stopping)
    @rule()
    def reset(self) -> None:
        self.restarts, self.failed = 0, False
        self.harness.take(lambda w: supervision.reset(w, self.harness.world))

    @precondition(lambda self: not self.harness.stopping)
    @rule()
    def restart(self) -> None:
        self.restarts, self.failed = 0, False
        self.harness.take(lambda w: supervision.restart(w, self.harness.world))

    @rule()
    def shut_down(self) -> None:
        self.harness.stopping = True
        self.harness.take(supervision.stop)

    # ── the world ────────────────────────────────────────────────────────────────────────

    @rule(seconds=st.integers(0, 400))
    def time_passes(self, seconds: int) -> None:
        self.harness.now_ms += seconds * 1000

    @rule()
    def the_process_is_there(self) -> None:
        self.harness.spawned()

    @rule()
    def the_process_cannot_be_started(self) -> None:
        self.harness.spawn_fails()

    @rule(exit_=EXITS, healthy_for_s=st.sampled_from([0, 1, 1000]))
    def the_process_ends(self, exit_: Exit, healthy_for_s: int) -> None:
        self.harness.ends(exit_, healthy_for_ms=healthy_for_s * 1000)

    @rule()
    def the_process_falls_silent(self) -> None:
        self.harness.falls_silent()

    @rule(status=st.sampled_from([Status.HEALTHY, Status.UNHEALTHY, Status.RECOVERING]))
    def its_health_changes(self, status: Status) -> None:
        self.harness.reports(status)

    @rule()
    def a_step_of_the_ladder_is_over(self) -> None:
        self.harness.rung_elapses()

    # ── messages arrive, each sender's in their order ────────────────────────────────────

    @rule()
    def the_proxy_reports(self) -> None:
        self.harness.deliver(self.harness.from_proxy)

    @rule()
    def the_monitor_reports(self) -> None:
        self.harness.deliver(self.harness.from_monitor)

    @rule()
    def the_persistence_actor_reports(self) -> None:
        self.harness.deliver(self.harness.from_persistence)

    @rule()
    def the_store_commits(self) -> None:
        self.harness.commit()

    @rule()
    def the_store_is_overdue(self) -> None:
        self.harness.save_overdue()

    @rule(data=st.data())
    def a_timer_fires(self, data: st.DataObject) -> None:
        timers = [*self.harness.timers.values(), *self.harness.cancelled]
        if timers:
            self.harness.fire(data.draw(st.sampled_from(timers)))

    @rule()
    def everything_arrives(self) -> None:
        self.harness.settle()

    @rule(exit_=EXITS, healthy_for_s=st.sampled_from([0, 1000]))
    def a_life_goes_by(self, exit_: Exit, healthy_for_s: int) -> None:
        self.harness.settle()
        self.harness.ends(exit_, healthy_for_ms=healthy_for_s * 1000)
        self.harness.settle()
        if BackoffElapsed in self.harness.timers:
            self.harness.fire(self.harness.timers[BackoffElapsed])

    @rule()
    def the_supervisor_is_replaced(self) -> None:
        self.harness.reconcile()

    # ── what always holds ────────────────────────────────────────────────────────────────

    @invariant()
    def every_launch_has_a_generation_of_its_own(self) -> None:
        assert self.harness.launches == sorted(set(self.harness.launches))
        assert self.harness.worker.generation == max(self.harness.launches, default=0)

    @invariant()
    def only_a_wait_has_a_pending_restart(self) -> None:
        timer = self.harness.timers.get(BackoffElapsed)
        if isinstance(timer, BackoffElapsed):
            waiting = self.harness.backing_off
            assert (timer.generation, timer.attempt) == (waiting.record.generation, waiting.attempt)

    @invariant()
    def failed_lasts_until_a_reset(self) -> None:
        assert isinstance(self.harness.worker.phase, Failed) or not self.failed
        self.failed = isinstance(self.harness.worker.phase, Failed)

    @invariant()
    def the_lifetime_count_only_grows_and_by_one(self) -> None:
        count = self.harness.counters.restart_count
        assert self.restarts <= count
        assert self.harness.counters.streak_count <= count
        self.restarts = count

    @invariant()
    def the_store_counts_what_memory_counts(self) -> None:
        memory, stored = self.harness.counters, self.harness.stored
        assert (stored.restart_count, stored.streak_count) == (memory.restart_count, memory.streak_count)
        assert stored.last_restart_wall_ms == memory.last_restart_ms
        assert stored.failure_reason == self.harness.failure

    @invariant()
    def a_process_that_may_live_is_known(self) -> None:
        process = self.harness.process
        assert isinstance(process, Absent) or self.harness.worker.lingering == process.generation

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        harness = self.harness
        harness.come_to_an_end()
        assert isinstance(harness.worker.phase, Up | Idle | Failed), "stuck"
        if isinstance(harness.worker.phase, Up):
            assert harness.process == Alive(harness.worker.generation, 77)
        else:
            assert harness.process == Absent()
            assert harness.worker.lingering is None


TestSupervised = pytest.mark.timeout(60)(Supervised.TestCase)
Supervised.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
