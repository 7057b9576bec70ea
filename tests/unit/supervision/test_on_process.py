"""What follows from the start and end of a process, and from what an actor finds after it was replaced."""

from __future__ import annotations

from msgspec.structs import replace
from tests.unit.builders import TAG, crash, silence, spec
from tests.unit.supervision.worker_harness import WorkerHarness
from tests.unit.supervision.workers import ELAPSED, NOW, failed, has, idle, records, up, waiting, world

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.records import (
    DeathAmended,
    DeathRecord,
)
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.rules.stop_ladder import Absent
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.spec.policies.work_item_policy import ReleasePolicy
from rekindle.actors.supervision.worker import (
    CompareHealth,
    Halt,
    Idle,
    Launch,
    ReleaseWork,
    ReportStop,
    Rest,
    Schedule,
    SetIdle,
    SupervisedWorker,
    Up,
    WorkerStep,
)


def test_sc_11_a_silent_process_is_ended_before_another_one_starts() -> None:
    step = supervision.died(up(), silence(), world())
    assert Halt(1, Urgency.FIRM, hung=True) in step.effects
    elapsed = supervision.backoff_elapsed(supervision.kept(step.worker, 1, world()).worker, ELAPSED, world())
    assert elapsed.effects == ()
    gone = supervision.process_gone(elapsed.worker, 1, Exit(signal=9), 9, world())
    assert gone.effects[-1] == Launch(2)


def test_the_final_exit_of_a_silent_process_is_persisted_with_its_death() -> None:
    worker = supervision.died(up(), silence(), world()).worker
    step = supervision.process_gone(worker, 1, Exit(signal=9), 9, world())
    [amended] = records(step)
    assert isinstance(amended, DeathAmended)
    assert (amended.component_id, amended.generation) == (TAG, 1)
    assert (amended.exit_code, amended.signal) == (None, 9)
    assert amended.bundle is not None
    assert (amended.bundle.finding, amended.bundle.signal) == (Finding.HUNG, 9)


def test_an_exit_that_was_known_with_the_death_is_not_persisted_again() -> None:
    worker = supervision.died(up(), crash(), world()).worker
    assert records(supervision.process_gone(worker, 1, Exit(1), None, world())) == []


def test_a_stop_between_the_end_of_a_process_and_the_news_of_its_death_is_finished() -> None:
    gone = supervision.process_gone(up(), 1, Exit(1), None, world()).worker
    stopping = supervision.stop(gone)
    assert has(stopping, Halt)
    step = supervision.process_gone(stopping.worker, 1, Exit(), None, world())
    assert step.worker.phase == Idle(Rest.STOPPED)
    assert has(step, ReportStop)


def test_an_end_that_is_reported_twice_counts_once() -> None:
    worker = supervision.process_gone(supervision.stop(up()).worker, 1, Exit(0), None, world()).worker
    assert supervision.process_gone(worker, 1, Exit(), None, world()) == WorkerStep(worker)


def test_the_end_of_a_process_alone_is_not_a_death() -> None:
    step = supervision.process_gone(up(), 1, Exit(1), None, world())
    assert (step.effects, step.worker.lingering) == ((), None)
    assert isinstance(step.worker.phase, Up)


def test_a_pid_is_noted_for_the_generation_that_it_belongs_to() -> None:
    worker = supervision.start(SupervisedWorker(spec()), world()).worker
    assert supervision.process_started(worker, 1, 99, world()).worker.phase == Up(1, NOW, 99)
    assert supervision.process_started(worker, 2, 99, world()) == WorkerStep(worker)


def test_a_process_that_comes_to_be_during_a_pause_idles_or_is_stopped() -> None:
    idler = supervision.start(SupervisedWorker(spec("patient")), world()).worker
    stopper = supervision.start(SupervisedWorker(spec("steady")), world()).worker
    assert has(supervision.process_started(idler, 1, 99, world(paused=True)), SetIdle)
    assert has(supervision.process_started(stopper, 1, 99, world(paused=True)), Halt)


def test_an_unwatched_worker_is_killed() -> None:
    assert Halt(1, Urgency.KILL) in supervision.refused(up(), 1).effects
    assert supervision.refused(up(2), 1) == WorkerStep(up(2))


# ── After an actor was replaced ──────────────────────────────────────────────────────────


def test_a_running_worker_is_examined_by_the_monitor() -> None:
    assert supervision.reconcile(up(), 1, world()).effects == (CompareHealth(1),)
    assert supervision.reconcile(up(), None, world()).effects == (CompareHealth(None),)


def test_what_a_hung_worker_held_is_released_when_its_process_is_found_gone() -> None:
    """The news of its end was lost with an actor that raised; the item went out with the next one's end."""
    release = ReleasePolicy(command=("br", "update", "{work_item}"), cwd="/tmp")
    worker = supervision.job_changed(up(under=spec(release=release)), 1, "bead-7").worker
    hung = supervision.died(worker, replace(silence(), job="bead-7"), world()).worker
    step = supervision.reconcile(hung, None, world(NOW + 20))
    released = [effect.order.release for effect in step.effects if isinstance(effect, ReleaseWork)]
    assert [(each.generation, each.work_item) for each in released] == [(1, "bead-7")]
    assert supervision.reconcile(step.worker, None, world(NOW + 30)).worker.unreleased is None


def test_a_worker_that_waits_gets_its_timer_back_and_its_record_is_persisted_again() -> None:
    step = supervision.reconcile(waiting(), None, world(NOW + 400))
    assert Schedule(600, BackoffElapsed(TAG, 1, 1)) in step.effects
    assert [type(record) for record in records(step)] == [DeathRecord]


def test_a_wait_that_a_former_run_began_is_not_written_down_as_another_death() -> None:
    """Found by chaos: the Supervisor raised during such a wait, and a death of unknown cause was stored."""
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
    assert supervision.reconcile(failed(), None, world()) == WorkerStep(failed())


def test_a_whole_life_ends_without_a_process() -> None:
    harness = WorkerHarness(spec())
    harness.take(lambda w: supervision.start(w, harness.world))
    for _ in range(6):
        harness.settle()
        harness.ends()
        harness.come_to_an_end()
    assert harness.launches == [1, 2, 3, 4, 5, 6]
    assert harness.failure is not None
    assert harness.failure.startswith("5 restarts in 5 minutes")
    assert harness.process == Absent()
