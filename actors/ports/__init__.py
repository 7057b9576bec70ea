"""What the actors need from outside, as narrow protocols.

Two runtimes implement them: threads with the real clock and real processes; and the simulation, which
runs the same actor classes in one thread with a virtual clock and a scripted process table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, runtime_checkable

import msgspec

from ..deaths.crash_bundle import Bundle
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.jobs import JobSettled, JobView
from ..facts.records import (
    DeathRecord,
    EventPage,
    EventRecord,
    Lives,
    Record,
    Remembered,
    UsageNoted,
)
from ..facts.runs import Run
from ..facts.usage import Usage
from ..spec.deployment.drain_policy import DrainPolicy
from ..spec.policies.retention_policy import Retention
from ..spec.worker_spec import WorkerSpec
from .job_ports import Jobs as Jobs

if TYPE_CHECKING:
    import pykka

    from rekindle.worker.jobs.claims import Claimant, Claims

    from ..spec.job_payload import JobSettings

A = TypeVar("A", bound="pykka.Actor")


class Receiver(Protocol):
    """Receives messages: a pykka `ActorRef`, or the inbox of a gateway."""

    def tell(self, message: Any) -> None:
        """Deliver the message without waiting."""
        ...


class Clock(Protocol):
    """The current time."""

    def monotonic(self) -> float:
        """Seconds that never jump, for every duration."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for people and for the store."""
        ...


class Timer(Protocol):
    """A message that was scheduled."""

    def cancel(self) -> None:
        """Drop the message if it is not yet delivered. A receiver must still check for stale ones."""
        ...


class Timers(Protocol):
    """Delivers messages later."""

    def after(self, delay_s: float, receiver: Receiver, message: object) -> Timer:
        """Send the message to the receiver after the delay."""
        ...


class Control(StrEnum):
    """What a supervisor requests of a worker over its channel."""

    DRAIN = "drain"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class CancelledJob(msgspec.Struct, frozen=True):
    """An execution that a worker is asked to end."""

    job_id: int
    attempt: int


class SpawnRequest(msgspec.Struct, frozen=True):
    """One incarnation to start, and who is notified of its life.

    `observer` (its proxy) and `monitor` receive ProcessStarted, SpawnFailed and
    ProcessExited; only the monitor receives FrameReceived, ChannelClosed and ProtocolViolated.
    """

    spec: WorkerSpec
    generation: int
    observer: Receiver
    monitor: Receiver


class Processes(Protocol):
    """The process table: our own children only. Calls do not block; results arrive as messages."""

    def spawn(self, request: SpawnRequest) -> None:
        """Start the process."""
        ...

    def adopt(self, request: SpawnRequest) -> None:
        """Watch a process that the former program of this process started; nothing if it left none."""
        ...

    def send(self, component_id: str, generation: int, control: Control | CancelledJob) -> None:
        """Send the request over the worker's channel, if it has one."""
        ...

    def drain(self, component_id: str, generation: int, drain: DrainPolicy) -> None:
        """Tell the worker to take no more work; its proxy gets WorkDrained when it has none left."""
        ...

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send a signal; SIGKILL goes to the whole process group."""
        ...

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """Whether the worker has reported that it can write its stacks."""
        ...

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Make a worker write its stacks, if it can."""
        ...

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Reply with ProcessFound: the process that runs under this id now."""
        ...

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that the latest incarnation wrote."""
        ...

    def condition(self, component_id: str) -> str:
        """The kernel's state of the process: running, sleeping, stopped, gone…"""
        ...

    def busy_s(self) -> float:
        """How long the thread that watches the processes has been busy with one thing; 0 while it waits."""
        ...

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """What this incarnation and its descendants use; None if it is gone.

        The only call here that blocks, while it scans the processes. An error of the scan is raised.
        """
        ...

    def forget(self, component_id: str) -> None:
        """Drop all data of a removed worker."""
        ...


class Producer(Protocol):
    """Puts jobs into the queues of one database."""

    def enqueue_many(
        self, queue: str, payloads: Iterable[object], **settings: Unpack[JobSettings]
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none; their numbers."""
        ...

    def named(self, job_ids: Collection[int], *, longest: int | None = None) -> tuple[JobView, ...]:
        """The existing ones of these jobs, by number."""
        ...


@runtime_checkable
class ClaimSource(Protocol):
    """A store whose queues the supervisor can use in the place of a worker."""

    def producer(self) -> Producer:
        """The queues, to put jobs into."""
        ...

    def open_claims(self, claimant: Claimant) -> Claims:
        """The queues as this worker uses them; nothing is connected yet."""
        ...


class Store(Protocol):
    """Persists the restart history. Only the persistence actor writes to it."""

    def load(self) -> Remembered:
        """The persisted state at start."""
        ...

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Persist all records in one transaction, or raise `StoreUnavailableError` and persist none.

        Returns the outcome for the jobs whose claims the records released.
        """
        ...

    @property
    def jobs(self) -> Jobs:
        """The queues in the same database."""
        ...

    @property
    def address(self) -> str | None:
        """The address of the queues for a worker, with the password; None if workers cannot reach them."""
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
        """The latest commands of operators, newest first."""
        ...

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """The events after a number, oldest first."""
        ...

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """The latest events about one worker, newest first; None: the ones about no worker."""
        ...

    def lives(self, component_id: str) -> Lives:
        """All lives of a worker that ended in a persisted death."""
        ...

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """What a worker used, newest first."""
        ...

    def runs(self, component_id: str, *, limit: int = 100) -> tuple[Run, ...]:
        """The runs of a scheduled worker, newest first."""
        ...

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """Delete some outdated rows; True if there may be more. Only the persistence actor calls it."""
        ...

    def keep_aside(self, records: Sequence[Record], run: str) -> str | None:
        """Keep what this run cannot write outside the database; where, or None if that is impossible."""
        ...

    def keep_mark(self, up_to: int) -> bool:
        """Keep outside the database, until the next commit, that generations up to this one may be used.

        `load` takes it into account. Returns False if it cannot be kept.
        """
        ...

    def take_back(self) -> int:
        """Write what the former run kept aside, once; how many records.

        Raises:
            StoreUnavailableError: nothing was written, and everything is still kept aside.
        """
        ...

    def alerts(self) -> tuple[Alert, ...]:
        """Every active alert, and the latest resolved ones, oldest first."""
        ...

    def close(self) -> None:
        """Close files and connections. May be called twice."""
        ...


class Runtime(Protocol):
    """Starts the actors, and provides their clock and timers."""

    @property
    def clock(self) -> Clock:
        """The runtime's clock."""
        ...

    @property
    def timers(self) -> Timers:
        """The runtime's timers."""
        ...

    def chance(self) -> float:
        """A number from 0 up to but not including 1."""
        ...

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor of this class."""
        ...
