"""What the actors need from outside, as narrow protocols.

Two runtimes serve them: threads, the real clock and real processes; and the simulation,
where one thread, a virtual clock and a scripted process table run the same actor classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from .deaths.crash_bundle import Bundle
from .facts.alert import Alert
from .facts.audit_entry import AuditEntry
from .facts.jobs import JobCrash, JobSettled, JobView, NewJob, QueueStats
from .facts.records import (
    DeathRecord,
    EventPage,
    EventRecord,
    Lives,
    Record,
    Remembered,
    UsageNoted,
)
from .facts.usage import Usage
from .spec.retention_policy import Retention
from .spec.worker_spec import WorkerSpec

if TYPE_CHECKING:
    import pykka

A = TypeVar("A", bound="pykka.Actor")


class Receiver(Protocol):
    """Whoever can be told something: a pykka `ActorRef`, or an edge's inbox."""

    def tell(self, message: Any) -> None:
        """Deliver the message without waiting."""
        ...


class Clock(Protocol):
    """What time it is."""

    def monotonic(self) -> float:
        """Seconds that never jump, for every duration."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for people and for the store."""
        ...


class Timer(Protocol):
    """A message that was scheduled."""

    def cancel(self) -> None:
        """Drop the message if it is not under way yet. A receiver still checks what it gets."""
        ...


class Timers(Protocol):
    """Delivers messages later."""

    def after(self, delay_s: float, receiver: Receiver, message: object) -> Timer:
        """Tell the receiver the message once the delay has passed."""
        ...


class Control(StrEnum):
    """What a supervisor tells a worker over its channel."""

    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class SpawnRequest(msgspec.Struct, frozen=True):
    """One incarnation to start, and who hears of its life.

    `observer` (its proxy) and `monitor` are told ProcessStarted, SpawnFailed and
    ProcessExited; the monitor alone FrameReceived, ChannelClosed and ProtocolViolated.
    """

    spec: WorkerSpec
    generation: int
    observer: Receiver
    monitor: Receiver


class Processes(Protocol):
    """The process table: our own children only. No call here blocks; news comes as messages."""

    def spawn(self, request: SpawnRequest) -> None:
        """Start the process."""
        ...

    def send(self, component_id: str, generation: int, control: Control) -> None:
        """Tell the worker something over its channel, if it has one."""
        ...

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send a signal; SIGKILL goes to the whole process group."""
        ...

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """Whether the worker has said that it knows how to write its stacks down."""
        ...

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Have a worker write its stacks down, if it has said that it knows how to."""
        ...

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Answer with ProcessFound: what runs under this id now."""
        ...

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that the latest incarnation wrote."""
        ...

    def condition(self, component_id: str) -> str:
        """What the system says that the process does: running, sleeping, stopped, gone…"""
        ...

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """What this incarnation and all that it started use; None if it is gone.

        The one call here that blocks, for as long as a look around takes. It may raise whatever
        the look around raises, where nothing can be seen.
        """
        ...

    def forget(self, component_id: str) -> None:
        """The worker was removed; nothing of it needs to be kept."""
        ...


class Jobs(Protocol):
    """The queues, for those who put jobs into them and those who look after them.

    Every method may be called from any thread and is one transaction of its own. All of them
    raise `StoreError` where the database cannot answer. Workers claim and finish by connections
    of their own (`rekindle.worker.jobs`).
    """

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Put them into the queue, all or none; their numbers."""
        ...

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        ...

    def find(
        self, *, queue: str | None = None, state: str | None = None, limit: int = 100
    ) -> tuple[JobView, ...]:
        """Jobs, the newest first; those of one queue or in one state only."""
        ...

    def taken_by(self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100) -> tuple[JobView, ...]:
        """The jobs that a worker was the last to take, the latest first, as far back as is quickly found."""
        ...

    def named(self, job_ids: Collection[int]) -> tuple[JobView, ...]:
        """Those of these jobs that there are, by number."""
        ...

    def crashes(self, job_ids: Sequence[int]) -> tuple[JobCrash, ...]:
        """The evidence against jobs, oldest first."""
        ...

    def stats(self) -> tuple[QueueStats, ...]:
        """The figures of every queue that has jobs, by name."""
        ...

    def retry(self, job_ids: Sequence[int]) -> None:
        """Put toxic or failed jobs back with their counts cleared, all or none.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them is in another state.
        """
        ...

    def drop(self, job_ids: Sequence[int]) -> None:
        """Forget jobs that are not running, and the evidence with them, all or none.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them is running.
        """
        ...

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Forget the jobs that were done before; how many they were."""
        ...


class Store(Protocol):
    """Where restart history is kept. Only the persistence actor writes to it."""

    def load(self) -> Remembered:
        """What is known of the past."""
        ...

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Keep all of them in one transaction, or raise `StoreUnavailableError` and keep none.

        What comes back is what became of the jobs whose claims were among them.
        """
        ...

    @property
    def jobs(self) -> Jobs:
        """The queues in the same database."""
        ...

    @property
    def address(self) -> str | None:
        """Where a worker finds the queues, password included; None if it cannot."""
        ...

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """The latest deaths, newest first, of one worker or of all."""
        ...

    def bundles(
        self, component_id: str, *, generation: int | None = None, limit: int = 100
    ) -> tuple[Bundle, ...]:
        """The evidence of a worker's deaths, newest first, or of one of them."""
        ...

    def audit(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        ...

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """The events after a number, oldest first."""
        ...

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """The latest events about one worker, newest first; None: those about no worker at all."""
        ...

    def lives(self, component_id: str) -> Lives:
        """All the lives of a worker that ended in a death that is kept."""
        ...

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """What a worker used, newest first."""
        ...

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """Delete some outdated rows; true if there may be more. Only the persistence actor calls it."""
        ...

    def alerts(self) -> tuple[Alert, ...]:
        """Every alert that is not over, and the latest of those that are, oldest first."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Safe to call twice."""
        ...


class Runtime(Protocol):
    """Where actors live: it starts them and gives them time."""

    @property
    def clock(self) -> Clock:
        """What time it is here."""
        ...

    @property
    def timers(self) -> Timers:
        """How to be told something later."""
        ...

    def chance(self) -> float:
        """A number from 0 up to but not including 1."""
        ...

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor of this class."""
        ...
