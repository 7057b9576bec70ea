"""Who runs which task, and who is guilty of a death."""

from __future__ import annotations

from concurrent.futures import Future

from rekindle.actors import Cause, Death
from rekindle.actors.executor.assignments import Assignments, Task

A, B = ("w:0", 1), ("w:1", 1)


def task(name: str = "t") -> Task:
    return Task(name, b"", Future())


def death(worker: tuple[str, int]) -> Death:
    return Death(component_id=worker[0], generation=worker[1], cause=Cause.EXITED)


def desk(*tasks: Task, retries: int = 0) -> Assignments:
    assignments = Assignments(retries)
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
    assignments.begun(A, guilty.number)
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
    guilty = task()
    assignments = desk(guilty, retries=1)
    for worker, given_up in ((A, False), (B, True)):
        assert assignments.assign(worker) is guilty
        assignments.begun(worker, guilty.number)
        assert assignments.died(death(worker)) == (guilty, given_up)
    assert len(guilty.deaths) == 2


def test_news_of_another_incarnation_or_another_task_changes_nothing() -> None:
    running = task()
    assignments = desk(running)
    assignments.assign(A)
    assignments.begun(A, running.number + 1)
    assert not running.begun
    assert assignments.finished(A, running.number + 1) is None
    assert assignments.finished(("w:0", 2), running.number) is None
    assert assignments.died(death(("w:0", 2))) == (None, False)
    assert assignments.finished(A, running.number) is running


def test_a_death_without_a_task_is_blamed_on_no_task() -> None:
    assert desk().died(death(A)) == (None, False)
