"""The documents about jobs."""

from __future__ import annotations

import msgspec
import pytest
from tests.contract.records import death

from rekindle.actors.errors import UnknownJobError
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.records import ClaimsReleased
from rekindle.actors.gateways.api.handlers.job_handlers import LONGEST_ANSWER, job_detail, job_list
from rekindle.actors.gateways.serving.json_values import encode
from rekindle.persistence.jobs.memory_jobs import MemoryJobs


def test_payloads_pass_as_they_are_and_what_is_not_json_as_text() -> None:
    jobs = MemoryJobs()
    for payload in ('{"a": [1, 2.50]}', "not json", "[" * 5000 + "]" * 5000):
        jobs.add("tag", [NewJob(payload=payload)])
    sent = [encode(job_detail(jobs, number)) for number in (1, 2)]
    assert b'"payload":{"a": [1, 2.50]},' in sent[0]
    assert b'"payload":"not json",' in sent[1]
    assert msgspec.json.decode(encode(job_detail(jobs, 3)))["job"]["result"] is None
    with pytest.raises(UnknownJobError):
        job_detail(jobs, 99)


def test_a_list_that_would_be_too_long_says_how_many_jobs_it_leaves_off() -> None:
    """The evidence against a job is the output of its workers: it may be long."""
    jobs = MemoryJobs()
    jobs.add("tag", [NewJob(payload="{}")] * 30)
    for generation in range(1, 31):
        assert jobs.claim("tag", "w", generation, "run") is not None
        record = ClaimsReleased(
            component_id="w", generation=generation, run="run", at_wall_ms=1, counted=True,
            crash_retries=0, cause="killed", output=("x" * 50_000,) * 20,
        )  # fmt: skip
        jobs.release(record, {("w", generation): death(generation)})
    found = job_list(jobs, queue=None, state="toxic", limit=100, evidence=True)
    assert (len(found.jobs), found.left_off) == (7, 23)
    assert len(encode(found)) < LONGEST_ANSWER
    assert job_list(jobs, queue=None, state="toxic", limit=100, evidence=False).left_off == 0
