"""What follows from a worker's health, and how a worker is restored from the former run."""

from __future__ import annotations

import pytest
from tests.unit.builders import TAG, crash, spec
from tests.unit.supervision.worker_harness import WorkerHarness
from tests.unit.supervision.workers import NOW, has, records, up, world

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import (
    DeathRecord,
    RememberedWorker,
    RestartReset,
    StreakCleared,
)
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed, HealthSustained
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.supervision.worker import (
    CancelTimers,
    Failed,
    Launch,
    ReportFailed,
    Schedule,
    WorkerStep,
)

# ── Health ───────────────────────────────────────────────────────────────────────────────


def test_rd_27_the_first_healthy_frame_resets_no_counter() -> None:
    worker = up(count=3, under=spec("patient"))
    step = supervision.health_changed(worker, 1, Status.HEALTHY)
    assert step.worker.restarts == worker.restarts
    assert step.effects == (Schedule(300_000, HealthSustained(TAG, 1)),)


def test_the_time_for_sustained_health_runs_from_the_change_and_not_from_the_news() -> None:
    step = supervision.health_changed(up(count=3, under=spec("patient")), 1, Status.HEALTHY, ago_ms=1_000)
    assert step.effects == (Schedule(299_000, HealthSustained(TAG, 1)),)


def test_without_a_streak_there_is_nothing_to_wait_for() -> None:
    assert supervision.health_changed(up(under=spec("patient")), 1, Status.HEALTHY).effects == ()
    assert supervision.health_changed(up(count=3), 1, Status.HEALTHY).effects == ()


def test_sustained_health_clears_the_streak_in_memory_and_in_the_store() -> None:
    step = supervision.sustained(up(count=3, under=spec("patient")), 1, world())
    assert (step.worker.restarts.restart_count, step.worker.restarts.streak_count) == (3, 0)
    assert records(step) == [StreakCleared(TAG, NOW + 5_000_000)]


def test_a_flap_puts_sustained_health_off() -> None:
    unwell = supervision.health_changed(up(count=3, under=spec("patient")), 1, Status.UNHEALTHY)
    assert unwell.effects == (CancelTimers(),)
    assert supervision.sustained(unwell.worker, 1, world()) == WorkerStep(unwell.worker)


def test_bo_08_sustained_health_belongs_to_one_incarnation() -> None:
    worker = up(generation=2, count=2, under=spec("plugin"))
    assert supervision.sustained(worker, 1, world()) == WorkerStep(worker)


def test_a_streak_cleared_at_a_death_that_is_only_reported_is_cleared_in_the_store_too() -> None:
    tired = spec("patient", restart={"max_lifetime": 3, "on_exhausted": "notify_only"})
    harness = WorkerHarness(tired)
    harness.worker = up(count=3, under=tired)
    harness.store.commit([_counted(n) for n in (-3, -2, -1)])
    harness.take(lambda w: supervision.died(w, crash(healthy_for_ms=300_000), world()))
    assert harness.counters.streak_count == harness.stored.streak_count == 0
    assert harness.counters.restart_count == harness.stored.restart_count == 3


def _counted(generation: int, delay_ms: int = 0) -> DeathRecord:
    return DeathRecord(
        component_id=TAG,
        generation=generation,
        died_at_wall_ms=NOW,
        cause=Cause.EXITED,
        exit_code=1,
        signal=None,
        uptime_ms=0,
        job=None,
        action=Action.RESTART,
        reason="",
        delay_ms=delay_ms,
    )


# ── What a former run left ───────────────────────────────────────────────────────────────


KNOWN = RememberedWorker(
    restart_count=3,
    streak_count=2,
    last_restart_wall_ms=NOW + 5_000_000 - 7_000,
    last_generation=9,
    recent_deaths_wall_ms=(NOW + 5_000_000 - 8_000, NOW + 5_000_000 - 7_000),
)


def known(**changes: object) -> RememberedWorker:
    """What the store remembers."""
    values = {name: getattr(KNOWN, name) for name in KNOWN.__struct_fields__}
    return RememberedWorker(**{**values, **changes})


def test_ps_08_counters_survive_the_supervisor() -> None:
    worker = supervision.remembered(spec(), KNOWN, world()).worker
    assert worker.restarts == RestartState(3, 2, NOW - 7_000, (NOW - 8_000, NOW - 7_000))
    assert has(supervision.start(worker, world()), Launch)
    assert supervision.start(worker, world()).worker.generation == 10


def test_stamps_from_the_future_count_as_now() -> None:
    later = known(last_restart_wall_ms=NOW + 10**9, recent_deaths_wall_ms=(NOW + 10**9,))
    worker = supervision.remembered(spec(), later, world()).worker
    assert (worker.restarts.last_restart_ms, worker.restarts.deaths_ms) == (NOW, (NOW,))


def test_ps_10_a_failure_survives_the_supervisor() -> None:
    step = supervision.remembered(spec(), known(failed_at_wall_ms=1, failure_reason="too often"), world())
    assert (step.worker.phase, step.worker.status) == (Failed("too often"), Status.FAILED)
    assert step.effects == (ReportFailed(),)


def test_a_delay_that_was_not_over_goes_on() -> None:
    due = known(restart_due_wall_ms=NOW + 5_000_000 + 4_000)
    worker = supervision.remembered(spec(), due, world()).worker
    step = supervision.start(worker, world())
    assert step.effects == (Schedule(4_000, BackoffElapsed(TAG, 9, 3)),)
    assert has(supervision.backoff_elapsed(step.worker, BackoffElapsed(TAG, 9, 3), world()), Launch)
    assert step.worker.restarts.restart_count == 3


@pytest.mark.parametrize("due", [None, 1, NOW + 5_000_000])
def test_a_delay_that_is_over_holds_nothing_back(due: int | None) -> None:
    worker = supervision.remembered(spec(), known(restart_due_wall_ms=due), world()).worker
    assert has(supervision.start(worker, world()), Launch)


def test_a_delay_is_no_longer_than_the_policy_allows_however_the_clock_was_set() -> None:
    worker = supervision.remembered(spec(), known(restart_due_wall_ms=10**15), world()).worker
    assert supervision.start(worker, world()).effects == (Schedule(60_000, BackoffElapsed(TAG, 9, 3)),)


def test_a_reset_outlasts_the_supervisor_and_leaves_no_delay() -> None:
    harness = WorkerHarness(spec())
    harness.store.commit([_counted(1, delay_ms=60_000), RestartReset(TAG, NOW)])
    worker = supervision.remembered(spec(), harness.stored, harness.world).worker
    assert has(supervision.start(worker, harness.world), Launch)
    assert worker.restarts.restart_count == 0


def test_a_manual_restart_does_not_wait_for_a_delay_of_a_former_run() -> None:
    due = known(restart_due_wall_ms=NOW + 5_000_000 + 4_000)
    worker = supervision.remembered(spec(), due, world()).worker
    assert has(supervision.restart(worker, world()), Launch)
