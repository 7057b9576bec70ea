"""The thread that writes the log files of all workers.

Neither the thread that watches the processes nor the one that reads their output ever waits for a disk.
Lines wait in memory, up to a limit. While the disk works, the output of a worker that writes faster is read
more slowly, as if it wrote to the file itself. If a write fails, or takes too long, lines above the limit are
dropped and counted; the file says how many are missing as soon as it can be written again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from loguru import logger

from ...messages import LogInterrupted, LogResumed
from ...spec.policies.log_policy import filled_in
from ...spec.worker_spec import WorkerSpec
from .compressor import Compressor
from .log_file import BATCH, Gap, LogFile, Piece
from .worker_log import WorkerLog

MOST_WAITING = 4 * 1024 * 1024
"""How many bytes may wait for one file."""
MOST_IN_ALL = 64 * 1024 * 1024
"""How many bytes may wait for all files."""
STUCK_S = 0.5
"""A disk that takes longer for one batch does not hold up a worker: what it writes is dropped instead."""
RETRY_S = 1.0
"""How soon a file that could not be written is tried again."""
CLOSE_S = 2.0
"""How long the end waits for the last lines; a disk may hang."""
STUCK = "the disk does not answer"

Announce = Callable[[LogInterrupted | LogResumed], object]


class LogWriter:
    """Writes log files. `reopen`, `close` and what a `WorkerLog` calls are for any thread."""

    def __init__(self) -> None:
        self.announce: Announce = lambda _event: None
        """Called when a file is interrupted or continues; it must not block."""
        self._files: dict[str, LogFile] = {}
        self._queued: dict[LogFile, None] = {}
        """The files with something to do, in turn."""
        self._waiting = 0
        self._reopen: set[LogFile] = set()
        self._forgotten: set[LogFile] = set()
        self._changed = threading.Condition()
        self._busy_since: float | None = None
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self._compressor = Compressor()

    # ── on any thread ────────────────────────────────────────────────────────────────────

    def log_of(self, spec: WorkerSpec, generation: int) -> WorkerLog | None:
        """Where the output of a process is written; None if its worker has no log file."""
        if spec.log is None or spec.log.file is None:
            return None
        path = log_path(spec)
        with self._changed:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = LogFile(path, spec.log, self._compressor.add)
            file.policy = spec.log
            file.workers.add(spec.id)
            self._forgotten.discard(file)
            self._begin()
        return WorkerLog(self, file, spec.id, generation)

    def add(self, file: LogFile, piece: Piece) -> None:
        """Have some lines written, or drop them."""
        with self._changed:
            if self._has_room(file):
                file.pieces.append(piece)
                file.waiting += len(piece.data)
                self._waiting += len(piece.data)
                self._queue(file)
                return
            news = self._interrupted(file, STUCK)
            self._drop(file, piece)
        self._tell(news)

    def is_full(self, file: LogFile) -> bool:
        """Whether the worker has to wait for the disk, which works."""
        return file.waiting >= MOST_WAITING and file.reason is None and not self._is_stuck

    def forget(self, component_id: str) -> None:
        """Close the file of a removed worker, if no other has it."""
        with self._changed:
            for file in self._files.values():
                if component_id in file.workers:
                    file.workers.discard(component_id)
                    if not file.workers:
                        self._forgotten.add(file)
                        self._queue(file)

    def reopen(self) -> None:
        """Open all files again by their names, since another program has renamed them."""
        with self._changed:
            self._reopen.update(self._files.values())
            for file in self._files.values():
                self._queue(file)

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Write what waits and end the threads; whether that succeeded in time."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        deadline = time.monotonic() + timeout_s
        if self._thread is not None:
            self._thread.join(timeout_s)
        ended = self._thread is None or not self._thread.is_alive()
        return self._compressor.close(max(0.0, deadline - time.monotonic())) and ended

    @property
    def _is_stuck(self) -> bool:
        since = self._busy_since
        return since is not None and time.monotonic() - since > STUCK_S

    def _has_room(self, file: LogFile) -> bool:
        is_small = file.waiting < MOST_IN_ALL // len(self._files)
        # The last output of a process is read at once, and must not be lost because a flood waits before it.
        works = file.reason is None and not self._is_stuck
        most = MOST_WAITING * 2 if works else MOST_WAITING
        return file.waiting < most and (is_small or self._waiting < MOST_IN_ALL)

    def _drop(self, file: LogFile, piece: Piece) -> None:
        """Leave a gap behind what waits, or let the one that is there grow."""
        last = file.pieces[-1] if file.pieces else None
        if not isinstance(last, Gap):
            last = Gap(piece.worker, piece.generation, file.reason or STUCK)
            file.pieces.append(last)
            self._queue(file)
        lines = piece.data.count(b"\n")
        last.lines += lines
        file.dropped += lines

    def _queue(self, file: LogFile) -> None:
        self._queued[file] = None
        self._changed.notify()

    def _begin(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="rekindle-logs", daemon=True)
            with suppress(
                RuntimeError
            ):  # no thread can be started now; the next start of a worker tries again
                thread.start()
                self._thread = thread

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while (file := self._next()) is not None:
            self._serve(file)
        for file in self._files.values():
            file.close()

    def _next(self) -> LogFile | None:
        """The file whose turn it is; None at the end."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = next((file for file in self._queued if self._is_ending or file.retry_at <= now), None)
                if due is not None:
                    del self._queued[due]
                    return due
                if self._is_ending:
                    return None
                soonest = min((file.retry_at for file in self._queued), default=None)
                self._changed.wait(None if soonest is None else soonest - now)

    def _serve(self, file: LogFile) -> None:
        with self._changed:
            pieces = [] if file.is_behind else _batch(file)
            must_reopen = file in self._reopen
            self._reopen.discard(file)
        self._busy_since = time.monotonic()
        try:
            if must_reopen:
                file.close()
            file.write(pieces)
        except OSError as error:
            self._failed(file, pieces, error.strerror or str(error))
        except Exception as error:  # noqa: BLE001  # the other files are still written
            logger.opt(exception=error).error("logs: cannot write {}", file.path)
            self._failed(file, pieces, str(error))
        else:
            self._succeeded(file, pieces)
        finally:
            self._busy_since = None

    def _succeeded(self, file: LogFile, pieces: list[Piece | Gap]) -> None:
        with self._changed:
            self._settle(file, pieces)
            news = None
            if file.reason is not None and not any(isinstance(piece, Gap) for piece in file.pieces):
                news = self._resumed(file)
            if file.pieces:
                self._queue(file)
            elif file in self._forgotten:
                self._forgotten.discard(file)
                del self._files[file.path]
                file.close()
        self._tell(news)

    def _failed(self, file: LogFile, pieces: list[Piece | Gap], reason: str) -> None:
        file.close()
        with self._changed:
            self._settle(file, pieces)
            file.retry_at = time.monotonic() + RETRY_S
            news = self._interrupted(file, reason)
            if not self._is_ending:
                self._queue(file)
        self._tell(news)

    def _settle(self, file: LogFile, pieces: list[Piece | Gap]) -> None:
        size = sum(piece.size for piece in pieces)
        file.waiting -= size
        self._waiting -= size

    def _interrupted(self, file: LogFile, reason: str) -> LogInterrupted | None:
        """The news of an interruption, once."""
        if file.reason is not None:
            return None
        file.reason = reason
        return LogInterrupted(file.path, reason, tuple(sorted(file.workers)))

    def _resumed(self, file: LogFile) -> LogResumed:
        dropped, file.dropped, file.reason = file.dropped, 0, None
        return LogResumed(file.path, dropped, sum(each.reason is not None for each in self._files.values()))

    def _tell(self, news: LogInterrupted | LogResumed | None) -> None:
        if news is not None:
            self.announce(news)


def log_path(spec: WorkerSpec) -> str:
    """The absolute path of a worker's log file."""
    assert spec.log is not None
    assert spec.log.file is not None
    return os.path.abspath(filled_in(spec.log.file, spec.id, spec.group))


def _batch(file: LogFile) -> list[Piece | Gap]:
    pieces: list[Piece | Gap] = []
    size = 0
    while file.pieces and size < BATCH:
        pieces.append(file.pieces.popleft())
        size += pieces[-1].size
    return pieces
