"""One log file: what waits to be written to it, and its descriptor. Written by one thread."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable

import msgspec

from ...spec.policies.log_policy import LogFormat, LogPolicy
from .log_folder import LogFolder, folder_of
from .log_lines import NOTICE, stamp, written

BATCH = 1024 * 1024
"""How much is written at once; other files have their turn in between."""


class Piece(msgspec.Struct, frozen=True):
    """Some whole lines of one stream of a process."""

    worker: str
    generation: int
    stream: str
    at_wall_ms: int
    data: bytes

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return len(self.data)

    def text(self, format_: LogFormat) -> bytes:
        """The lines as they stand in the file."""
        at = stamp(self.at_wall_ms)
        return written(format_, self.worker, self.generation, self.stream, at, self.data)


class Gap(msgspec.Struct):
    """Lines that were dropped."""

    worker: str
    generation: int
    reason: str
    lines: int = 0
    size: int = 0

    def text(self, format_: LogFormat) -> bytes:
        """The line that stands for them in the file."""
        count = "1 line was dropped" if self.lines == 1 else f"{self.lines} lines were dropped"
        data = f"{count}: {self.reason}\n".encode()
        return written(format_, self.worker, self.generation, NOTICE, stamp(int(time.time() * 1000)), data)


Rotated = Callable[[str, str, LogPolicy], None]
"""Called with the path of a log file, the name of a rotated file of it, and its policy."""


class LogFile:
    """A file that is appended to and rotated.

    The attributes without an underscore belong to the writer's lock, the methods to its thread.
    """

    def __init__(self, path: str, policy: LogPolicy, on_rotated: Rotated) -> None:
        self.path = path
        self.policy = policy
        self.workers: set[str] = set()
        """Whose lines it has."""
        self.pieces: deque[Piece | Gap] = deque()
        self.waiting = 0
        """How many bytes wait."""
        self.dropped = 0
        """How many lines were dropped since the interruption began."""
        self.reason: str | None = None
        """Why it is interrupted; None: it is not."""
        self.retry_at = 0.0
        self._on_rotated = on_rotated
        self._descriptor = -1
        self._size = 0
        self._unwritten = b""
        """The rest of a batch that was written in part, as on a full disk."""
        self._is_known = False
        """Whether what a former supervisor left has been looked for."""

    @property
    def is_behind(self) -> bool:
        """Whether the rest of a batch has to be written before the next one."""
        return bool(self._unwritten)

    def write(self, pieces: list[Piece | Gap]) -> None:
        """Write some pieces.

        Raises:
            OSError: not all was written; call it again, without these pieces, to write the rest.
        """
        self._unwritten += b"".join([piece.text(self.policy.format) for piece in pieces])
        if self._descriptor == -1:
            self._open()
        self._rotate_if_full()
        self._write()

    def close(self) -> None:
        """Close the file; the next line opens the one that has its name then."""
        if self._descriptor != -1:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        with folder_of(self.path) as folder:
            self._descriptor = folder.opened(self.policy.permissions)
            if not self._is_known:
                self._is_known = True
                self._tidy(folder)
                self._end_line()
        self._size = os.fstat(self._descriptor).st_size

    def _tidy(self, folder: LogFolder) -> None:
        """Finish what a former supervisor began."""
        for part in folder.parts():
            folder.remove(part)
        for name, is_compressed in folder.rotated().items():
            if not is_compressed:
                self._on_rotated(self.path, name, self.policy)

    def _end_line(self) -> None:
        """End a line that a killed supervisor has begun."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            self._unwritten = b"\n" + self._unwritten

    def _write(self) -> None:
        while self._unwritten:
            count = os.write(self._descriptor, self._unwritten)
            self._unwritten = self._unwritten[count:]
            self._size += count

    def _rotate_if_full(self) -> None:
        most = self.policy.max_bytes
        if most is None or not self._size or self._size + len(self._unwritten) <= most:
            return
        self._size = os.fstat(self._descriptor).st_size  # another program may have cut it
        if self._size and self._size + len(self._unwritten) > most:
            self._rotate()

    def _rotate(self) -> None:
        now = time.time()
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now)) + f"-{int(now * 1000) % 1000:03}"
        with folder_of(self.path) as folder:
            if folder.has(os.fstat(self._descriptor)):
                name = folder.rotate(at)
                self._remove_oldest(folder)
                self._on_rotated(self.path, name, self.policy)
        self.close()
        self._open()

    def _remove_oldest(self, folder: LogFolder) -> None:
        rotated = list(folder.rotated())
        for name in rotated[: max(0, len(rotated) - self.policy.keep)]:
            for each in (name, f"{name}.gz"):
                folder.remove(each)
