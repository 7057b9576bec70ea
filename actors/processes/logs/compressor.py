"""Compresses rotated log files in the background, at a low priority."""

from __future__ import annotations

import gzip
import os
import threading
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from loguru import logger

from ...runtime.lanes import Call
from ...spec.policies.log_policy import LogPolicy
from .log_folder import PART, folder_of

CHUNK = 1024 * 1024
LEVEL = 3
"""Log files shrink to a tenth at any level, and this one is three times as fast as the default."""
NICENESS = 10


class Compressor:
    """One thread, which begins with the first rotated file. For any thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._is_ending = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, path: str, name: str, policy: LogPolicy) -> None:
        """Compress a rotated file of that log file, if its policy says so."""
        if policy.compress:
            self._post(partial(self._compress, path, name, policy.permissions))

    def close(self, timeout_s: float) -> bool:
        """End the thread; a file that it is at is compressed by the next supervisor."""
        self._is_ending = True
        self._calls.put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _post(self, call: Call) -> None:
        self._calls.put(call)
        with self._starting:
            if self._thread is None and not self._is_ending:
                self._thread = threading.Thread(target=self._run, name="rekindle-gzip", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while (call := self._calls.get()) is not None and not self._is_ending:
            try:
                call()
            except FileNotFoundError:
                pass  # later rotations have already deleted it
            except Exception as error:  # noqa: BLE001  # the next file may work
                logger.warning("logs: a rotated file is not compressed: {}", str(error))

    def _compress(self, path: str, name: str, mode: int) -> None:
        with folder_of(path) as folder:
            source = folder.source(name)
            part = f"{name}.gz{PART}"
            try:
                if not self._copy(source, folder.target(part, mode)):
                    folder.remove(part)
                    return
                folder.replace(f"{name}.gz", part)
                folder.remove(name)
            finally:
                os.close(source)

    def _copy(self, source: int, target: int) -> bool:
        """Write the file compressed, with the same time; False if the supervisor ends meanwhile."""
        found = os.fstat(source)
        with open(target, "wb") as raw:
            with gzip.GzipFile("", "wb", LEVEL, raw, mtime=found.st_mtime) as compressed:
                while data := os.read(source, CHUNK):
                    if self._is_ending:
                        return False
                    compressed.write(data)
            raw.flush()
            os.utime(raw.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        return True
