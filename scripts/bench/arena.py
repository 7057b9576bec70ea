"""The memory that the benchmark shares with the measured processes: one slot per worker.

A file of 64-byte slots, each of eight native 64-bit words (a cache line, so that neighbours do not
slow each other down):

    0  starts      how many incarnations have run; a worker increments it last, when the rest is written
    1  pid         of the latest incarnation
    2  started_ns  the monotonic clock at the latest incarnation's first instruction
    3  seen_ns     the monotonic clock when the supervisor noticed the latest death
    4-7            unused

CLOCK_MONOTONIC is one clock for all processes of a machine, so the times are comparable. The killing
and the waiting happen here: the measured supervisor only has to restart its workers.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_WORDS = 8
_SLOT_BYTES = _WORDS * 8
_STARTS, _PID, _STARTED_NS, _SEEN_NS = range(4)

_LEAST_BYTES = 2 << 20
"""A smaller file would be hashed at each start, as part of the worker's code. Unused pages take no memory."""
_POLL_S = 0.000_1
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Slot:
    """The values of a slot at one moment."""

    starts: int
    pid: int
    started_ns: int
    seen_ns: int


@dataclass(frozen=True, slots=True)
class Revival:
    """One death and restart, in nanoseconds from the SIGKILL."""

    running_ns: int
    """Until the next incarnation's first instruction."""
    seen_ns: int
    """Until the supervisor noticed the death."""


class Arena:
    """The slots, and the killing of the workers that write into them."""

    def __init__(
        self, path: Path, slots: int, *, create: bool = True, deadline_s: float = _DEADLINE_S
    ) -> None:
        """Create the file with every slot empty, or open an existing one."""
        self.path = path
        self.slots = slots
        self._deadline_s = deadline_s
        if create:
            with path.open("wb") as file:
                file.truncate(max(_LEAST_BYTES, slots * _SLOT_BYTES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._map).cast("Q")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmap the memory and close the file."""
        self._words.release()
        self._map.close()
        self.path.unlink(missing_ok=True)

    def __getitem__(self, index: int) -> Slot:
        """The current values of the slot."""
        at = index * _WORDS
        starts = self._words[at + _STARTS]  # read first, as it is written last
        return Slot(starts, self._words[at + _PID], self._words[at + _STARTED_NS], self._words[at + _SEEN_NS])

    def mark_seen(self, index: int) -> None:
        """Record that the death was noticed now; for a supervisor written in Python."""
        self._words[index * _WORDS + _SEEN_NS] = time.monotonic_ns()

    def wait_until_all_run(self) -> None:
        """Return when every slot has had an incarnation."""
        deadline = time.monotonic() + self._deadline_s
        for index in range(self.slots):
            self._wait_for_start(index, after=0, deadline=deadline)

    def kill_and_wait(self, index: int, *, seen: bool = True) -> Revival:
        """Kill the slot's worker; return how long the supervisor took to notice and to restart it.

        Without `seen`, for a supervisor that does not record when it noticed the death.
        """
        before, pidfd = self._aim(index)
        try:
            killed_ns = time.monotonic_ns()
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
        self._wait_for_start(index, after=before.starts)
        # The time of the death may be recorded only after the worker has restarted.
        if seen:
            self._wait(lambda: self[index].seen_ns > killed_ns, index, "its death to be seen")
        after = self[index]
        return Revival(after.started_ns - killed_ns, after.seen_ns - killed_ns)

    def kill(self, index: int) -> int:
        """Kill the slot's worker, once it runs; return the time of the kill at once."""
        _, pidfd = self._aim(index)
        try:
            killed_ns = time.monotonic_ns()
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
        return killed_ns

    def kill_all_and_wait(self) -> int:
        """Kill every worker; return the nanoseconds from the first SIGKILL until the last one runs again."""
        aims = [self._aim(index) for index in range(self.slots)]
        try:
            killed_ns = time.monotonic_ns()
            for _, pidfd in aims:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            for _, pidfd in aims:
                os.close(pidfd)
        deadline = time.monotonic() + self._deadline_s
        for index, (before, _) in enumerate(aims):
            self._wait_for_start(index, after=before.starts, deadline=deadline)
        return max(self[index].started_ns for index in range(self.slots)) - killed_ns

    def kill_each_and_wait(self) -> None:
        """Kill one worker after the other, each when the one before it runs again."""
        for index in range(self.slots):
            self.kill_and_wait(index)

    def kill_leftovers(self) -> None:
        """Kill the workers that a supervisor left running."""
        for index in range(self.slots):
            pid = self[index].pid
            if pid and self._is_ours(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _wait_for_start(self, index: int, *, after: int, deadline: float | None = None) -> None:
        self._wait(lambda: self[index].starts > after, index, f"start number {after + 1}", deadline)

    def _aim(self, index: int) -> tuple[Slot, int]:
        """Return the slot and a pidfd of the incarnation that it describes.

        It waits until the incarnation has written its slot: an earlier kill would leave no trace, and
        the measurement would be wrong.
        """
        found: list[tuple[Slot, int]] = []

        def aimed() -> bool:
            slot = self[index]
            if not slot.starts:
                return False
            try:
                pidfd = os.pidfd_open(slot.pid)
            except ProcessLookupError:
                return False
            if not self._is_ours(slot.pid) or self[index] != slot:
                os.close(pidfd)
                return False
            found.append((slot, pidfd))
            return True

        self._wait(aimed, index, "a running incarnation")
        return found[0]

    def _is_ours(self, pid: int) -> bool:
        """Whether the process has this arena among its arguments or variables and is not a zombie."""
        path = os.fsencode(self.path)
        try:
            if path in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return True
            return b"BENCH_ARENA=" + path in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def _wait(
        self, condition: Callable[[], bool], index: int, what: str, deadline: float | None = None
    ) -> None:
        deadline = deadline or time.monotonic() + self._deadline_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"slot {index} waited {self._deadline_s} s for {what}: {self[index]}")
            time.sleep(_POLL_S)
