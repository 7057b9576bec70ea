"""One real child process: its descriptors, its output, its end. Used on the loop after its construction."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress

from loguru import logger

from ..deaths.death import Exit
from ..deaths.evidence import Fingerprint, Line, Remains, Spent
from ..facts.frames import Frame
from ..ports import Control, SpawnRequest
from .oom_kills import OomKills
from .spawn.pipes import CRASH_DUMP_SIZE
from .spawn.spawner import Spawned
from .watch.frame_reader import FrameReader
from .watch.output_tail import OutputTail, shown
from .watch.reaper import reap
from .watch.transcript import OutputLine, Transcript

CHUNK = 64 * 1024
OUTPUT_CHUNK = 4 * 1024
"""How much output is read at a time. Every line becomes a log record, and a flood of them must not
delay the deaths of other workers."""
LAST_CHUNKS = 16
"""How many chunks are read of a stream after the process has ended; a grandchild may continue to write."""
LAST_LINES = 40
"""How many lines of output are reported with its end."""

CONDITIONS = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a disk",
    "T": "stopped",
    "t": "traced",
    "Z": "ended",
}


class Child:
    """One process of ours, from spawn to reap."""

    def __init__(
        self,
        request: SpawnRequest,
        spawned: Spawned,
        transcript: Transcript,
        oom_kills: int | None = None,
    ) -> None:
        self.request = request
        self.id = request.spec.id
        self.generation = request.generation
        self.pid = spawned.pid
        self.pidfd = spawned.pidfd
        self.channel = spawned.channel
        self.streams = [spawned.stdout, spawned.stderr]
        self.tail = OutputTail(self._written)
        self.exit: Exit | None = None
        self.fingerprint: Fingerprint | None = None
        """Which code it runs under which configuration, as soon as that was looked up."""
        self._spawned = spawned
        self._transcript = transcript
        self._kills_before = oom_kills
        self._last_signal: int | None = None
        self._stack_signal: int | None = None
        self._usage: Spent | None = None
        self._reader = FrameReader(request.spec.health.max_bad_frames)
        self._violation_reported = False

    # ── what it sends ─────────────────────────────────────────────────────────────────────

    def read_frames(self, now: float) -> tuple[list[Frame], bool]:
        """What the channel holds, and whether it is still open."""
        assert self.channel is not None
        try:
            data = self.channel.recv(CHUNK)
        except BlockingIOError:
            return [], True
        except OSError:
            data = b""
        frames = list(self._reader.feed(data, now) if data else self._reader.finish(now))
        if frames:
            self._stack_signal = frames[-1].stack_signal
        return frames, bool(data)

    def last_frames(self, now: float) -> list[Frame]:
        """The remaining frames of an ended process; a last line without a line end counts."""
        frames: list[Frame] = []
        if self.channel is not None:
            for _ in range(LAST_CHUNKS):
                try:
                    data = self.channel.recv(CHUNK)
                except OSError:  # nothing more, or another process holds it open
                    break
                if not data:
                    break
                frames += self._reader.feed(data, now)
            frames += self._reader.finish(now)
        return frames

    def new_violation(self) -> str | None:
        """The protocol violation for which it must be ended; returned once."""
        if self._reader.violation is None or self._violation_reported:
            return None
        self._violation_reported = True
        return self._reader.violation

    def read_output(self, stream: int) -> bool:
        """Read what a stream holds; False at its end."""
        try:
            data = os.read(stream, OUTPUT_CHUNK)
        except BlockingIOError:
            return True
        self._pass_on(self.tail.feed(stream, data))
        return bool(data)

    def drain_output(self) -> None:
        """Read the last output of a process that has ended."""
        for stream in self.streams:
            for _ in range(LAST_CHUNKS):
                try:
                    data = os.read(stream, OUTPUT_CHUNK)
                except BlockingIOError:
                    break
                if not data:
                    break
                self._pass_on(self.tail.feed(stream, data))
        self._pass_on(self.tail.finish())

    def _written(self, stream: int, text: str) -> OutputLine:
        name = "out" if stream == self._spawned.stdout else "err"
        return self._transcript.take(self.id, self.generation, name, text)

    def _pass_on(self, lines: Iterator[OutputLine]) -> None:
        for line in lines:
            # The text is an argument, never the template: a worker may write braces.
            logger.bind(worker=self.id, generation=self.generation, stream=line.stream).info(
                "{} {} | {}", self.id, line.stream, line.text
            )

    # ── what is done to it ───────────────────────────────────────────────────────────────

    def send(self, control: Control) -> None:
        """Send it a control line; a worker that does not read its channel misses it."""
        if self.channel is not None:
            with suppress(OSError):
                # Without SIGPIPE, which would end a host that has not disabled it.
                self.channel.send(b'{"do": "%s"}\n' % control.value.encode(), socket.MSG_NOSIGNAL)

    def signal(self, signum: int) -> None:
        """Send it a signal; SIGKILL reaches the whole group."""
        self._last_signal = signum
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)
        if signum == signal.SIGKILL:
            self._kill_group()

    @property
    def can_show_stacks(self) -> bool:
        """Whether it has reported a signal for that."""
        return self._stack_signal is not None

    def show_stacks(self) -> None:
        """Ask it to write its stacks, if it reported that it can; the signal kills other programs."""
        if self._stack_signal is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, self._stack_signal)

    def reap(self, *, wait: bool = False) -> Exit | None:
        """Kill the rest of its process group, then reap it; None while a debugger holds it.

        In this order: while the zombie exists, no other group can have its number.
        """
        self._kill_group()
        taken = (Exit(), None) if self.pidfd == -1 else reap(self.pidfd, wait=wait)
        if taken is None:
            return None
        exit_, self._usage = taken
        return exit_

    def remains(self, memory: OomKills) -> Remains:
        """The evidence of its end, after it was reaped."""
        assert self.exit is not None
        # Read the OOM counter only where it can be the reason.
        is_killed = self.exit.signal == signal.SIGKILL and self._last_signal is None
        return Remains(
            pid=self.pid,
            usage=self._usage,
            output=self._last_lines(),
            last_words=self._crash_dump(),
            sent=self._last_signal,
            oom_kills=memory.take(self._kills_before) if is_killed else None,
            memory_limit_kb=memory.limit_kb,
            fingerprint=self.fingerprint or Fingerprint(),
        )

    def _last_lines(self) -> tuple[Line, ...]:
        return tuple([(line.stream, line.text) for line in self.tail.last(LAST_LINES)])

    def _crash_dump(self) -> str:
        if self._spawned.crash_dump == -1:
            return ""
        return shown(os.pread(self._spawned.crash_dump, CRASH_DUMP_SIZE, 0).rstrip(b"\0"))

    def _kill_group(self) -> None:
        try:  # noqa: SIM105  # faster, and the next start waits for this
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def condition(self) -> str:
        """The kernel's state of the process."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                letter = stat.read().rpartition(b")")[2].split()[0].decode()
        except (OSError, IndexError):
            return "gone"
        return CONDITIONS.get(letter, letter)

    # ── descriptors ──────────────────────────────────────────────────────────────────────

    def descriptors(self) -> list[int]:
        """Our open descriptors of it."""
        channel = [] if self.channel is None else [self.channel.fileno()]
        pidfd = [] if self.pidfd == -1 else [self.pidfd]
        return [*pidfd, *self.streams, *channel]

    def close_stream(self, stream: int) -> None:
        """Close an output stream that has ended."""
        self.streams.remove(stream)
        os.close(stream)

    def close(self) -> None:
        """Close every descriptor."""
        for stream in self.streams:
            os.close(stream)
        self.streams = []
        for descriptor in (self.pidfd, self._spawned.crash_dump):
            if descriptor != -1:
                os.close(descriptor)
        if self.channel is not None:
            self.channel.close()
        self.channel, self.pidfd, self._spawned.crash_dump = None, -1, -1
