"""Messages to the persistence actor and to its store writer."""

from __future__ import annotations

import msgspec

from ...errors import StoreError
from ...facts.jobs import JobSettled
from ...facts.records import Record
from ...ports import Receiver
from .. import Event
from .to_broker import Notice
from .to_monitor import Attend


class Persist(msgspec.Struct, frozen=True):
    """Write these items in one transaction as soon as possible; number and publish the events."""

    items: tuple[Record | Event, ...]
    is_urgent: bool = True
    """False: like an event that comes without a record, they wait a moment for others to join."""


class CommitBatch(msgspec.Struct, frozen=True):
    """From the actor to itself: commit everything that was queued before this message."""


class CommitDue(msgspec.Struct, frozen=True):
    """Timer: events that came without a record have waited long enough for one."""


class RetryCommit(msgspec.Struct, frozen=True):
    """Timer: retry the commit that failed."""

    attempt: int


class PublishOverdue(msgspec.Struct, frozen=True):
    """Timer: the store may not have answered in time; publish from memory."""


class Flush(msgspec.Struct, frozen=True):
    """Write everything now, as far as possible, and reply with `Flushed`."""

    reply_to: Receiver


class Flushed(msgspec.Struct, frozen=True):
    """How many records could not be written, and all that waits, with the events."""

    unsaved: int
    is_final: bool = False
    """Whether they will never be written: another supervisor owns the store."""
    left: tuple[Record, ...] = ()
    is_unavailable: bool = False
    """Whether the store refused the commit; what is left otherwise arrived while it was written."""
    number: int = 0
    """Of the latest commit: the same as before if there was nothing to write."""


class FlushForUpgrade(msgspec.Struct, frozen=True):
    """Write nothing more, and reply with a `Flushed` of all that is not known to be stored.

    The commit that is under way, if the store does not answer, is included: it may still happen.
    """

    reply_to: Receiver


class Commit(msgspec.Struct, frozen=True):
    """To the store writer: write these records in one transaction."""

    number: int
    records: tuple[Record, ...]


class ReportCommit(msgspec.Struct, frozen=True):
    """To the store writer: repeat the latest result."""


class PruneDue(msgspec.Struct, frozen=True):
    """Timer of the store writer: some rows may be older than the retention allows."""


class Committed(msgspec.Struct, frozen=True):
    """The records of this commit are in the store."""

    number: int
    settled: tuple[JobSettled, ...] = ()
    """The outcome of the jobs whose claims were released."""


class CommitFailed(msgspec.Struct, frozen=True):
    """None of the records of this commit is in the store."""

    number: int
    error: StoreError


PersistenceMessage = (
    Attend
    | Persist
    | CommitBatch
    | CommitDue
    | RetryCommit
    | PublishOverdue
    | Committed
    | CommitFailed
    | Flush
    | FlushForUpgrade
    | Notice
    | Event
)

WriterMessage = Attend | Commit | ReportCommit | PruneDue
