"""The states that a client of the event stream begins with."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from rekindle.actors import JobState, JobStatus
from rekindle.actors.gateways.serving.event_hub import EventHub
from rekindle.actors.messages import Snapshot, StateChanged
from rekindle.actors.messages.topics import JOBS, Topics


class Quiet:
    """An operator of whom nothing is heard but what the test says."""

    def subscribe(self, *_ignored: object) -> None: ...

    def unsubscribe(self, *_ignored: object) -> None: ...


def job(number: int, status: str = "running") -> StateChanged:
    return StateChanged(JOBS, "job_update", 1, JobState(id=number, status=status))


def test_a_client_begins_with_every_job_that_is_being_executed_and_no_other() -> None:
    async def states() -> list[int]:
        operator: Any = Quiet()
        hub = EventHub(operator)
        follower = await hub.join(Topics((JOBS,)), lambda: None)
        hub.tell(Snapshot(0, (job(1), job(2))))
        for each in (job(3), job(2, "done"), job(4, "pending")):
            hub.tell(each)
        await hub.is_ready()
        await asyncio.sleep(0)
        found = [json.loads(each)["job"]["id"] for each in hub.envelopes(follower.topics)]
        hub.close()
        return found

    assert asyncio.run(states()) == [1, 3]


def test_the_exported_state_of_a_job_is_the_one_that_arrives_and_has_the_words_of_the_enumeration() -> None:
    match job(7, "toxic"):
        case StateChanged(state=JobState(id=7, status=status)):
            assert status == JobState.TOXIC == JobStatus.TOXIC
        case other:
            raise AssertionError(other)
    assert {each.name for each in JobStatus} == {name for name in vars(JobState) if name.isupper()}
