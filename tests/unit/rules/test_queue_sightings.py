"""Which jobs are asked after, and which are news."""

from __future__ import annotations

from rekindle.actors.facts.jobs import JobView
from rekindle.actors.rules.queue_sightings import MOST_AT_A_LOOK, JobNews, Sightings


def job(number: int, state: str = "running", attempts: int = 1) -> JobView:
    """A job in this state."""
    return JobView(
        id=number,
        queue="tag",
        state=state,
        payload="{}",
        priority=0,
        attempts=attempts,
        crash_count=0,
        error_count=0,
        max_retries=None,
        claimed_by=None,
        claimed_generation=None,
        created_at_wall_ms=0,
        not_before_wall_ms=0,
        started_at_wall_ms=None,
        finished_at_wall_ms=None,
        toxic_since_wall_ms=None,
        result=None,
        error=None,
    )


def test_a_job_that_is_still_executed_is_not_news() -> None:
    sightings = Sightings()
    assert sightings.take([job(1)], []) == JobNews((job(1),))
    assert sightings.to_ask_after([job(1)]) == frozenset()
    assert sightings.take([job(1)], []) == JobNews()


def test_a_job_that_was_begun_again_between_two_looks_is_news() -> None:
    sightings = Sightings()
    sightings.take([job(1)], [])
    assert sightings.take([job(1, attempts=2)], []) == JobNews((job(1, attempts=2),))


def test_a_job_that_is_no_longer_executed_is_looked_up_once() -> None:
    sightings = Sightings()
    sightings.take([job(1)], [])
    assert sightings.to_ask_after([]) == {1}
    assert sightings.take([], [job(1, "done")]) == JobNews((job(1, "done"),))
    assert sightings.to_ask_after([]) == frozenset()


def test_a_short_job_is_reported_although_no_look_found_it_executed() -> None:
    sightings = Sightings()
    sightings.hear([7])
    assert sightings.to_ask_after([]) == {7}
    assert sightings.take([], [job(7, "done")]) == JobNews((job(7, "done"),))


def test_a_job_that_was_dropped_is_gone() -> None:
    sightings = Sightings()
    sightings.take([job(1)], [])
    assert sightings.take([], []) == JobNews(gone=(1,))


def test_more_jobs_than_the_list_holds_are_not_taken_for_ended() -> None:
    sightings = Sightings()
    sightings.take([job(1), job(2)], [])
    assert sightings.to_ask_after([job(2)]) == {1}
    assert sightings.take([job(2)], [job(1)]) == JobNews()


def test_a_flood_of_numbers_is_cut() -> None:
    sightings = Sightings()
    sightings.hear(range(10 * MOST_AT_A_LOOK))
    assert len(sightings.to_ask_after([])) == MOST_AT_A_LOOK
