"""One real child process: its descriptors, its last words, its end. Used by the watcher only."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress

from loguru import logger

from .channel import FrameReader
from .deaths import Exit
from .frames import Frame
from .output import OutputTail
from .ports import Control, SpawnRequest
from .spawning import Spawned

CHUNK = 64 * 1024
OUTPUT_CHUNK = 4 * 1024
"""How much output is taken at a time. Every line costs as much as a log record does, and the
deaths of the others are not to wait for a flood."""
LAST_CHUNKS = 16
"""How much is still read of a stream whose process has ended; a grandchild may go on writing."""

CONDITIONS = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a disk",
    "T": "stopped",
    "t": "traced",
    "Z": "ended",
}


class Child:
    """One process of ours, from its spawn to its reaping."""

    def __init__(self, request: SpawnRequest, spawned: Spawned) -> None:
        self.request = request
        self.id = request.spec.id
        self.generation = request.generation
        self.pid = spawned.pid
        self.pidfd = spawned.pidfd
        self.channel = spawned.channel
        self.streams = {spawned.stdout: "out", spawned.stderr: "err"}
        self.tail = OutputTail()
        self.exit: Exit | None = None
        self._reader = FrameReader(request.spec.health.max_bad_frames)
        self._violation_told = False

    # ── what it says ─────────────────────────────────────────────────────────────────────

    def read_frames(self, now: float) -> tuple[list[Frame], bool]:
        """What the channel holds, and whether it is still open."""
        assert self.channel is not None
        try:
            data = self.channel.recv(CHUNK)
        except BlockingIOError:
            return [], True
        except OSError:
            data = b""
        if not data:
            return list(self._reader.finish(now)), False
        return list(self._reader.feed(data, now)), True

    def new_violation(self) -> str | None:
        """Why it must be ended, said once."""
        if self._reader.violation is None or self._violation_told:
            return None
        self._violation_told = True
        return self._reader.violation

    def read_output(self, stream: int) -> bool:
        """Take what a stream holds; False once it has ended."""
        try:
            data = os.read(stream, OUTPUT_CHUNK)
        except BlockingIOError:
            return True
        self._pass_on(self.tail.feed(stream, data), self.streams[stream])
        return bool(data)

    def drain_output(self) -> None:
        """Take the last words of a process that has ended."""
        for stream in tuple(self.streams):
            for _ in range(LAST_CHUNKS):
                try:
                    data = os.read(stream, OUTPUT_CHUNK)
                except BlockingIOError:
                    break
                if not data:
                    break
                self._pass_on(self.tail.feed(stream, data), self.streams[stream])
        self._pass_on(self.tail.finish(), "out")

    def _pass_on(self, lines: Iterator[str], name: str) -> None:
        for line in lines:
            # The text is an argument, never the template: a worker may write braces.
            logger.bind(worker=self.id, generation=self.generation, stream=name).info(
                "{} {} | {}", self.id, name, line
            )

    # ── what is done to it ───────────────────────────────────────────────────────────────

    def send(self, control: Control) -> None:
        """Tell it something; a worker that does not read misses it."""
        if self.channel is not None:
            with suppress(OSError):
                # A host that wants SIGPIPE must not die of a worker that has just ended.
                self.channel.send(b'{"do": "%s"}\n' % control.value.encode(), socket.MSG_NOSIGNAL)

    def signal(self, signum: int) -> None:
        """Send it a signal; SIGKILL reaches the whole group."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)
        if signum == signal.SIGKILL:
            self._kill_group()

    def reap(self) -> Exit:
        """Take the status of the ended process, after ending what is left of its group.

        While the zombie is there its number cannot stand for another group.
        """
        self._kill_group()
        return self._wait()

    def _wait(self) -> Exit:
        try:
            if self.pidfd == -1:
                return Exit()
            found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        except ChildProcessError:
            return Exit()
        if found is None:
            return Exit()
        if found.si_code == os.CLD_EXITED:
            return Exit(code=found.si_status)
        return Exit(signal=found.si_status)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def condition(self) -> str:
        """What the kernel says that it does."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                letter = stat.read().rpartition(b")")[2].split()[0].decode()
        except (OSError, IndexError):
            return "gone"
        return CONDITIONS.get(letter, letter)

    # ── descriptors ──────────────────────────────────────────────────────────────────────

    def descriptors(self) -> list[int]:
        """Everything of it that is open on our side."""
        channel = [] if self.channel is None else [self.channel.fileno()]
        pidfd = [] if self.pidfd == -1 else [self.pidfd]
        return [*pidfd, *self.streams, *channel]

    def close_stream(self, stream: int) -> None:
        """Let go of an output stream that has ended."""
        del self.streams[stream]
        os.close(stream)

    def close(self) -> None:
        """Let go of every descriptor."""
        for stream in self.streams:
            os.close(stream)
        self.streams = {}
        if self.pidfd != -1:
            os.close(self.pidfd)
        if self.channel is not None:
            self.channel.close()
        self.channel, self.pidfd = None, -1
