"""Who runs which task, and who is guilty of a death."""

from __future__ import annotations

from concurrent.futures import Future

from rekindle.actors import Cause, Death
from rekindle.actors.executor.assignments import Assignments, Task

A, B = ("w:0", 1), ("w:1", 1)


def task(retries: int = 0, timeout_s: float | None = None) -> Task:
    return Task(print, b"", Future(), retries, timeout_s)


def death(worker: tuple[str, int]) -> Death:
    return Death(component_id=worker[0], generation=worker[1], cause=Cause.EXITED)


def desk(*tasks: Task) -> Assignments:
    assignments = Assignments()
    for each in tasks:
        assignments.add(each)
    return assignments


def test_tasks_are_assigned_in_order_and_cancelled_tasks_are_skipped() -> None:
    first, second, third = task(), task(), task()
    assignments = desk(first, second, third)
    second.future.cancel()
    assert assignments.assign(A) is first
    assert assignments.assign(B) is third
    assert assignments.assign(("w:2", 1)) is None


def test_a_death_is_the_fault_of_the_task_that_had_begun() -> None:
    guilty, other = task(), task()
    assignments = desk(guilty, other)
    assignments.assign(A), assignments.assign(B)
    assignments.begun(A, guilty.number, 0.0)
    assert assignments.died(death(A)) == (guilty, True)
    assert not assignments.idle, "the other one still runs"
    assert assignments.finished(B, other.number) is other
    assert assignments.idle


def test_a_task_that_had_not_begun_is_innocent_and_comes_first_again() -> None:
    innocent, later = task(), task()
    assignments = desk(innocent, later)
    assignments.assign(A)
    assert assignments.died(death(A)) == (None, False)
    assert assignments.assign(B) is innocent
    assert innocent.deaths == ()


def test_a_guilty_task_that_may_be_tried_again_comes_first_again() -> None:
    guilty = task(retries=1)
    assignments = desk(guilty)
    for worker, given_up in ((A, False), (B, True)):
        assert assignments.assign(worker) is guilty
        assignments.begun(worker, guilty.number, 0.0)
        assert assignments.died(death(worker)) == (guilty, given_up)
    assert len(guilty.deaths) == 2


def test_news_of_another_incarnation_or_another_task_changes_nothing() -> None:
    running = task()
    assignments = desk(running)
    assignments.assign(A)
    assignments.begun(A, running.number + 1, 0.0)
    assert not running.begun
    assert assignments.finished(A, running.number + 1) is None
    assert assignments.finished(("w:0", 2), running.number) is None
    assert assignments.died(death(("w:0", 2))) == (None, False)
    assert assignments.finished(A, running.number) is running


def test_a_death_without_a_task_is_blamed_on_no_task() -> None:
    assert desk().died(death(A)) == (None, False)


def test_a_task_is_overdue_when_its_time_is_over_and_only_while_it_runs() -> None:
    slow, quick, free = task(timeout_s=5), task(timeout_s=3), task()
    assignments = desk(slow, quick, free)
    for worker, each in ((A, slow), (B, quick), (("w:2", 1), free)):
        assignments.assign(worker)
        assert assignments.wait_s(0.0) is None or each is not slow
        assignments.begun(worker, each.number, 10.0)
    assert assignments.wait_s(11.0) == 2.0
    assert assignments.finished(B, quick.number) is quick
    assert assignments.wait_s(11.0) == 4.0
    assert list(assignments.overdue(14.9)) == []
    assert list(assignments.overdue(15.0)) == [(A, slow)]
    assert assignments.wait_s(15.0) is None
    assert assignments.finished(A, slow.number) is None


def test_the_time_of_a_task_that_crashed_and_is_retried_begins_anew() -> None:
    retried = task(retries=1, timeout_s=5)
    assignments = desk(retried)
    assignments.assign(A)
    assignments.begun(A, retried.number, 0.0)
    assignments.died(death(A))
    assert assignments.wait_s(1.0) is None
    assignments.assign(B)
    assignments.begun(B, retried.number, 100.0)
    assert assignments.wait_s(100.0) == 5.0
