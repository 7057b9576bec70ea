"""What the events of a journal say of a tenure: ready, done, and the timetable that goes along."""

from __future__ import annotations

from rekindle.actors.cluster.facts.tenures import Assignment, Tenure
from rekindle.actors.cluster.rules.tenure_counters import carried, merged
from rekindle.actors.cluster.rules.tenure_news import after_event, begun
from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import RememberedWorker
from rekindle.actors.messages import StatusChanged, WorkerDied

W = "worker:web:0"
NEW = Tenure(component_id=W, epoch=5, node_id="n")


def becomes(status: Status) -> StatusChanged:
    return StatusChanged(component_id=W, generation=1, old=Status.PENDING, new=status, at=0.0)


def test_a_worker_is_ready_from_the_first_time_that_it_is_healthy() -> None:
    assert after_event(NEW, 1, 10, becomes(Status.UNHEALTHY)).ready_ms is None
    ready = after_event(NEW, 2, 20, becomes(Status.HEALTHY))
    assert ready.ready_ms == 20
    assert after_event(ready, 3, 30, becomes(Status.HEALTHY)) == ready


def test_a_task_that_ended_well_is_done_and_nothing_is_counted() -> None:
    death = Death(component_id=W, generation=1, cause=Cause.EXITED, exit=Exit(0, None))
    done = after_event(NEW, 1, 10, WorkerDied(death, Action.NONE, "done", 0.0, 0, done=True))
    assert (done.done_ms, done.restarts, done.recent_deaths_ms) == (10, 0, ())


def test_late_news_do_not_undo_that_a_task_is_done() -> None:
    done = Tenure(component_id=W, epoch=5, node_id="n", done_ms=10, noted=3)
    assert merged(done, Tenure(component_id=W, epoch=5, node_id="n", noted=1)).done_ms == 10


def test_a_tenure_without_runs_hands_on_the_timetable_that_the_worker_brought() -> None:
    assigned = Assignment(component_id=W, epoch=6, node_id="m", since_ms=70)
    tenure = begun(assigned, "m", RememberedWorker(timetable="{}"))
    known = carried([Tenure(component_id=W, epoch=5, node_id="n", timetable="old"), tenure])
    assert (known.timetable, known.scheduled_since_wall_ms) == ("{}", 70)
