"""What follows from the commands of operators: stop, start, pause, reset and restart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.builders import TAG, silence, spec
from tests.unit.supervision.worker_harness import WorkerHarness
from tests.unit.supervision.workers import ELAPSED, NOW, failed, has, idle, records, up, waiting, world

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.generations import GenerationEnded
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import (
    EndKept,
    RestartReset,
)
from rekindle.actors.messages import WorkerReset, WorkerStopped, WorkerStopping
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.supervision.worker import (
    Announce,
    CancelTimers,
    Halt,
    Idle,
    KeepRecord,
    Launch,
    ReportStop,
    Rest,
    SetIdle,
    StopMonitoring,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    WorkerStep,
)

# ── Stopping ─────────────────────────────────────────────────────────────────────────────


def test_a_stop_ends_the_process_and_expects_nothing_more_of_it() -> None:
    step = supervision.stop(up(), Urgency.FIRM)
    assert step.worker.phase == Stopping(
        1, Rest.STOPPED, urgency=Urgency.FIRM, reason=StopReason.OPERATOR, since_ms=NOW - 3_000, pid=77
    )
    told = Announce(WorkerStopping(TAG, 1, "operator_stop"))
    assert step.effects == (CancelTimers(), told, StopMonitoring(), Halt(1, Urgency.FIRM))


def test_sd_06_a_stopped_worker_is_announced_as_stopped_and_not_as_dead() -> None:
    step = supervision.process_gone(supervision.stop(up()).worker, 1, Exit(0), None, world())
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert step.worker.status is None
    kept, *rest = step.effects
    ended = KeepRecord(GenerationEnded(TAG, 1))
    assert rest == [ended, Announce(WorkerStopped(TAG, 1, Exit(0), None)), ReportStop(Exit(0), None)]
    assert isinstance(kept, KeepRecord)
    assert isinstance(kept.record, EndKept)
    assert kept.record.bundle.finding is Finding.OPERATOR
    assert kept.record.bundle.sentence == "an operator stopped or restarted it; it exited with code 0"


@pytest.mark.parametrize("reason", list(StopReason))
def test_only_an_end_that_was_ordered_for_this_worker_leaves_evidence(reason: StopReason) -> None:
    stopping = supervision.stop(up(), reason=reason).worker
    others = (
        StopReason.RECYCLE,
        StopReason.SHUTDOWN,
        StopReason.REFUSED,
        StopReason.GROUP,
        StopReason.REPLACED,
        StopReason.MOVE,
        StopReason.FENCED,
    )
    ordered = reason not in others
    known, unknown = (
        supervision.process_gone(stopping, 1, exit_, None, world()) for exit_ in (Exit(0), Exit())
    )
    assert any(isinstance(record, EndKept) for record in records(known)) is ordered
    # Where the exit is unknown, it may have died before the stop was requested.
    assert records(unknown) == [GenerationEnded(TAG, 1)]


def test_a_caller_that_waits_for_a_stop_is_answered_although_the_worker_is_wanted_back() -> None:
    wanted = supervision.start(supervision.stop(up()).worker, world()).worker
    step = supervision.process_gone(wanted, 1, Exit(0), None, world())
    assert ReportStop(Exit(0), None, relaunched=True) in step.effects
    assert has(step, Launch)


def test_sd_01_a_stop_during_the_wait_cancels_it_at_once() -> None:
    step = supervision.stop(waiting(count=3))
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert step.effects == (CancelTimers(), StopMonitoring(), ReportStop(None, None))
    assert step.worker.restarts.restart_count == 4


def test_sd_02_a_stop_during_the_wait_rests_once_the_old_process_is_gone() -> None:
    dead = supervision.died(up(), silence(), world()).worker
    step = supervision.stop(dead)
    assert step.effects == (CancelTimers(), StopMonitoring(), Halt(1, Urgency.GRACEFUL))
    assert ReportStop(Exit(signal=9), 9) in (
        supervision.process_gone(step.worker, 1, Exit(signal=9), 9, world()).effects
    )


def test_sd_04_nothing_starts_after_a_stop_during_the_wait() -> None:
    harness = WorkerHarness(spec())
    harness.worker = waiting()
    harness.take(supervision.stop)
    harness.now_ms += 3_000
    harness.fire(ELAPSED)
    harness.come_to_an_end()
    assert harness.launches == []


def test_sd_07_stopping_a_stopped_worker_only_tells_that_it_rests() -> None:
    worker = idle(Rest.STOPPED)
    assert supervision.stop(worker) == WorkerStep(worker, (ReportStop(None, None),))


@pytest.mark.parametrize("rest", [Rest.NEW, Rest.PAUSED, Rest.RESET])
def test_an_operators_stop_holds_against_a_later_resume(rest: Rest) -> None:
    worker = supervision.stop(idle(rest)).worker
    assert supervision.resume(worker, world()) == WorkerStep(worker)


def test_a_second_stop_passes_on_what_is_firmer() -> None:
    first = supervision.stop(up(), Urgency.FIRM).worker
    assert supervision.stop(first, Urgency.GRACEFUL).effects == (Halt(1, Urgency.FIRM),)
    assert supervision.stop(first, Urgency.KILL).effects == (Halt(1, Urgency.KILL),)


def test_a_stop_takes_a_restart_back() -> None:
    worker = supervision.stop(supervision.restart(up(), world()).worker).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world())
    assert not has(step, Launch)


# ── Starting ─────────────────────────────────────────────────────────────────────────────


def test_a_first_start_is_generation_1() -> None:
    step = supervision.start(SupervisedWorker(spec()), world())
    assert step.worker.phase == Up(1, NOW)
    assert step.worker.status is Status.PENDING
    assert step.effects == (CancelTimers(), Launch(1))


def test_sd_08_a_running_worker_is_not_started_again() -> None:
    assert supervision.start(up(), world()) == WorkerStep(up())


def test_ps_10_a_failed_worker_is_not_started() -> None:
    assert supervision.start(failed(), world()) == WorkerStep(failed())


def test_sd_09_a_paused_worker_is_not_started_and_comes_with_the_resume() -> None:
    step = supervision.start(SupervisedWorker(spec()), world(paused=True))
    assert step.worker.phase == Idle(Rest.PAUSED)
    assert has(supervision.resume(step.worker, world()), Launch)


def test_sd_19_a_start_in_the_middle_of_a_stop_follows_it() -> None:
    worker = supervision.start(supervision.stop(up()).worker, world()).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world())
    assert step.worker.phase == Up(2, NOW)
    assert has(step, Launch)


def test_a_start_that_follows_a_stop_is_given_up_by_a_shutdown() -> None:
    worker = supervision.start(supervision.stop(up()).worker, world()).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world(stopping=True))
    assert step.worker.phase == Idle(Rest.STOPPED)


def test_a_start_that_follows_a_stop_is_put_off_by_a_pause() -> None:
    worker = supervision.start(supervision.stop(up()).worker, world()).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True))
    assert step.worker.phase == Idle(Rest.PAUSED)


# ── Pausing ──────────────────────────────────────────────────────────────────────────────


def test_sd_11_a_pause_stops_the_process() -> None:
    step = supervision.pause(up())
    assert isinstance(step.worker.phase, Stopping)
    assert (step.worker.phase.rest, step.worker.phase.reason) == (Rest.PAUSED, StopReason.PAUSE)
    assert has(step, Halt)


def test_sd_12_a_pause_in_idle_mode_keeps_the_process() -> None:
    worker = up(under=spec("patient"))
    assert supervision.pause(worker) == WorkerStep(worker, (SetIdle(1, paused=True),))
    assert supervision.resume(worker, world()) == WorkerStep(worker, (SetIdle(1, paused=False),))


def test_sd_13_a_pause_and_its_end_leave_the_count() -> None:
    worker = supervision.pause(up(count=3)).worker
    worker = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True)).worker
    step = supervision.resume(worker, world())
    assert has(step, Launch)
    assert step.worker.restarts.restart_count == 3


def test_sd_14_a_failed_worker_stays_failed_through_pause_and_resume() -> None:
    worker = supervision.pause(failed()).worker
    assert supervision.resume(worker, world()) == WorkerStep(failed())


def test_sd_15_a_reset_worker_starts_with_the_next_resume_or_start() -> None:
    step = supervision.reset(failed(), world())
    assert not has(step, Launch)
    for begin in (supervision.resume, supervision.start):
        begun = begin(step.worker, world())
        assert has(begun, Launch)
        assert begun.worker.restarts == RestartState()


def test_sd_16_a_pause_during_the_wait_cancels_it_and_the_resume_starts_at_once() -> None:
    step = supervision.pause(waiting(count=3))
    assert step.worker.phase == Idle(Rest.PAUSED)
    assert has(step, CancelTimers)
    resumed = supervision.resume(step.worker, world())
    assert has(resumed, Launch)
    assert resumed.worker.restarts.restart_count == 4


def test_a_start_by_hand_does_not_wait_for_a_delay_of_the_former_run() -> None:
    worker = idle(Rest.GROUP, not_before_ms=NOW + 1000)
    assert not has(supervision.start(worker, world()), Launch)
    assert has(supervision.start(worker, replace(world(), by_hand=True)), Launch)


def test_a_resume_while_the_pause_still_stops_the_process_brings_it_back() -> None:
    worker = supervision.resume(supervision.pause(up()).worker, world()).worker
    assert has(supervision.process_gone(worker, 1, Exit(0), None, world()), Launch)


@pytest.mark.parametrize("rest", [Rest.STOPPED, Rest.LEFT])
def test_a_resume_does_not_start_what_was_not_running(rest: Rest) -> None:
    worker = supervision.pause(idle(rest)).worker
    assert supervision.resume(worker, world()) == WorkerStep(idle(rest))


def test_a_stop_of_one_that_was_left_lying_outlasts_a_reset_and_a_resume() -> None:
    """Found by chaos: stop, reset, pause, resume, and the worker that was stopped ran."""
    worker = supervision.reset(supervision.stop(idle(Rest.LEFT)).worker, world()).worker
    assert worker.phase == Idle(Rest.STOPPED)
    assert not has(supervision.resume(worker, world()), Launch)


def test_a_pause_does_not_turn_an_operators_stop_into_a_pause() -> None:
    worker = supervision.pause(supervision.stop(up()).worker).worker
    worker = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True)).worker
    assert supervision.resume(worker, world()) == WorkerStep(worker)


def test_a_pause_during_a_manual_restart_puts_the_start_off() -> None:
    worker = supervision.pause(supervision.restart(up(), world()).worker).worker
    worker = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True)).worker
    assert worker.phase == Idle(Rest.PAUSED)
    assert has(supervision.resume(worker, world()), Launch)


# ── Reset and restart ────────────────────────────────────────────────────────────────────


def test_t13_a_reset_clears_counters_failure_and_the_monitors_entry() -> None:
    step = supervision.reset(failed(), world())
    assert (step.worker.restarts, step.worker.phase) == (RestartState(), Idle(Rest.RESET))
    assert step.worker.status is None
    assert records(step) == [RestartReset(TAG, NOW + 5_000_000)]
    assert has(step, StopMonitoring)


def test_a_reset_leaves_a_running_worker_running() -> None:
    step = supervision.reset(up(count=4), world())
    assert (step.worker.phase, step.worker.restarts) == (up().phase, RestartState())
    assert step.effects == (KeepRecord(RestartReset(TAG, NOW + 5_000_000)), Announce(WorkerReset(TAG)))


def test_a_reset_of_a_stopped_worker_does_not_have_a_resume_start_it() -> None:
    worker = supervision.reset(idle(Rest.STOPPED), world()).worker
    assert not has(supervision.resume(worker, world()), Launch)
    assert has(supervision.start(worker, world()), Launch)


def test_a_restart_of_a_running_worker_stops_it_first() -> None:
    step = supervision.restart(up(count=4), world())
    assert isinstance(step.worker.phase, Stopping)
    assert (step.worker.phase.relaunch, step.worker.phase.reason) == (True, StopReason.RESTART)
    assert not has(step, Launch)
    assert has(supervision.process_gone(step.worker, 1, Exit(0), None, world()), Launch)


def test_a_restart_lifts_a_failure_and_starts() -> None:
    step = supervision.restart(failed(), world())
    assert step.effects[-1] == Launch(7)
    assert records(step) == [RestartReset(TAG, NOW + 5_000_000)]


def test_a_restart_in_the_middle_of_a_stop_follows_it() -> None:
    worker = supervision.restart(supervision.stop(up(count=4)).worker, world()).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world())
    assert has(step, Launch)
    assert step.worker.restarts == RestartState()
