"""Messages to the persistence actor."""

from __future__ import annotations

import msgspec

from ...facts.records import HealthMirrored, Record
from ...ports import Receiver
from .. import Event
from .to_monitor import Attend


class Keep(msgspec.Struct, frozen=True):
    """Write this record as soon as possible."""

    record: Record


class KeepTogether(msgspec.Struct, frozen=True):
    """Write these in one transaction. The Broker numbers the events among them on their way."""

    items: tuple[Record | Event, ...]


class CommitBatch(msgspec.Struct, frozen=True):
    """To itself: commit all that has been queued until now."""


class RetryCommit(msgspec.Struct, frozen=True):
    """Timer: try again what could not be written."""

    attempt: int


class PruneDue(msgspec.Struct, frozen=True):
    """Timer: something may have grown too old to be kept."""


class KeepMirror(msgspec.Struct, frozen=True):
    """Write these states of health when it is convenient; the latest one of a worker counts."""

    states: tuple[HealthMirrored, ...]


class TellKept(msgspec.Struct, frozen=True):
    """To itself: a restart is on its way by now, so let everyone hear what led to it."""


class Flush(msgspec.Struct, frozen=True):
    """Write everything now, as far as possible, and answer with `Flushed`."""

    reply_to: Receiver


class Flushed(msgspec.Struct, frozen=True):
    """What could not be written."""

    unsaved: int


PersistenceMessage = (
    Attend | Keep | KeepTogether | CommitBatch | RetryCommit | PruneDue | KeepMirror | TellKept | Flush
)
