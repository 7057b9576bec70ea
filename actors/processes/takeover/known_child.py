"""What a supervisor hands over of each process: what it has read and sent, and its descriptors."""

from __future__ import annotations

import msgspec

from ...deaths.evidence import Fingerprint
from ..watch.transcript import OutputLine


class KnownOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was read of the output of a process."""

    lines: tuple[OutputLine, ...] = ()
    partial: dict[str, bytes] = {}
    """The beginning of a line of each stream."""
    in_file: dict[str, bytes] = {}
    """The same for its log file, which has longer lines."""
    dropped: int = 0


class KnownChild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One process."""

    component_id: str
    generation: int
    pid: int
    began: float
    start: int = 0
    start_note: str = ""
    output: KnownOutput = KnownOutput()
    frame: bytes = b""
    """The beginning of a frame."""
    refused: int = 0
    """How many frames were refused."""
    violation: str | None = None
    last_signal: int | None = None
    stack_signal: int | None = None
    oom_kills: int | None = None
    fingerprint: Fingerprint = Fingerprint()
    notify_address: str | None = None
    cgroup: str | None = None
    counts_memory: bool = False


class KnownTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The process table."""

    mark: str
    children: tuple[KnownChild, ...] = ()
    newest_line: int = 0
    """The number of the newest line of output of all workers."""
    lines: tuple[OutputLine, ...] = ()
    marks: dict[str, tuple[int, int]] = {}
    """Of each worker: its number, and that of its latest start."""
    cgroup: str | None = None
    """The control group of all workers."""
    guardian: int | None = None
    """The pid of the guardian."""
