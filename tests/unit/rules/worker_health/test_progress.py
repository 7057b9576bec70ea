"""When the work of a worker counts as stuck, however alive the worker is."""

from __future__ import annotations

from functools import reduce

import pytest

from rekindle.actors.deaths.death import Job
from rekindle.actors.facts.frames import Frame
from rekindle.actors.rules.worker_health.progress import Progress, after_frame, deadline, granted, stuck
from rekindle.actors.spec.policies.health_policy import HealthPolicy

POLICY = HealthPolicy(progress_timeout_s=10)
UNASKED = HealthPolicy()

Said = tuple[float, Job | None, int | None, float | None]


def after(*said: Said) -> Progress:
    """What these frames come to, each as (when, job, mark, busy for)."""

    def one(motion: Progress, told: Said) -> Progress:
        at, job, mark, busy = told
        return after_frame(motion, Frame("healthy", current_job=job, progress=mark, busy_for_s=busy), at)

    return reduce(one, said, Progress())


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ([], None),
        ([(0, None, None, None)], None),  # it never reported progress
        ([(0, None, 1, None)], 10),
        ([(0, None, 1, None), (5, None, 1, None)], 10),  # a heartbeat is not progress
        ([(0, None, 1, None), (5, None, 2, None)], 15),
        ([(0, 7, None, None)], 10),
        ([(0, 7, None, None), (5, 8, None, None)], 15),  # the next job
        ([(0, 7, None, None), (5, None, None, None)], None),  # it rests between jobs
        ([(0, 7, 1, None), (5, None, 2, None)], None),  # also if it moved its mark afterwards
        ([(0, 7, 1, None), (5, None, 1, None), (90, 8, 1, None)], 100),
        ([(0, 7, None, 60)], 60),
        ([(0, 7, None, 3)], 10),  # busy puts off, and never brings forward
        ([(0, 7, None, 60), (5, 7, 1, None)], 15),
    ],
)
def test_the_work_must_have_moved_by_then(said: list[Said], due: float | None) -> None:
    assert deadline(after(*said), POLICY) == due
    assert deadline(after(*said), UNASKED) is None


def test_stuck_work_is_reported_with_its_job_and_its_mark_at_the_deadline_and_not_before() -> None:
    motion = after((0, "song", 3, None))
    assert stuck(motion, POLICY, 9.9) is None
    assert stuck(motion, POLICY, 10) == "no progress of job 'song' since mark 3 for 10 s (limit 10 s)"
    assert stuck(motion, UNASKED, 1e9) is None


def test_who_was_paused_has_all_of_its_time_again() -> None:
    assert deadline(granted(after((0, 7, None, None)), 100), POLICY) == 110
    assert granted(Progress(), 100) == Progress()
