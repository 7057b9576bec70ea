"""Periodic jobs, over every implementation of the port: each due time is dealt with once."""

from __future__ import annotations

import threading

from msgspec.structs import replace
from tests.contract.queues import Queues, new

from rekindle.actors.facts.queues import PeriodicPlan, PeriodicView
from rekindle.persistence import open_queue

HOUR_MS = 3_600_000


def plan(name: str = "report", schedule: str = "every 1h") -> PeriodicPlan:
    return PeriodicPlan(name=name, queue="tag", schedule=schedule, next_due_wall_ms=HOUR_MS)


def declared(queues: Queues, *plans: PeriodicPlan) -> tuple[PeriodicView, ...]:
    queues.jobs.declare_periodic(plans or [plan()])
    return queues.jobs.periodic()


def later(view: PeriodicView, missed: int = 0) -> PeriodicView:
    due = view.last_due_wall_ms + HOUR_MS
    return replace(view, last_due_wall_ms=due, next_due_wall_ms=due + HOUR_MS, missed=view.missed + missed)


def test_a_periodic_job_counts_from_its_declaration_and_keeps_its_mark(queues: Queues) -> None:
    (first,) = declared(queues)
    assert (first.name, first.queue, first.missed, first.last_job_id) == ("report", "tag", 0, None)
    queues.jobs.advance_periodic(first, later(first, missed=2), [new()])
    (again,) = declared(queues)
    assert again.last_due_wall_ms == first.last_due_wall_ms + HOUR_MS
    assert (again.missed, again.last_job_id) == (2, 1)


def test_another_schedule_counts_from_now_on_and_one_that_is_not_declared_is_forgotten(
    queues: Queues,
) -> None:
    (first,) = declared(queues)
    queues.jobs.advance_periodic(first, later(later(first)), [new()])
    (changed,) = declared(queues, plan(schedule="every 2h"))
    assert changed.last_due_wall_ms < first.last_due_wall_ms + HOUR_MS
    assert changed.schedule == "every 2h"
    assert [view.name for view in declared(queues, plan("other"))] == ["other"]


def test_the_job_of_a_due_time_is_enqueued_once_whoever_is_quicker(queues: Queues) -> None:
    (seen,) = declared(queues)
    assert queues.jobs.advance_periodic(seen, later(seen), [new()]) == (1,)
    assert queues.jobs.advance_periodic(seen, later(seen), [new()]) is None
    assert [job.id for job in queues.jobs.find()] == [1]


def test_a_due_time_that_is_skipped_moves_the_mark_without_a_job(queues: Queues) -> None:
    (seen,) = declared(queues)
    assert queues.jobs.advance_periodic(seen, later(seen, missed=1), []) == ()
    (after,) = queues.jobs.periodic()
    assert (after.missed, after.last_job_id) == (1, None)
    assert queues.jobs.find() == ()


def test_two_programs_at_the_same_time_enqueue_one_job_for_each_due_time(sql_queues: Queues) -> None:
    """As two supervisors of one database would, if one has not noticed yet that the other took over."""
    declared(sql_queues)
    others = [open_queue(sql_queues.store.address or "") for _ in range(2)]

    def work(queue: object) -> None:
        for _ in range(50):
            (seen,) = queue.periodic()  # type: ignore[attr-defined]
            queue.advance_periodic(seen, later(seen), [new(str(seen.last_due_wall_ms))])  # type: ignore[attr-defined]

    threads = [threading.Thread(target=work, args=(queue,)) for queue in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    payloads = [job.payload for job in sql_queues.jobs.find(limit=1000)]
    assert len(payloads) == len(set(payloads)) >= 50
    (end,) = sql_queues.jobs.periodic()
    assert len(payloads) == (end.last_due_wall_ms - int(min(payloads))) // HOUR_MS
    for queue in others:
        queue.close()
