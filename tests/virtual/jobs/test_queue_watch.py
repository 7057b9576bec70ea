"""What listeners receive about the queues, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, W, worker

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.topic_states import JobTopicState, QueueState
from rekindle.actors.messages import Published, QueueResumed, Snapshot, StateChanged
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.messages.internal.to_desks import QueuesTouched
from rekindle.actors.messages.internal.to_monitor import FrameReceived
from rekindle.actors.simulation import dies_after

TAG: dict[str, Any] = {"jobs": {"queues": ("tag",)}}


def listener(system: Any, *topics: str) -> Listener:
    """A listener to these topics."""
    heard = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(heard, topics))
    system.runtime.settle()
    return heard


def put_in(system: Any, many: int = 1, payload: str = "{}") -> tuple[int, ...]:
    """Enqueue as a host does."""
    ids: tuple[int, ...] = system.memory.jobs.add("tag", [NewJob(payload=payload)] * many)
    system.actors.watch.tell(QueuesTouched(ids))
    return ids


def take(system: Any) -> int:
    """Have the worker take a job and say so; its process is a script, so that is ours to do."""
    claimed = system.memory.jobs.claim("tag", W, 1, "")
    assert claimed is not None
    says(system, claimed.id)
    return int(claimed.id)


def says(system: Any, job: int | None) -> None:
    """Have the worker say which job it holds."""
    system.actors.monitor.tell(FrameReceived(W, 1, Frame(status="healthy", current_job=job)))


def finish(system: Any, job: int) -> None:
    """Have the worker finish the job, and say that it holds none."""
    system.memory.jobs.finish(system.memory.jobs.get(job))
    says(system, None)


def published_jobs(heard: Listener) -> list[tuple[int, str]]:
    """(job, status) of every published job."""
    told = [each.state for each in heard.messages if isinstance(each, StateChanged)]
    return [(state.id, state.status) for state in told if isinstance(state, JobTopicState)]


def numbers(heard: Listener) -> list[tuple[str, int, int, int]]:
    """(topic, pending, running, completed) of every published state."""
    told = [each for each in heard.messages if isinstance(each, StateChanged)]
    return [
        (each.topic, each.state.pending, each.state.running, each.state.completed)
        for each in told
        if isinstance(each.state, QueueState)
    ]


def test_a_queue_is_published_when_it_has_changed_and_not_otherwise(new_system: SystemFactory) -> None:
    """EV-10: the queue itself, and all queues together."""
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    heard = listener(system, "queue:tag:status", "queue:status")
    put_in(system)
    system.run(2.0)
    finish(system, take(system))
    system.run(2.0)
    assert numbers(heard) == [
        ("queue:tag:status", 1, 0, 0), ("queue:status", 1, 0, 0),
        ("queue:tag:status", 0, 0, 1), ("queue:status", 0, 0, 1),
    ]  # fmt: skip


def test_a_job_is_published_from_its_beginning_to_its_end(new_system: SystemFactory) -> None:
    """Topic queue:jobs: the typed state, and nothing of it in the log of events."""
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    heard = listener(system, "queue:jobs", "event:*")
    (job,) = put_in(system, payload='{"path": "/music/a.flac"}')
    system.run(1.0)
    take(system)
    system.run(1.0)
    finish(system, job)
    system.run(1.0)
    assert published_jobs(heard) == [(job, "pending"), (job, "running"), (job, "done")]
    told = [each for each in heard.messages if isinstance(each, StateChanged)]
    assert {(each.topic, each.type, each.event_id) for each in told} == {("queue:jobs", "job_update", None)}
    assert isinstance(told[1].state, JobTopicState)
    assert told[1].state.path == "/music/a.flac"


def test_a_late_subscriber_receives_the_jobs_that_are_executed(new_system: SystemFactory) -> None:
    """EV-04, for jobs."""
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    put_in(system, 3)
    job = take(system)
    system.run(1.0)
    snapshot = listener(system, "queue:jobs").messages[0]
    assert isinstance(snapshot, Snapshot)
    (state,) = snapshot.states
    assert isinstance(state.state, JobTopicState)
    assert (state.state.id, state.state.status) == (job, "running")
    finish(system, job)
    system.run(1.0)
    assert listener(system, "queue:jobs").messages[0].states == ()


def test_the_job_of_a_dead_worker_is_published_as_pending_again(new_system: SystemFactory) -> None:
    """JR-02, for subscribers."""
    system = new_system(worker(**TAG), scripts=lambda _: dies_after(5.0)).start()
    system.run(1.0)
    heard = listener(system, "queue:jobs")
    put_in(system)
    job = take(system)
    system.run(5.0)
    assert published_jobs(heard) == [(job, "running"), (job, "pending")]


def test_a_flood_of_short_jobs_is_looked_at_twice_a_second(new_system: SystemFactory) -> None:
    """A thousand jobs cost a few looks, and the figures are right in the end."""
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    put_in(system, 1000)
    heard = listener(system, "queue:tag:status")
    for _ in range(1000):
        finish(system, take(system))
        system.run(0.002)
    system.run(1.0)
    assert len(numbers(heard)) <= 6
    assert numbers(heard)[-1] == ("queue:tag:status", 0, 0, 1000)


def test_while_nothing_happens_queues_are_not_read_and_no_timer_runs(new_system: SystemFactory) -> None:
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    put_in(system)
    finish(system, take(system))
    system.run(5.0)
    asked = []
    system.memory.jobs.stats = lambda: asked.append(1) or ()  # type: ignore[method-assign, func-returns-value]
    system.run(600.0)
    assert asked == []


def test_a_late_subscriber_receives_the_queues_first(new_system: SystemFactory) -> None:
    system = new_system(worker(**TAG)).start()
    put_in(system, 3)
    system.run(1.0)
    snapshot = listener(system, "queue:*:status").messages[0]
    assert isinstance(snapshot, Snapshot)
    (state,) = snapshot.states
    assert isinstance(state.state, QueueState)
    assert (state.type, state.state.queue_type, state.state.pending) == ("queue_update", "tag", 3)


def test_without_a_queue_the_store_is_not_read(new_system: SystemFactory) -> None:
    system = new_system(worker()).start()
    put_in(system)
    system.run(5.0)
    assert numbers(listener(system, "queue:*:status")) == []


def test_a_store_that_is_away_costs_a_look_now_and_then(new_system: SystemFactory, logs: list[str]) -> None:
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    real, system.memory.jobs.stats = system.memory.jobs.stats, _away  # type: ignore[method-assign]
    heard = listener(system, "queue:tag:status")
    put_in(system)
    system.run(20.0)
    assert sum("queues: cannot be read" in line for line in logs) == 1
    system.memory.jobs.stats = real  # type: ignore[method-assign]
    system.run(6.0)
    assert numbers(heard) == [("queue:tag:status", 1, 0, 0)]


def _away() -> Any:
    raise StoreUnavailableError("gone")


def test_the_end_of_a_queues_pause_is_an_event_when_it_comes_by_the_clock(new_system: SystemFactory) -> None:
    system = new_system(worker(**TAG)).start()
    system.run(1.0)
    heard = listener(system, "event:queue_resumed", "queue:tag:status")
    system.memory.jobs.wall_ms = system.runtime.clock.wall_ms
    system.memory.jobs.pause("tag", for_s=3600)
    system.actors.watch.tell(QueuesTouched())
    system.run(3590.0)
    assert [each.event for each in heard.messages if isinstance(each, Published)] == []
    system.run(20.0)
    assert [each.event for each in heard.messages if isinstance(each, Published)] == [
        QueueResumed("tag", expired=True)
    ]
    told = [each.state for each in heard.messages if isinstance(each, StateChanged)]
    assert [state.paused for state in told if isinstance(state, QueueState)] == [True, False]
