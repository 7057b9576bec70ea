"""The wait before a restart: for its delay, for the store, and for the end of the old process."""

from __future__ import annotations

import pytest
from tests.unit.builders import TAG, crash, silence, spec
from tests.unit.supervision.workers import ELAPSED, NOW, has, up, waiting, world

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.supervision import SAVE_TIMEOUT_MS
from rekindle.actors.supervision.worker import (
    AwaitSave,
    BackingOff,
    CancelTimers,
    Idle,
    Launch,
    Rest,
    Schedule,
    Up,
    WorkerStep,
    World,
)


def test_the_wait_over_the_worker_starts_with_the_next_generation() -> None:
    step = supervision.backoff_elapsed(waiting(), ELAPSED, world(NOW + 1000))
    assert step.worker.phase == Up(2, NOW + 1000)
    assert (step.worker.generation, step.worker.lingering) == (2, 2)
    assert step.effects == (CancelTimers(), Launch(2))


def test_a_restart_waits_for_its_delay() -> None:
    worker = waiting()
    assert isinstance(worker.phase, BackingOff)
    assert (worker.phase.kept, worker.phase.elapsed, worker.lingering) == (True, False, None)


def test_a_restart_waits_for_the_store_but_not_without_end() -> None:
    worker = supervision.died(up(), crash(), world()).worker
    worker = supervision.process_gone(worker, 1, Exit(1), None, world()).worker
    step = supervision.backoff_elapsed(worker, ELAPSED, world(NOW + 1000))
    assert step.effects == (AwaitSave(1, SAVE_TIMEOUT_MS - 1000),)
    assert has(supervision.save_overdue(step.worker, 1, world(NOW + 2000)), Launch)


def test_a_restart_waits_for_the_end_of_the_old_process() -> None:
    worker = supervision.kept(supervision.died(up(), crash(), world()).worker, 1, world()).worker
    step = supervision.backoff_elapsed(worker, ELAPSED, world(NOW + 1000))
    assert step.effects == ()
    assert has(supervision.process_gone(step.worker, 1, Exit(1), None, world()), Launch)


def test_a_restart_without_delay_happens_once_persisted_and_reaped() -> None:
    step = supervision.died(up(under=spec("plugin")), crash(), world())
    assert not has(step, Schedule, Launch)
    kept = supervision.kept(step.worker, 1, world())
    assert has(supervision.process_gone(kept.worker, 1, Exit(1), None, world()), Launch)


@pytest.mark.parametrize(
    ("moment", "rest"),
    [
        pytest.param(world(paused=True), Rest.PAUSED, id="SC-06 disabled"),
        pytest.param(world(stopping=True), Rest.STOPPED, id="SC-07 stopping"),
    ],
)
def test_a_timer_that_fires_when_no_restart_is_wanted_starts_nothing(moment: World, rest: Rest) -> None:
    step = supervision.backoff_elapsed(waiting(), ELAPSED, moment)
    assert step.worker.phase == Idle(rest)
    assert step.worker.restarts.restart_count == 1
    assert step.effects == (CancelTimers(),)


def test_sc_07_a_timer_that_fires_after_a_stop_is_ignored() -> None:
    stopped = supervision.stop(waiting()).worker
    assert supervision.backoff_elapsed(stopped, ELAPSED, world()) == WorkerStep(stopped)


@pytest.mark.parametrize(
    "timer", [BackoffElapsed(TAG, 0, 1), BackoffElapsed(TAG, 1, 2), BackoffElapsed(TAG, 2, 1)]
)
def test_sc_08_a_timer_of_another_generation_or_attempt_is_ignored(timer: BackoffElapsed) -> None:
    assert supervision.backoff_elapsed(waiting(), timer, world()) == WorkerStep(waiting())


def test_the_news_that_another_death_was_persisted_is_ignored() -> None:
    worker = supervision.died(up(generation=2), crash(2), world()).worker
    assert supervision.kept(worker, 1, world()) == WorkerStep(worker)


def test_sc_16_a_manual_restart_during_the_wait_starts_now() -> None:
    step = supervision.restart(waiting(count=3), world(NOW + 1))
    assert has(step, CancelTimers)
    assert [effect for effect in step.effects if isinstance(effect, Launch)] == [Launch(2)]
    assert step.worker.restarts == RestartState()
    assert supervision.backoff_elapsed(step.worker, ELAPSED, world()) == WorkerStep(step.worker)


def test_sc_16_a_manual_start_during_the_wait_starts_now_and_keeps_the_count() -> None:
    step = supervision.start(waiting(count=3), world(NOW + 1))
    assert step.effects == (CancelTimers(), Launch(2))
    assert step.worker.restarts.restart_count == 4


def test_a_manual_start_waits_for_the_old_process_all_the_same() -> None:
    worker = supervision.died(up(), silence(), world()).worker
    step = supervision.start(worker, world())
    assert step.effects == (CancelTimers(),)
    assert has(supervision.process_gone(step.worker, 1, Exit(signal=15), 15, world()), Launch)
