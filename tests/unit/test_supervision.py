"""What the Supervisor makes of one worker: SC-01 to SC-11, SC-16, SD-01 to SD-19, RD-20 to RD-29, purely."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.builders import TAG, crash, silence, spec
from tests.unit.supervised import Scene

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Action, Cause, Exit
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import (
    DeathAmended,
    DeathRecord,
    EndKept,
    RememberedWorker,
    RestartReset,
    StreakCleared,
)
from rekindle.actors.messages import WorkerDied, WorkerFailed, WorkerReset, WorkerStopped, WorkerStopping
from rekindle.actors.messages.internal import BackoffElapsed, HealthSustained
from rekindle.actors.rules.restarts import DEFAULT_FAILURE, RestartState
from rekindle.actors.rules.stop_ladder import Absent
from rekindle.actors.spec.stop_urgency import Urgency
from rekindle.actors.spec.work_release import ReleasePolicy
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision import SAVE_TIMEOUT_MS
from rekindle.actors.supervision.worker import (
    Announce,
    AwaitSave,
    BackingOff,
    CancelTimers,
    Effect,
    Examine,
    Failed,
    Forget,
    GiveUp,
    Halt,
    Idle,
    Idling,
    KeepRecord,
    Launch,
    ReleaseWork,
    ReportStop,
    Rest,
    Schedule,
    Step,
    Stopping,
    StopReason,
    Up,
    Worker,
    World,
)

NOW = 1_000_000


def world(now_ms: int = NOW, *, stopping: bool = False, paused: bool = False) -> World:
    """A moment; the wall clock shows something else."""
    return World(now_ms=now_ms, wall_ms=now_ms + 5_000_000, stopping=stopping, paused=paused)


def up(generation: int = 1, *, count: int = 0, under: WorkerSpec | None = None) -> Worker:
    """A worker that runs, with so many restarts behind it."""
    restarts = RestartState(count, count, NOW - 10**9 if count else None)
    return Worker(
        under or spec(),
        phase=Up(generation, NOW - 3_000, 77),
        generation=generation,
        lingering=generation,
        restarts=restarts,
        status=Status.HEALTHY,
    )


def waiting(count: int = 0, under: WorkerSpec | None = None) -> Worker:
    """A worker whose restart is decided and kept, and whose process is gone."""
    scene = Scene(under or spec())
    scene.worker, scene.now_ms = up(count=count, under=under), NOW
    scene.take(lambda w: supervision.died(w, crash(), world()))
    scene.take(lambda w: supervision.process_gone(w, 1, Exit(1), None, world()))
    scene.take(lambda w: supervision.kept(w, 1, world()))
    return scene.worker


def failed(count: int = 5) -> Worker:
    """A worker that was given up."""
    return Worker(
        spec(), phase=Failed("too often"), generation=6, restarts=RestartState(count, count, NOW - 1)
    )


def idle(rest: Rest, **others: object) -> Worker:
    """A worker that rests."""
    return Worker(spec(), phase=Idle(rest), generation=3, **others)  # type: ignore[arg-type]


def records(step: Step) -> list[object]:
    """What is to be kept."""
    return [effect.record for effect in step.effects if isinstance(effect, KeepRecord)]


def has(step: Step, *kinds: type[Effect]) -> bool:
    """Whether any effect is of these kinds."""
    return any(isinstance(effect, kinds) for effect in step.effects)


ELAPSED = BackoffElapsed(TAG, 1, 1)


# ── Deaths ───────────────────────────────────────────────────────────────────────────────


def test_sc_01_a_death_is_counted_kept_and_scheduled_once() -> None:
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
    assert supervision.died(first.worker, crash(), world(NOW + 500)) == Step(first.worker)


def test_sc_03_a_death_reported_a_thousand_times_counts_once() -> None:
    scene = Scene(spec())
    scene.worker = up()
    for _ in range(1000):
        scene.take(lambda w: supervision.died(w, crash(), world()))
    assert scene.counters.restart_count == 1
    assert (len(scene.timers), len(scene.unsaved)) == (1, 1)


def test_a_death_of_an_older_generation_is_ignored() -> None:
    worker = up(generation=2)
    assert supervision.died(worker, crash(generation=1), world()) == Step(worker)


def test_sc_04_a_final_death_fails_the_worker_and_schedules_nothing() -> None:
    step = supervision.died(up(count=20), crash(), world())
    assert isinstance(step.worker.phase, Failed)
    assert step.worker.status is Status.FAILED
    assert has(step, GiveUp)
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
    scene = Scene(spec("plugin", restart={"max_consecutive": 3}))
    scene.take(lambda w: supervision.start(w, scene.world))
    for _ in range(4):
        scene.spawn_fails()
        scene.come_to_an_end(spawns=False)
    assert scene.counters.restart_count == 3
    assert scene.failure is not None


def test_sc_09_the_delay_after_a_failed_spawn_is_doubled() -> None:
    worker = supervision.backoff_elapsed(waiting(), ELAPSED, world()).worker
    step = supervision.died(worker, crash(2, cause=Cause.SPAWN_FAILED, code=None), world())
    assert [effect.delay_ms for effect in step.effects if isinstance(effect, Schedule)] == [2000]
    assert not has(step, Halt)


def test_rd_21_with_restarts_off_a_death_is_told_and_nothing_else() -> None:
    step = supervision.died(up(under=spec(restart={"enabled": False})), crash(), world())
    assert (step.worker.status, step.worker.restarts) == (Status.DEAD, RestartState())
    assert isinstance(step.worker.phase, Idle)
    assert step.worker.phase.rest is Rest.LEFT
    assert has(step, Announce)
    assert not has(step, Schedule, Launch, GiveUp)


def test_rd_24_a_worker_that_is_being_stopped_does_not_die() -> None:
    stopping = supervision.stop(up()).worker
    assert supervision.died(stopping, crash(), world()) == Step(stopping)


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
    assert steps[news] == Step(worker)


def test_sd_03_a_death_during_a_shutdown_is_kept_and_not_counted() -> None:
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


def test_sc_11_a_silent_process_is_ended_before_another_one_starts() -> None:
    step = supervision.died(up(), silence(), world())
    assert Halt(1, Urgency.FIRM, hung=True) in step.effects
    elapsed = supervision.backoff_elapsed(supervision.kept(step.worker, 1, world()).worker, ELAPSED, world())
    assert elapsed.effects == ()
    gone = supervision.process_gone(elapsed.worker, 1, Exit(signal=9), 9, world())
    assert gone.effects[-1] == Launch(2)


def test_a_process_that_has_ended_is_not_told_to_end() -> None:
    assert not has(supervision.died(up(), crash(), world()), Halt)
    gone = supervision.process_gone(up(), 1, Exit(), None, world()).worker
    assert not has(supervision.died(gone, crash(code=None), world()), Halt)


def test_how_a_silent_process_ended_at_last_is_kept_with_its_death() -> None:
    worker = supervision.died(up(), silence(), world()).worker
    step = supervision.process_gone(worker, 1, Exit(signal=9), 9, world())
    [amended] = records(step)
    assert isinstance(amended, DeathAmended)
    assert (amended.component_id, amended.generation) == (TAG, 1)
    assert (amended.exit_code, amended.signal) == (None, 9)
    assert amended.bundle is not None
    assert (amended.bundle.finding, amended.bundle.signal) == (Finding.HUNG, 9)


def test_an_end_that_was_known_with_the_death_is_not_kept_again() -> None:
    worker = supervision.died(up(), crash(), world()).worker
    assert records(supervision.process_gone(worker, 1, Exit(1), None, world())) == []


def test_a_death_ends_the_job_of_the_worker() -> None:
    worker = supervision.job_changed(up(), 1, 42).worker
    assert worker.job == 42
    assert supervision.died(worker, crash(), world()).worker.job is None


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
    assert supervision.sustained(unwell.worker, 1, world()) == Step(unwell.worker)


def test_bo_08_sustained_health_belongs_to_one_incarnation() -> None:
    worker = up(generation=2, count=2, under=spec("plugin"))
    assert supervision.sustained(worker, 1, world()) == Step(worker)


def test_a_streak_cleared_at_a_death_that_is_only_told_is_cleared_in_the_store_too() -> None:
    tired = spec("patient", restart={"max_lifetime": 3, "on_exhausted": "notify_only"})
    scene = Scene(tired)
    scene.worker = up(count=3, under=tired)
    scene.store.commit([_counted(n) for n in (-3, -2, -1)])
    scene.take(lambda w: supervision.died(w, crash(healthy_for_ms=300_000), world()))
    assert scene.counters.streak_count == scene.stored.streak_count == 0
    assert scene.counters.restart_count == scene.stored.restart_count == 3


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


# ── The wait before a restart ────────────────────────────────────────────────────────────


def test_the_wait_over_the_worker_starts_with_the_next_generation() -> None:
    step = supervision.backoff_elapsed(waiting(), ELAPSED, world(NOW + 1000))
    assert step.worker.phase == Up(2, NOW + 1000)
    assert (step.worker.generation, step.worker.lingering) == (2, 2)
    assert step.effects == (CancelTimers(), Launch(2))


def test_a_restart_waits_for_its_delay() -> None:
    worker = waiting()
    assert isinstance(worker.phase, BackingOff)
    assert (worker.phase.kept, worker.phase.elapsed, worker.lingering) == (True, False, None)


def test_a_restart_waits_for_the_store_but_not_for_ever() -> None:
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


def test_a_restart_without_delay_happens_once_kept_and_reaped() -> None:
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
    assert supervision.backoff_elapsed(stopped, ELAPSED, world()) == Step(stopped)


@pytest.mark.parametrize(
    "timer", [BackoffElapsed(TAG, 0, 1), BackoffElapsed(TAG, 1, 2), BackoffElapsed(TAG, 2, 1)]
)
def test_sc_08_a_timer_of_another_generation_or_attempt_is_ignored(timer: BackoffElapsed) -> None:
    assert supervision.backoff_elapsed(waiting(), timer, world()) == Step(waiting())


def test_news_of_another_death_being_kept_is_ignored() -> None:
    worker = supervision.died(up(generation=2), crash(2), world()).worker
    assert supervision.kept(worker, 1, world()) == Step(worker)


def test_sc_16_a_manual_restart_during_the_wait_starts_now() -> None:
    step = supervision.restart(waiting(count=3), world(NOW + 1))
    assert has(step, CancelTimers)
    assert [effect for effect in step.effects if isinstance(effect, Launch)] == [Launch(2)]
    assert step.worker.restarts == RestartState()
    assert supervision.backoff_elapsed(step.worker, ELAPSED, world()) == Step(step.worker)


def test_sc_16_a_manual_start_during_the_wait_starts_now_and_keeps_the_count() -> None:
    step = supervision.start(waiting(count=3), world(NOW + 1))
    assert step.effects == (CancelTimers(), Launch(2))
    assert step.worker.restarts.restart_count == 4


def test_a_manual_start_waits_for_the_old_process_all_the_same() -> None:
    worker = supervision.died(up(), silence(), world()).worker
    step = supervision.start(worker, world())
    assert step.effects == (CancelTimers(),)
    assert has(supervision.process_gone(step.worker, 1, Exit(signal=15), 15, world()), Launch)


# ── Stopping ─────────────────────────────────────────────────────────────────────────────


def test_a_stop_ends_the_process_and_expects_nothing_of_it_any_more() -> None:
    step = supervision.stop(up(), Urgency.FIRM)
    assert step.worker.phase == Stopping(
        1, Rest.STOPPED, urgency=Urgency.FIRM, reason=StopReason.OPERATOR, since_ms=NOW - 3_000, pid=77
    )
    told = Announce(WorkerStopping(TAG, 1, "operator_stop"))
    assert step.effects == (CancelTimers(), told, Forget(), Halt(1, Urgency.FIRM))


def test_sd_06_a_stopped_worker_is_announced_as_stopped_and_not_as_dead() -> None:
    step = supervision.process_gone(supervision.stop(up()).worker, 1, Exit(0), None, world())
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert step.worker.status is None
    kept, *rest = step.effects
    assert rest == [Announce(WorkerStopped(TAG, 1, Exit(0), None)), ReportStop(Exit(0), None)]
    assert isinstance(kept, KeepRecord)
    assert isinstance(kept.record, EndKept)
    assert kept.record.bundle.finding is Finding.OPERATOR
    assert kept.record.bundle.sentence == "an operator asked for its end; it exited with code 0"


@pytest.mark.parametrize("reason", list(StopReason))
def test_only_an_end_that_somebody_ordered_for_this_worker_leaves_evidence(reason: StopReason) -> None:
    stopping = supervision.stop(up(), reason=reason).worker
    ordered = reason not in (StopReason.RECYCLE, StopReason.SHUTDOWN, StopReason.REFUSED)
    assert has(supervision.process_gone(stopping, 1, Exit(0), None, world()), KeepRecord) is ordered
    # Where nobody saw how it ended, it may have died before it was told to end.
    assert not has(supervision.process_gone(stopping, 1, Exit(), None, world()), KeepRecord)


def test_who_waits_for_a_stop_hears_of_it_although_the_worker_is_wanted_back() -> None:
    wanted = supervision.start(supervision.stop(up()).worker, world()).worker
    step = supervision.process_gone(wanted, 1, Exit(0), None, world())
    assert ReportStop(Exit(0), None, relaunched=True) in step.effects
    assert has(step, Launch)


def test_sd_01_a_stop_during_the_wait_cancels_it_at_once() -> None:
    step = supervision.stop(waiting(count=3))
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert step.effects == (CancelTimers(), Forget(), ReportStop(None, None))
    assert step.worker.restarts.restart_count == 4


def test_sd_02_a_stop_during_the_wait_rests_once_the_old_process_is_gone() -> None:
    dead = supervision.died(up(), silence(), world()).worker
    step = supervision.stop(dead)
    assert step.effects == (CancelTimers(), Forget(), Halt(1, Urgency.GRACEFUL))
    assert ReportStop(Exit(signal=9), 9) in (
        supervision.process_gone(step.worker, 1, Exit(signal=9), 9, world()).effects
    )


def test_sd_04_nothing_starts_after_a_stop_during_the_wait() -> None:
    scene = Scene(spec())
    scene.worker = waiting()
    scene.take(supervision.stop)
    scene.now_ms += 3_000
    scene.fire(ELAPSED)
    scene.come_to_an_end()
    assert scene.launches == []


def test_sd_07_stopping_a_stopped_worker_only_tells_that_it_rests() -> None:
    worker = idle(Rest.STOPPED)
    assert supervision.stop(worker) == Step(worker, (ReportStop(None, None),))


@pytest.mark.parametrize("rest", [Rest.NEW, Rest.PAUSED, Rest.RESET])
def test_an_operators_stop_holds_against_a_later_resume(rest: Rest) -> None:
    worker = supervision.stop(idle(rest)).worker
    assert supervision.resume(worker, world()) == Step(worker)


def test_a_second_stop_passes_on_what_is_firmer() -> None:
    first = supervision.stop(up(), Urgency.FIRM).worker
    assert supervision.stop(first, Urgency.GRACEFUL).effects == (Halt(1, Urgency.FIRM),)
    assert supervision.stop(first, Urgency.KILL).effects == (Halt(1, Urgency.KILL),)


def test_a_stop_takes_a_restart_back() -> None:
    worker = supervision.stop(supervision.restart(up(), world()).worker).worker
    step = supervision.process_gone(worker, 1, Exit(0), None, world())
    assert not has(step, Launch)


def test_a_stop_between_the_end_of_a_process_and_the_news_of_its_death_is_finished() -> None:
    gone = supervision.process_gone(up(), 1, Exit(1), None, world()).worker
    stopping = supervision.stop(gone)
    assert has(stopping, Halt)
    step = supervision.process_gone(stopping.worker, 1, Exit(), None, world())
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert has(step, ReportStop)


def test_an_end_that_is_told_twice_counts_once() -> None:
    worker = supervision.process_gone(supervision.stop(up()).worker, 1, Exit(0), None, world()).worker
    assert supervision.process_gone(worker, 1, Exit(), None, world()) == Step(worker)


def test_the_end_of_a_process_alone_is_no_death() -> None:
    step = supervision.process_gone(up(), 1, Exit(1), None, world())
    assert (step.effects, step.worker.lingering) == ((), None)
    assert isinstance(step.worker.phase, Up)


# ── Starting ─────────────────────────────────────────────────────────────────────────────


def test_a_first_start_is_generation_1() -> None:
    step = supervision.start(Worker(spec()), world())
    assert step.worker.phase == Up(1, NOW)
    assert step.worker.status is Status.PENDING
    assert step.effects == (CancelTimers(), Launch(1))


def test_sd_08_a_running_worker_is_not_started_again() -> None:
    assert supervision.start(up(), world()) == Step(up())


def test_ps_10_a_failed_worker_is_not_started() -> None:
    assert supervision.start(failed(), world()) == Step(failed())


def test_sd_09_a_paused_worker_is_not_started_and_comes_with_the_resume() -> None:
    step = supervision.start(Worker(spec()), world(paused=True))
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


def test_a_pid_is_noted_for_the_generation_that_it_belongs_to() -> None:
    worker = supervision.start(Worker(spec()), world()).worker
    assert supervision.process_started(worker, 1, 99, world()).worker.phase == Up(1, NOW, 99)
    assert supervision.process_started(worker, 2, 99, world()) == Step(worker)


def test_a_process_that_comes_to_be_during_a_pause_idles_or_is_stopped() -> None:
    idler = supervision.start(Worker(spec("patient")), world()).worker
    stopper = supervision.start(Worker(spec("steady")), world()).worker
    assert has(supervision.process_started(idler, 1, 99, world(paused=True)), Idling)
    assert has(supervision.process_started(stopper, 1, 99, world(paused=True)), Halt)


def test_a_worker_that_nobody_watches_is_killed() -> None:
    assert Halt(1, Urgency.KILL) in supervision.refused(up(), 1).effects
    assert supervision.refused(up(2), 1) == Step(up(2))


# ── Pausing ──────────────────────────────────────────────────────────────────────────────


def test_sd_11_a_pause_stops_the_process() -> None:
    step = supervision.pause(up())
    assert isinstance(step.worker.phase, Stopping)
    assert (step.worker.phase.rest, step.worker.phase.reason) == (Rest.PAUSED, StopReason.PAUSE)
    assert has(step, Halt)


def test_sd_12_a_pause_in_idle_mode_keeps_the_process() -> None:
    worker = up(under=spec("patient"))
    assert supervision.pause(worker) == Step(worker, (Idling(1, paused=True),))
    assert supervision.resume(worker, world()) == Step(worker, (Idling(1, paused=False),))


def test_sd_13_a_pause_and_its_end_leave_the_count() -> None:
    worker = supervision.pause(up(count=3)).worker
    worker = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True)).worker
    step = supervision.resume(worker, world())
    assert has(step, Launch)
    assert step.worker.restarts.restart_count == 3


def test_sd_14_a_failed_worker_stays_failed_through_pause_and_resume() -> None:
    worker = supervision.pause(failed()).worker
    assert supervision.resume(worker, world()) == Step(failed())


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


def test_a_resume_while_the_pause_still_stops_the_process_brings_it_back() -> None:
    worker = supervision.resume(supervision.pause(up()).worker, world()).worker
    assert has(supervision.process_gone(worker, 1, Exit(0), None, world()), Launch)


@pytest.mark.parametrize("rest", [Rest.STOPPED, Rest.LEFT])
def test_a_resume_does_not_start_what_was_not_running(rest: Rest) -> None:
    worker = supervision.pause(idle(rest)).worker
    assert supervision.resume(worker, world()) == Step(idle(rest))


def test_a_stop_of_one_that_was_left_lying_outlasts_a_reset_and_a_resume() -> None:
    """Found by chaos: stop, reset, pause, resume, and the worker that was stopped ran."""
    worker = supervision.reset(supervision.stop(idle(Rest.LEFT)).worker, world()).worker
    assert worker.phase == Idle(Rest.STOPPED)
    assert not has(supervision.resume(worker, world()), Launch)


def test_a_pause_does_not_turn_an_operators_stop_into_a_pause() -> None:
    worker = supervision.pause(supervision.stop(up()).worker).worker
    worker = supervision.process_gone(worker, 1, Exit(0), None, world(paused=True)).worker
    assert supervision.resume(worker, world()) == Step(worker)


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
    assert has(step, Forget)


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
    assert step.effects == (GiveUp(),)


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
    scene = Scene(spec())
    scene.store.commit([_counted(1, delay_ms=60_000), RestartReset(TAG, NOW)])
    worker = supervision.remembered(spec(), scene.stored, scene.world).worker
    assert has(supervision.start(worker, scene.world), Launch)
    assert worker.restarts.restart_count == 0


def test_a_manual_restart_does_not_wait_for_a_delay_of_a_former_run() -> None:
    due = known(restart_due_wall_ms=NOW + 5_000_000 + 4_000)
    worker = supervision.remembered(spec(), due, world()).worker
    assert has(supervision.restart(worker, world()), Launch)


# ── After an actor was replaced ──────────────────────────────────────────────────────────


def test_a_running_worker_is_examined_by_the_monitor() -> None:
    assert supervision.reconcile(up(), 1, world()).effects == (Examine(1),)
    assert supervision.reconcile(up(), None, world()).effects == (Examine(None),)


def test_what_a_hung_worker_held_is_released_when_its_process_is_found_gone() -> None:
    """The news of its end was lost with an actor that raised; the item went out with the next one's end."""
    release = ReleasePolicy(command=("br", "update", "{work_item}"), cwd="/tmp")
    worker = supervision.job_changed(up(under=spec(release=release)), 1, "bead-7").worker
    hung = supervision.died(worker, replace(silence(), job="bead-7"), world()).worker
    step = supervision.reconcile(hung, None, world(NOW + 20))
    released = [effect.order.release for effect in step.effects if isinstance(effect, ReleaseWork)]
    assert [(each.generation, each.work_item) for each in released] == [(1, "bead-7")]
    assert supervision.reconcile(step.worker, None, world(NOW + 30)).worker.unreleased is None


def test_a_worker_that_waits_gets_its_timer_back_and_its_record_kept_again() -> None:
    step = supervision.reconcile(waiting(), None, world(NOW + 400))
    assert Schedule(600, BackoffElapsed(TAG, 1, 1)) in step.effects
    assert [type(record) for record in records(step)] == [DeathRecord]


def test_a_wait_that_a_former_run_began_is_not_written_down_as_another_death() -> None:
    """Found by chaos: the Supervisor raised during such a wait, and a death of unknown cause was kept."""
    worker = idle(Rest.NEW, not_before_ms=NOW + 1000)
    waiting_again = supervision.start(worker, world()).worker
    assert records(supervision.reconcile(waiting_again, None, world())) == []


def test_a_process_that_should_be_gone_is_ended() -> None:
    for worker in (waiting(), idle(Rest.STOPPED), failed()):
        assert Halt(1, Urgency.FIRM) in supervision.reconcile(worker, 1, world()).effects


def test_a_stop_that_was_under_way_is_repeated_or_over() -> None:
    stopping = supervision.stop(up(), Urgency.KILL).worker
    assert supervision.reconcile(stopping, 1, world()).effects == (Halt(1, Urgency.KILL),)
    assert supervision.reconcile(stopping, None, world()).worker.phase == Idle(Rest.STOPPED)


def test_a_worker_at_rest_with_no_process_stays_so() -> None:
    assert supervision.reconcile(failed(), None, world()) == Step(failed())


def test_a_whole_life_ends_without_a_process() -> None:
    scene = Scene(spec())
    scene.take(lambda w: supervision.start(w, scene.world))
    for _ in range(6):
        scene.settle()
        scene.ends()
        scene.come_to_an_end()
    assert scene.launches == [1, 2, 3, 4, 5, 6]
    assert scene.failure is not None
    assert scene.failure.startswith("5 restarts in 5 min")
    assert scene.process == Absent()
