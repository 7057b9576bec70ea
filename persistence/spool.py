"""Records that could not be written at a stop: a file beside the database, taken in at the next start.

The first line names the file and the run that wrote it; every further line is a record. The file is
taken in within one transaction that also notes its name, so a start that is interrupted repeats nothing.
If another run has used the store since, only history is taken in: the settings and decisions of the other
run are newer. Its restarts count, unless the worker was reset after them. Of its events only those of
deaths are taken in, with new numbers: the other run has used theirs, and told what it did by its own.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import get_args
from uuid import uuid4

import msgspec
from loguru import logger
from msgspec.structs import replace

from rekindle.actors.deaths.death import Action
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.generations import GenerationEnded
from rekindle.actors.facts.jobs import CURRENT_RUN
from rekindle.actors.facts.records import (
    DeathAmended,
    DeathRecord,
    EndKept,
    EventRecord,
    FormerClaimsReleased,
    HealthMirrored,
    MirrorWiped,
    Record,
    ReleaseNoted,
    Remembered,
    RememberedWorker,
    RestartReset,
    UsageNoted,
)
from rekindle.actors.messages import WorkerDied
from rekindle.actors.messages.event_json import event_of

TAKEN = "taken_spool"
"""The setting that holds the name of the latest file that was taken in."""

MOST_FILES = 100

_OF_A_RUN = (FormerClaimsReleased, HealthMirrored, MirrorWiped)
"""Records that mean nothing after their run."""

_HISTORY = (DeathAmended, EndKept, ReleaseNoted, AuditEntry, UsageNoted)

_KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in get_args(Record)}


class _Header(msgspec.Struct):
    name: str
    run: str
    after: str | None = None
    """The run that had written last when this one began: this one may not have written anything."""

    def is_followed(self, meta: Mapping[str, str]) -> bool:
        """Whether another run has written to the store since."""
        return meta.get(CURRENT_RUN) not in (self.run, self.after)


class _Line(msgspec.Struct):
    kind: str
    record: msgspec.Raw
    in_doubt: bool = False
    """It belongs to a commit whose answer was lost."""


class LateDeath(msgspec.Struct, frozen=True):
    """A death that is written after another run has used the store."""

    death: DeathRecord
    event: EventRecord | None = None
    """What told it; it gets a new number. None: the events of a long outage were given up."""


Kept = Record | LateDeath


class Spool(msgspec.Struct, frozen=True):
    """What a file holds that is not in the store yet."""

    name: str
    records: tuple[Kept, ...]
    in_doubt: tuple[Kept, ...]
    """The records of a commit whose answer was lost: they may be stored."""


class DamagedSpoolError(Exception):
    """The file is not one of records."""


def write_spool(
    path: Path, records: Iterable[Record], run: str, in_doubt: Iterable[Kept] = (), after: str | None = None
) -> None:
    """Write the records of a run to the file, completely or not at all.

    Args:
        path: the file.
        records: what could not be written.
        run: whose they are.
        in_doubt: those of a commit whose answer was lost.
        after: the run that had written last when this one began.

    Raises:
        OSError: the file cannot be written.
    """
    doubtful = {id(record) for record in in_doubt}
    lines = [msgspec.json.encode(_Header(uuid4().hex, run, after))]
    lines += [
        msgspec.json.encode(_Line(type(record).__name__, _encoded(record), id(record) in doubtful))
        for record in records
        if not isinstance(record, _OF_A_RUN)
    ]
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)  # of a stop that was interrupted; a link is not followed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o600), "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync_folder(path.parent)


def _encoded(record: Record) -> msgspec.Raw:
    """The record as JSON; half a surrogate pair, which JSON has no bytes for, becomes a question mark."""
    try:
        return msgspec.Raw(msgspec.json.encode(record))
    except UnicodeError:
        text = json.dumps(msgspec.to_builtins(record), ensure_ascii=False)
        return msgspec.Raw(text.encode("utf-8", "replace"))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_spool(path: Path, meta: Mapping[str, str]) -> Spool | None:
    """The records to commit; None if the file was taken in already.

    Raises:
        OSError: the file cannot be read.
        DamagedSpoolError: it does not begin as a file of records.
    """
    header, lines = _header_and_lines(path)
    if meta.get(TAKEN) == header.name:
        return None
    decoded = _decoded(path, lines)
    if header.is_followed(meta):
        decoded = _late(decoded)
    records = tuple(decoded)
    in_doubt = tuple(record for record, doubtful in records if doubtful)
    return Spool(header.name, tuple(record for record, _ in records), in_doubt)


class Waiting(msgspec.Struct):
    """What the files say of workers that are not in the store yet."""

    ends: dict[str, int] = msgspec.field(default_factory=dict)
    """The latest process of each worker that has ended."""
    failures: dict[str, DeathRecord] = msgspec.field(default_factory=dict)
    """The deaths after which workers were given up."""
    last_event_id: int = 0

    def note(self, record: Kept) -> None:
        """Note what a record says, if no other run has written since."""
        match record:
            case DeathRecord(component_id=id_, action=Action.MARK_FAILED):
                self.failures[id_] = record
            case RestartReset(component_id=id_):
                self.failures.pop(id_, None)
            case EventRecord(id=number):
                self.last_event_id = max(number, self.last_event_id)
            case _:
                pass

    def added_to(self, found: Remembered) -> Remembered:
        """What the store remembers, with this."""
        lost = tuple(life for life in found.lost if life.generation > self.ends.get(life.component_id, 0))
        failed = {
            id_: replace(
                found.workers.get(id_, RememberedWorker()),
                failed_at_wall_ms=death.died_at_wall_ms,
                failure_reason=death.reason,
            )
            for id_, death in self.failures.items()
        }
        workers = MappingProxyType({**found.workers, **failed})
        last_id = max(found.last_event_id, self.last_event_id)
        return replace(found, lost=lost, workers=workers, last_event_id=last_id)


def waiting_in(files: Iterable[Path], meta: Mapping[str, str]) -> Waiting:
    """What the files say that can be read; to take in the others says why it cannot."""
    waiting = Waiting()
    for file in files:
        try:
            header, lines = _header_and_lines(file)
        except (OSError, DamagedSpoolError):
            continue
        for record, _ in () if meta.get(TAKEN) == header.name else _decoded(file, lines):
            if isinstance(record, DeathRecord | GenerationEnded):
                ended = max(record.generation, waiting.ends.get(record.component_id, 0))
                waiting.ends[record.component_id] = ended
            if not header.is_followed(meta):
                waiting.note(record)
    return waiting


def _late(decoded: Iterable[tuple[Kept, bool]]) -> Iterator[tuple[Kept, bool]]:
    """What counts after another run has used the store."""
    kept = tuple(decoded)
    told = {_incarnation(record): record for record, _ in kept if isinstance(record, EventRecord)}
    for record, doubtful in kept:
        if isinstance(record, DeathRecord):
            yield LateDeath(record, told.get((record.component_id, record.generation))), doubtful
        elif isinstance(record, _HISTORY):
            yield record, doubtful


def _incarnation(record: EventRecord) -> tuple[str, int] | None:
    """Whose death an event tells; None if it tells something else."""
    event = event_of(record)
    return (event.component_id, event.generation) if isinstance(event, WorkerDied) else None


def _header_and_lines(path: Path) -> tuple[_Header, list[bytes]]:
    first, *lines = _content(path).splitlines() or [b""]
    try:
        return msgspec.json.decode(first, type=_Header), lines
    except msgspec.DecodeError as error:
        raise DamagedSpoolError(str(error)) from error


def _content(path: Path) -> bytes:
    """The content of a regular file of our own.

    Raises:
        OSError: it is something else, or cannot be read.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
            raise OSError(errno.EPERM, "not a regular file of this user", str(path))
        return file.read()


def put_damaged_away(path: Path) -> Path:
    """Rename a file that cannot be taken in, as evidence; its new name."""
    named = path.with_name(path.name + ".damaged")
    return path.replace(free_spool(named) or named)


def spools_at(path: Path) -> list[Path]:
    """The files under this name, in the order in which they were written."""
    return [file for number in range(MOST_FILES) if (file := _numbered(path, number)).exists()]


def free_spool(path: Path) -> Path | None:
    """The name for the next file, if one is free: a file that could not be taken in is never overwritten."""
    names = (_numbered(path, number) for number in range(MOST_FILES))
    return next((name for name in names if not name.exists()), None)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[Kept, bool]]:
    """The records of the lines, and whether each is in doubt; others are logged and left out."""
    for line in lines:
        try:
            found = msgspec.json.decode(line, type=_Line)
            yield msgspec.json.decode(found.record, type=_KINDS[found.kind]), found.in_doubt
        except (msgspec.DecodeError, KeyError) as error:
            logger.error(
                "store: a line of {} is not a record and is left out: {}: {!r}", path, error, line[:500]
            )
