"""The states that a client of the event stream begins with."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from rekindle.actors import JobState, JobStatus
from rekindle.actors.gateways.serving.event_hub import EventHub
from rekindle.actors.gateways.serving.sse_response import EventStreamResponse, StreamRequest
from rekindle.actors.messages import Published, Snapshot, StateChanged, WorkerStarted
from rekindle.actors.messages.event_json import numbered
from rekindle.actors.messages.topics import ALL_EVENTS, JOBS, Topics


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


def event(number: int) -> Published:
    began = WorkerStarted("worker:tag:0", number, 1000)
    record = numbered(number, 1, began)
    return Published(number, 1, began, record)


def test_an_event_that_arrives_while_a_client_joins_is_sent_to_it_once() -> None:
    """It is among the latest events by then, and was queued for the client as well."""

    async def sent() -> list[int]:
        operator: Any = Quiet()
        hub = EventHub(operator)
        follower = await hub.join(Topics((ALL_EVENTS,)), lambda: None)
        for message in (Snapshot(2, (), (event(1), event(2))), event(3), event(4)):
            hub.tell(message)
        response = EventStreamResponse(StreamRequest(after=0), follower, hub, unread)
        bodies: list[bytes] = []

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            bodies.append(message.get("body", b""))
            if b"id: 4\n" in bodies[-1]:
                hub.tell(event(5))
            if b"id: 5\n" in bodies[-1]:
                hub.close()

        await response({}, receive, send)
        return [int(number) for number in re.findall(rb"^id: (\d+)$", b"".join(bodies), re.MULTILINE)]

    assert asyncio.run(sent()) == [1, 2, 3, 4, 5]


def unread(_after: int) -> Any:
    raise AssertionError("the log has nothing that the client needs")
