"""For which deaths of a worker its jobs are blamed."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.unit.builders import TAG
from tests.unit.supervision.workers import up

from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.deaths.evidence import Remains, Spent
from rekindle.actors.spec.policies.job_policy import JobPolicy
from rekindle.actors.spec.program import PythonCall
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision.after_death.aftermath import claims_after_death
from rekindle.actors.supervision.worker import ReleaseJobs

SERVES = WorkerSpec(TAG, PythonCall("app:Tagger.main"), jobs=JobPolicy(queues=("tag",)))
HARDLY_ANY = Spent(user_ms=1, system_ms=1, peak_rss_kb=10)
MUCH = Spent(user_ms=1, system_ms=1, peak_rss_kb=900)


@pytest.mark.parametrize(
    ("remains", "blamed"),
    [
        ({"usage": HARDLY_ANY, "oom_kills": 1}, False),  # memory ran out, and others had used it up
        ({"usage": MUCH, "oom_kills": 1}, True),
        ({"usage": HARDLY_ANY, "oom_kills": 0}, True),
        ({"usage": HARDLY_ANY, "oom_kills": 1, "counted_alone": True}, True),  # its own limit
        ({"usage": None, "oom_kills": 1}, True),
        ({"sent": signal.SIGKILL}, False),
        ({}, True),
    ],
)
def test_a_job_is_blamed_for_a_kill_unless_an_operator_or_the_memory_of_others_caused_it(
    remains: dict[str, Any], blamed: bool
) -> None:
    death = Death(
        component_id=TAG,
        generation=1,
        cause=Cause.SIGNALLED,
        exit=Exit(signal=signal.SIGKILL),
        remains=Remains(memory_limit_kb=1000, **remains),
    )
    (release,) = claims_after_death(up(under=SERVES), death)
    assert isinstance(release, ReleaseJobs)
    assert release.end.counted is blamed
