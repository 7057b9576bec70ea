"""Pure: the current state of every topic, derived from events.

Takes events one after the other and returns the states that they change. An event that leaves a
state as it was returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ..facts.health_status import ShownStatus, Status
from ..facts.topic_states import (
    JobTopicState,
    QueueState,
    State,
    SystemHealthState,
    WorkerState,
    aggregate,
    job_state,
    queue_state,
    worker_state,
)
from ..messages import (
    Event,
    StateChanged,
    StatusChanged,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
    WorkerUnkillable,
)
from ..messages.internal.to_broker import Notice, QueuesSeen, WorkerForgotten, WorkerKnown
from ..messages.internal.to_supervisor import JobChanged
from ..messages.topics import JOBS, QUEUES, SYSTEM, queue_topic, worker_topic

SHOWN = {
    Status.PENDING: ShownStatus.STARTING,
    Status.HEALTHY: ShownStatus.HEALTHY,
    Status.UNHEALTHY: ShownStatus.HEALTHY,
    Status.RECOVERING: ShownStatus.HEALTHY,
    Status.DEAD: ShownStatus.CRASHED,
    Status.FAILED: ShownStatus.FAILED,
}
"""The internal statuses in the words of the views."""

TYPES: dict[type[State], str] = {
    WorkerState: "worker_update",
    QueueState: "queue_update",
    JobTopicState: "job_update",
    SystemHealthState: "system_update",
}


class CurrentStates:
    """The states of all topics."""

    def __init__(self, began_wall_ms: int = 0) -> None:
        """Begin with a system that has been healthy since then."""
        self._states: dict[str, State] = {SYSTEM: SystemHealthState()}
        self._stamps: dict[str, tuple[int, int | None]] = {SYSTEM: (began_wall_ms, None)}
        """When each state was reached, and by which event."""
        self._jobs: dict[int, StateChanged] = {}
        """The jobs that are being executed: many states, one topic."""
        self._errors: dict[str, str] = {}
        self._stood_down = False

    def states(self, chosen: Callable[[str], bool]) -> tuple[StateChanged, ...]:
        """The states of these topics."""
        executed = tuple(self._jobs.values()) if chosen(JOBS) else ()
        return (*(self._as_change(topic) for topic in self._states if chosen(topic)), *executed)

    def take(self, item: Event | Notice, at_wall_ms: int, event_id: int | None) -> tuple[StateChanged, ...]:
        """Take an event or a notice; return the states that it changes."""
        changes = tuple(
            self._changed(topic, state, at_wall_ms, event_id) for topic, state in self._news_of(item)
        )
        return (*changes, *self._job_changes(item, at_wall_ms)) if isinstance(item, QueuesSeen) else changes

    def _job_changes(self, seen: QueuesSeen, at_wall_ms: int) -> Iterator[StateChanged]:
        for job in seen.jobs:
            state = job_state(job)
            changed = StateChanged(JOBS, TYPES[JobTopicState], at_wall_ms, state)
            if state.status == "running":
                self._jobs[job.id] = changed
            else:
                self._jobs.pop(job.id, None)
            yield changed
        for job_id in seen.gone:
            self._jobs.pop(job_id, None)
            yield StateChanged(
                JOBS, TYPES[JobTopicState], at_wall_ms, JobTopicState(id=job_id, status="dropped")
            )

    def _news_of(self, item: Event | Notice) -> Iterator[tuple[str, State | None]]:
        for topic, state in self._reached(item):
            if self._states.get(topic) != state:
                yield topic, state

    def _reached(self, item: Event | Notice) -> Iterator[tuple[str, State | None]]:
        match item:
            case WorkerKnown(component_id=id_, status=status):
                yield worker_topic(id_), worker_state(id_, status)
            case WorkerForgotten(component_id=id_):
                yield worker_topic(id_), None
                yield from self._blame(id_, None)
            case JobChanged(component_id=id_, job=job):
                yield worker_topic(id_), replace(self._worker(id_), current_job=job)
            case QueuesSeen(queues=queues):
                states = tuple(queue_state(stats) for stats in queues)
                yield from ((queue_topic(state.queue_type or ""), state) for state in states)
                yield QUEUES, aggregate(states)
            case WorkerStarted(component_id=id_, pid=pid):
                started = replace(self._worker(id_), pid=pid, current_job=None)
                yield worker_topic(id_), replace(started, status=ShownStatus.STARTING, health=Status.PENDING)
                yield from self._blame(id_, None)
            case StatusChanged(component_id=id_):
                yield worker_topic(id_), self._in_status(item)
            case WorkerDied(component_id=id_, done=done) if item.is_finished:
                status = ShownStatus.DONE if done else ShownStatus.STOPPED
                yield worker_topic(id_), replace(self._worker(id_), status=status)
            case WorkerStopping(component_id=id_):
                yield worker_topic(id_), replace(self._worker(id_), status=ShownStatus.STOPPING)
            case WorkerStopped(component_id=id_):
                stopped = replace(self._worker(id_), pid=None, current_job=None)
                yield worker_topic(id_), replace(stopped, status=ShownStatus.STOPPED, health=None)
                yield from self._blame(id_, None)
            case WorkerFailed(component_id=id_, reason=reason):
                yield from self._blame(id_, f"{id_} was given up: {reason}")
            case WorkerUnkillable(component_id=id_, pid=pid):
                yield from self._blame(id_, f"{id_} survives SIGKILL (pid {pid})")
            case StoreDegraded(reason=reason):
                yield from self._blame("", f"persistence is degraded: {reason}")
            case StoreRecovered():
                yield from self._blame("", None)
            case StoodDown(reason=reason):
                self._stood_down = True
                yield from self._blame("", f"stood down: {reason}")
            case _:
                pass

    def _in_status(self, changed: StatusChanged) -> WorkerState:
        worker = self._worker(changed.component_id)
        worker = replace(worker, status=SHOWN[changed.new], health=changed.new)
        if changed.new in (Status.DEAD, Status.FAILED):
            return replace(worker, pid=None, current_job=None)
        return worker

    def _blame(self, whom: str, error: str | None) -> Iterator[tuple[str, State | None]]:
        if error is None:
            self._errors.pop(whom, None)
        else:
            self._errors[whom] = error
        word = "error" if self._stood_down else "degraded" if self._errors else "healthy"
        yield SYSTEM, SystemHealthState(word, tuple(self._errors.values()))

    def _worker(self, component_id: str) -> WorkerState:
        state = self._states.get(worker_topic(component_id))
        return state if isinstance(state, WorkerState) else worker_state(component_id, ShownStatus.STOPPED)

    def _changed(self, topic: str, state: State | None, at: int, event_id: int | None) -> StateChanged:
        if state is None:
            gone = self._states.pop(topic)
            self._stamps.pop(topic, None)
            return StateChanged(topic, TYPES[type(gone)], at, None, event_id)
        self._states[topic] = state
        self._stamps[topic] = (at, event_id)
        return self._as_change(topic)

    def _as_change(self, topic: str) -> StateChanged:
        state = self._states[topic]
        at, event_id = self._stamps[topic]
        return StateChanged(topic, TYPES[type(state)], at, state, event_id)
