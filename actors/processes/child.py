"""One real child process: its descriptors, its last words, its end. Used on the loop, once it is made."""

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
"""How much output is taken at a time. Every line costs as much as a log record does, and the
deaths of the others are not to wait for a flood."""
LAST_CHUNKS = 16
"""How much is still read of a stream whose process has ended; a grandchild may go on writing."""
LAST_LINES = 40
"""How much of its output is told with its end."""

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
        """Which code it runs under which configuration, once that was looked up."""
        self._spawned = spawned
        self._transcript = transcript
        self._kills_before = oom_kills
        self._sent: int | None = None
        self._stack_signal: int | None = None
        self._usage: Spent | None = None
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
        frames = list(self._reader.feed(data, now) if data else self._reader.finish(now))
        if frames:
            self._stack_signal = frames[-1].stack_signal
        return frames, bool(data)

    def last_frames(self, now: float) -> list[Frame]:
        """All that the channel of an ended process still holds; a last line without a line end counts too."""
        frames: list[Frame] = []
        if self.channel is not None:
            for _ in range(LAST_CHUNKS):
                try:
                    data = self.channel.recv(CHUNK)
                except OSError:  # nothing more, or somebody else holds it open
                    break
                if not data:
                    break
                frames += self._reader.feed(data, now)
            frames += self._reader.finish(now)
        return frames

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
        self._pass_on(self.tail.feed(stream, data))
        return bool(data)

    def drain_output(self) -> None:
        """Take the last words of a process that has ended."""
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
        """Tell it something; a worker that does not read misses it."""
        if self.channel is not None:
            with suppress(OSError):
                # A host that wants SIGPIPE must not die of a worker that has just ended.
                self.channel.send(b'{"do": "%s"}\n' % control.value.encode(), socket.MSG_NOSIGNAL)

    def signal(self, signum: int) -> None:
        """Send it a signal; SIGKILL reaches the whole group."""
        self._sent = signum
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)
        if signum == signal.SIGKILL:
            self._kill_group()

    @property
    def can_show_stacks(self) -> bool:
        """Whether it has said that it knows how to."""
        return self._stack_signal is not None

    def show_stacks(self) -> None:
        """Have it write its stacks down; one that never said that it can would be killed by the signal."""
        if self._stack_signal is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, self._stack_signal)

    def reap(self, *, wait: bool = False) -> Exit | None:
        """Take the status of the ended process, after ending what is left of its group.

        While the zombie is there its number cannot stand for another group. None: a debugger
        keeps it for now.
        """
        self._kill_group()
        taken = (Exit(), None) if self.pidfd == -1 else reap(self.pidfd, wait=wait)
        if taken is None:
            return None
        exit_, self._usage = taken
        return exit_

    def remains(self, memory: OomKills) -> Remains:
        """What it leaves behind, once it was reaped."""
        assert self.exit is not None
        # A look at the counter of kills only where one can be the reason.
        is_killed = self.exit.signal == signal.SIGKILL and self._sent is None
        return Remains(
            pid=self.pid,
            usage=self._usage,
            output=self._last_lines(),
            last_words=self._last_words(),
            sent=self._sent,
            oom_kills=memory.take(self._kills_before) if is_killed else None,
            memory_limit_kb=memory.limit_kb,
            fingerprint=self.fingerprint or Fingerprint(),
        )

    def _last_lines(self) -> tuple[Line, ...]:
        return tuple([(line.stream, line.text) for line in self.tail.last(LAST_LINES)])

    def _last_words(self) -> str:
        if self._spawned.last_words == -1:
            return ""
        return shown(os.pread(self._spawned.last_words, CRASH_DUMP_SIZE, 0).rstrip(b"\0"))

    def _kill_group(self) -> None:
        try:  # noqa: SIM105  # quicker, and whoever waits for the next incarnation waits for this
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

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
        self.streams.remove(stream)
        os.close(stream)

    def close(self) -> None:
        """Let go of every descriptor."""
        for stream in self.streams:
            os.close(stream)
        self.streams = []
        for descriptor in (self.pidfd, self._spawned.last_words):
            if descriptor != -1:
                os.close(descriptor)
        if self.channel is not None:
            self.channel.close()
        self.channel, self.pidfd, self._spawned.last_words = None, -1, -1
