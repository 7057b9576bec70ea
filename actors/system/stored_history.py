"""What the store holds of a system's past; it can be read whether the system runs or not."""

from __future__ import annotations

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError, UnknownDeathError
from ..facts.audit_entry import AuditEntry
from ..facts.jobs import JobState, JobView
from ..facts.records import DeathRecord, EventPage
from ..facts.runs import Run
from ..ports import Store
from ..views.timeline import Timeline
from .timeline_reader import TimelineReader

MOST_RUNNING = 1000
"""Among how many running jobs those of one worker are looked for."""


class StoredHistory:
    """Deaths, their evidence, events, audited orders and timelines."""

    def __init__(self, store: Store) -> None:
        self.timelines = TimelineReader(store)
        self._store = store
        self.address = store.address
        """The address of the database, with its password, if it has one."""

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest deaths of one worker or of all, newest first."""
        return self._store.deaths(component_id, limit=limit)

    def jobs_of(self, component_id: str, generation: int) -> tuple[JobView, ...]:
        """The jobs of queues that a process executes now, without their payloads."""
        try:
            running = self._store.jobs.find(state=JobState.RUNNING, limit=MOST_RUNNING, longest=0)
        except RequestRefusedError:  # a store without queues
            return ()
        owner = (component_id, generation)
        held = (job for job in running if (job.claimed_by, job.claimed_generation) == owner)
        return tuple(sorted(held, key=lambda job: job.id))

    def runs(self, component_id: str, limit: int = 100) -> tuple[Run, ...]:
        """The latest runs of a scheduled worker, newest first."""
        return self._store.runs(component_id, limit=limit)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of a worker's latest deaths, newest first."""
        return self._store.bundles(component_id, limit=limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        """The evidence of one death.

        Raises:
            UnknownDeathError: that generation did not die, or its evidence was pruned.
        """
        found = self.evidence(component_id, generation)
        if found is None:
            raise UnknownDeathError(component_id, generation)
        return found

    def evidence(self, component_id: str, generation: int) -> Bundle | None:
        """The evidence of one death, if the store has it."""
        return next(iter(self._store.bundles(component_id, generation=generation)), None)

    def timeline(
        self, component_id: str, since_wall_ms: int = 0, limit: int = 100, *, uptime_s: float | None = None
    ) -> Timeline:
        """What happened to a worker, newest first; it is empty for a worker that the store does not know.

        Args:
            component_id: the worker.
            since_wall_ms: leave out what happened before.
            limit: the number of entries.
            uptime_s: for how long its current process has been running.
        """
        running_ms = 0 if uptime_s is None else round(uptime_s * 1000)
        return self.timelines.timeline(
            component_id, since_wall_ms=since_wall_ms, limit=limit, running_ms=running_ms
        )

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        return self._store.audit(limit)

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The stored events after an event id, oldest first."""
        return self._store.events(after_id, limit)


def mentions_worker(timeline: Timeline) -> bool:
    """Whether a timeline holds anything about the worker itself, beside events of the whole system."""
    return bool(timeline.ever.deaths) or any(entry.generation for entry in timeline.entries)
