"""The memory that the benchmark shares with what it measures: one slot a worker.

A file of 64-byte slots, each of eight native 64-bit words (a cache line, so that neighbours do not
slow each other down):

    0  starts      how many incarnations have run; a worker raises it last, when the rest is written
    1  pid         of the latest incarnation
    2  started_ns  the monotonic clock at the latest incarnation's first instruction
    3  seen_ns     the monotonic clock when whoever supervises saw the latest death
    4-7            unused

CLOCK_MONOTONIC is one clock for all processes of a machine, so the times compare. Both the killing
and the waiting are done from here: whatever is measured only has to bring its workers back.
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

_POLL_S = 0.000_1
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Slot:
    """What a slot said at one moment."""

    starts: int
    pid: int
    started_ns: int
    seen_ns: int


@dataclass(frozen=True, slots=True)
class Revival:
    """One death and return, in nanoseconds from the SIGKILL."""

    running_ns: int
    """Until the next incarnation's first instruction."""
    seen_ns: int
    """Until whoever supervises saw the death."""


class Arena:
    """The slots, and the killing of the workers that write into them."""

    def __init__(self, path: Path, slots: int, *, anew: bool = True, deadline_s: float = _DEADLINE_S) -> None:
        """Make the file anew, with every slot empty, or share one that somebody else made."""
        self.path = path
        self.slots = slots
        self._deadline_s = deadline_s
        if anew:
            path.write_bytes(bytes(slots * _SLOT_BYTES))
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
        """Give the memory and the file back."""
        self._words.release()
        self._map.close()
        self.path.unlink(missing_ok=True)

    def __getitem__(self, index: int) -> Slot:
        """What the slot says now."""
        at = index * _WORDS
        starts = self._words[at + _STARTS]  # read first, as it is written last
        return Slot(starts, self._words[at + _PID], self._words[at + _STARTED_NS], self._words[at + _SEEN_NS])

    def mark_seen(self, index: int) -> None:
        """Note that the slot's death is known now; for a supervisor written in Python."""
        self._words[index * _WORDS + _SEEN_NS] = time.monotonic_ns()

    def wait_until_all_run(self) -> None:
        """Return when every slot has had an incarnation."""
        for index in range(self.slots):
            self._wait_for_start(index, after=0)

    def kill_and_wait(self, index: int) -> Revival:
        """Kill the slot's worker; return how long it took to be seen and to be back."""
        before, pidfd = self._aim(index)
        try:
            killed_ns = time.monotonic_ns()
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
        self._wait_for_start(index, after=before.starts)
        # The death may be known to the one who stamps it only after the worker is back.
        self._wait(lambda: self[index].seen_ns > killed_ns, index, "its death to be seen")
        after = self[index]
        return Revival(after.started_ns - killed_ns, after.seen_ns - killed_ns)

    def kill(self, index: int) -> int:
        """Kill the slot's worker, once it runs; return when, and wait for nothing."""
        _, pidfd = self._aim(index)
        try:
            killed_ns = time.monotonic_ns()
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
        return killed_ns

    def kill_all_and_wait(self) -> int:
        """Kill every worker; return the nanoseconds from the first SIGKILL until the last one is back."""
        aims = [self._aim(index) for index in range(self.slots)]
        try:
            killed_ns = time.monotonic_ns()
            for _, pidfd in aims:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            for _, pidfd in aims:
                os.close(pidfd)
        for index, (before, _) in enumerate(aims):
            self._wait_for_start(index, after=before.starts)
        return max(self[index].started_ns for index in range(self.slots)) - killed_ns

    def kill_each_and_wait(self) -> None:
        """Kill one worker after the other, each when the one before it is back."""
        for index in range(self.slots):
            self.kill_and_wait(index)

    def kill_leftovers(self) -> None:
        """Kill what still runs when its supervisor has ended without doing so."""
        for index in range(self.slots):
            pid = self[index].pid
            if pid and self._is_ours(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _wait_for_start(self, index: int, *, after: int) -> None:
        self._wait(lambda: self[index].starts > after, index, f"start number {after + 1}")

    def _aim(self, index: int) -> tuple[Slot, int]:
        """Return the slot and a pidfd of the very incarnation it speaks of.

        An incarnation that has not written its slot yet is waited for: killed earlier it would leave
        no trace, and the measurement would be of something else.
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
        """Say whether the process has this arena among its arguments and is no zombie."""
        try:
            return os.fsencode(self.path) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False

    def _wait(self, condition: Callable[[], bool], index: int, what: str) -> None:
        deadline = time.monotonic() + self._deadline_s
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"slot {index} waited {self._deadline_s} s for {what}: {self[index]}")
            time.sleep(_POLL_S)
