"""What follows from a death: counted, persisted and acted on once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.builders import TAG, crash, spec
from tests.unit.supervision.worker_harness import WorkerHarness
from tests.unit.supervision.workers import ELAPSED, NOW, failed, has, records, up, waiting, world

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Action, Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import (
    DeathRecord,
    RememberedWorker,
    RestartReset,
)
from rekindle.actors.messages import WorkerDied, WorkerFailed
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.restarts import DEFAULT_FAILURE, RestartState
from rekindle.actors.supervision.worker import (
    Announce,
    Failed,
    Halt,
    Idle,
    Launch,
    ReportFailed,
    Rest,
    Schedule,
    WorkerStep,
)


def test_sc_01_a_death_is_counted_persisted_and_scheduled_once() -> None:
    step = supervision.died(up(count=1), crash(), world())
    assert step.worker.restarts == RestartState(2, 2, NOW)
    assert [e for e in step.effects if isinstance(e, Schedule)] == [Schedule(2000, BackoffElapsed(TAG, 1, 2))]
    (record,) = records(step)
    assert isinstance(record, DeathRecord)
    assert (record.action, record.delay_ms, record.died_at_wall_ms) == (Action.RESTART, 2000, NOW + 5_000_000)


def test_a_death_is_announced_with_its_decision() -> None:
    step = supervision.died(up(), crash(signal=9), world())
    (event,) = [effect.event for effect in step.effects if isinstance(effect, Announce)]
    assert isinstance(event, WorkerDied)
    assert (event.action, event.delay_s, event.restart_count) == ("restart", 1.0, 1)


def test_sc_02_a_death_of_a_worker_that_waits_changes_nothing() -> None:
    first = supervision.died(up(), crash(), world())
    assert supervision.died(first.worker, crash(), world(NOW + 500)) == WorkerStep(first.worker)


def test_sc_03_a_death_reported_a_thousand_times_counts_once() -> None:
    harness = WorkerHarness(spec())
    harness.worker = up()
    for _ in range(1000):
        harness.take(lambda w: supervision.died(w, crash(), world()))
    assert harness.counters.restart_count == 1
    assert (len(harness.timers), len(harness.unsaved)) == (1, 1)


def test_a_death_of_an_older_generation_is_ignored() -> None:
    worker = up(generation=2)
    assert supervision.died(worker, crash(generation=1), world()) == WorkerStep(worker)


def test_sc_04_a_final_death_fails_the_worker_and_schedules_nothing() -> None:
    step = supervision.died(up(count=20), crash(), world())
    assert isinstance(step.worker.phase, Failed)
    assert step.worker.status is Status.FAILED
    assert has(step, ReportFailed)
    assert not has(step, Schedule, Launch)
    (record,) = records(step)
    assert isinstance(record, DeathRecord)
    assert (record.action, record.reason) == (Action.MARK_FAILED, step.worker.phase.reason)


def test_ev_18_a_final_death_is_announced_before_the_failure() -> None:
    step = supervision.died(up(count=20), crash(), world())
    events = [effect.event for effect in step.effects if isinstance(effect, Announce)]
    assert [type(event) for event in events] == [WorkerDied, WorkerFailed]


def test_sc_05_a_failure_without_a_reason_has_a_default_one() -> None:
    step = supervision.remembered(spec(), RememberedWorker(failed_at_wall_ms=1), world())
    assert step.worker.phase == Failed(DEFAULT_FAILURE) == Failed("Restart limit exceeded")


def test_rd_20_a_failed_spawn_is_a_death_and_the_limits_apply() -> None:
    harness = WorkerHarness(spec("plugin", restart={"max_consecutive": 3}))
    harness.take(lambda w: supervision.start(w, harness.world))
    for _ in range(4):
        harness.spawn_fails()
        harness.come_to_an_end(spawns=False)
    assert harness.counters.restart_count == 3
    assert harness.failure is not None


def test_sc_09_the_delay_after_a_failed_spawn_is_doubled() -> None:
    worker = supervision.backoff_elapsed(waiting(), ELAPSED, world()).worker
    step = supervision.died(worker, crash(2, cause=Cause.SPAWN_FAILED, code=None), world())
    assert [effect.delay_ms for effect in step.effects if isinstance(effect, Schedule)] == [2000]
    assert not has(step, Halt)


def test_rd_21_with_restarts_off_a_death_is_reported_and_nothing_else() -> None:
    step = supervision.died(up(under=spec(restart={"enabled": False})), crash(), world())
    assert (step.worker.status, step.worker.restarts) == (Status.DEAD, RestartState())
    assert isinstance(step.worker.phase, Idle)
    assert step.worker.phase.rest is Rest.LEFT
    assert has(step, Announce)
    assert not has(step, Schedule, Launch, ReportFailed)


def test_rd_24_a_worker_that_is_being_stopped_does_not_die() -> None:
    stopping = supervision.stop(up()).worker
    assert supervision.died(stopping, crash(), world()) == WorkerStep(stopping)


@pytest.mark.parametrize("news", ["died", "gone", "kept", "elapsed", "healthy", "sustained", "job"])
def test_rd_29_nothing_happens_to_a_failed_worker(news: str) -> None:
    worker = failed()
    steps = {
        "died": supervision.died(worker, crash(6), world()),
        "gone": supervision.process_gone(worker, 6, Exit(1), None, world()),
        "kept": supervision.kept(worker, 6, world()),
        "elapsed": supervision.backoff_elapsed(worker, BackoffElapsed(TAG, 6, 5), world()),
        "healthy": supervision.health_changed(worker, 6, Status.HEALTHY),
        "sustained": supervision.sustained(worker, 6, world()),
        "job": supervision.job_changed(worker, 6, 42),
    }
    assert steps[news] == WorkerStep(worker)


def test_sd_03_a_death_during_a_shutdown_is_persisted_and_not_counted() -> None:
    step = supervision.died(up(count=3), crash(), world(stopping=True))
    assert step.worker.phase == Idle(Rest.STOPPED, "exited with code 1; not restarted: stop requested")
    assert step.worker.restarts.restart_count == 3
    assert not has(step, Schedule, Launch)


def test_sd_12_a_worker_that_dies_while_it_idles_comes_back_with_the_resume() -> None:
    worker = supervision.died(up(under=spec("patient")), crash(), world(paused=True)).worker
    worker = supervision.process_gone(worker, 1, Exit(1), None, world(paused=True)).worker
    assert isinstance(worker.phase, Idle)
    assert worker.phase.rest is Rest.PAUSED
    assert has(supervision.resume(worker, world()), Launch)


def test_a_process_that_has_ended_is_not_stopped_again() -> None:
    assert not has(supervision.died(up(), crash(), world()), Halt)
    gone = supervision.process_gone(up(), 1, Exit(), None, world()).worker
    assert not has(supervision.died(gone, crash(code=None), world()), Halt)


def test_a_death_ends_the_job_of_the_worker() -> None:
    worker = supervision.job_changed(up(), 1, 42).worker
    assert worker.job == 42
    assert supervision.died(worker, crash(), world()).worker.job is None


def test_a_task_that_is_done_clears_its_counters_in_the_store_and_says_that_it_is_done() -> None:
    task = replace(up(count=2), spec=spec(kind="once"))
    step = supervision.died(task, crash(code=0), world())
    assert step.worker.is_done
    assert records(step)[-1] == RestartReset(TAG, NOW + 5_000_000)
    (event,) = [effect.event for effect in step.effects if isinstance(effect, Announce)]
    assert isinstance(event, WorkerDied)
    assert event.done


def test_a_stop_and_a_reset_leave_a_task_done() -> None:
    done = supervision.died(replace(up(), spec=spec(kind="once")), crash(code=0), world()).worker
    done = replace(done, lingering=None)
    assert supervision.stop(done).worker.is_done
    assert supervision.reset(done, world()).worker.is_done


def test_a_task_that_a_former_supervisor_gave_up_begins_anew() -> None:
    known = RememberedWorker(restart_count=20, failed_at_wall_ms=1, failure_reason="x", last_generation=21)
    step = supervision.remembered(spec(kind="once"), known, world())
    assert (step.worker.phase, step.worker.restarts) == (Idle(Rest.NEW), RestartState())
    assert step.worker.generation == 21
    assert records(step) == [RestartReset(TAG, NOW + 5_000_000)]
