"""What one process writes to its pipes: read in large pieces, kept and logged as lines.

A thread of its own reads the output of all workers. The thread that watches the processes does not wait for
it: a read of a pipe waits while its writer is inside of a write, O_NONBLOCK or not, and every line that is
logged takes time that a death of another worker would have to wait for.

Above a rate, lines are counted instead of logged: a program that writes 50 MB/s must not be slowed down to
the speed at which lines can be formatted. The log is limited in bytes as well, because lines can be long.
The last lines are always kept.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from loguru import logger

from ..logs.worker_log import WorkerLog
from ..takeover.known_child import KnownOutput
from .allowance import Allowance
from .epoll_loop import EpollLoop
from .output_tail import MOST_LINES, OutputTail
from .transcript import OutputLine, Transcript

CHUNK = 256 * 1024
PIPE_SIZE = 64 * 1024
FULL_PIPE = PIPE_SIZE // 2
"""A full pipe may hold this little: a page that the writer did not fill has no room for the next write."""
LARGE_PIPE_SIZE = 1024 * 1024
LAST_CHUNKS = 8
"""How many chunks are read of a stream after the process has ended; a grandchild may continue to write."""

LINES_PER_SECOND = 1000
"""How many lines are logged of each worker; more are counted."""
BURST = 5000
"""How many lines a worker may write at once before that."""
BYTES_PER_SECOND = 500_000
"""How many bytes are logged of the lines of each worker; lines above it are counted."""
BYTES_BURST = 5 * BYTES_PER_SECOND
"""How many bytes of lines a worker may write at once before that."""

FULL_S = 0.005
"""How soon a stream is read again that has to wait for a log file."""

HOLD_S = 0.1
"""How often the last lines are taken from a flood."""
NOTICE_S = 1.0
"""How often the log says how many lines it leaves out."""


class _Flood(msgspec.Struct):
    """Output that arrives faster than its lines can be logged: its end, and how many lines it has."""

    data: bytes
    lines: int


class WorkerOutput:
    """The output of one process. `finish_at_once` and `tail` are for any thread, the rest for one."""

    def __init__(
        self,
        component_id: str,
        generation: int,
        streams: tuple[int, int],
        transcript: Transcript,
        log: WorkerLog | None = None,
    ) -> None:
        self._id = component_id
        self._generation = generation
        self._stdout, _ = streams
        self._open = list(streams)
        self._transcript = transcript
        self._file = log
        self.tail = OutputTail(self._made)
        bound = logger.bind(worker=component_id, generation=generation)
        self._logs = {"": bound, "out": bound.bind(stream="out"), "err": bound.bind(stream="err")}
        self._busy = threading.Lock()
        """Held from a read until its lines are kept."""
        self._floods: dict[int, _Flood] = {}
        self._large: set[int] = set()
        now = time.monotonic()
        self._lines = Allowance(LINES_PER_SECOND, BURST, now)
        self._bytes = Allowance(BYTES_PER_SECOND, BYTES_BURST, now)
        self._unlogged = 0
        self._read_at_ms = 0
        """When the latest output was read: its lines have the same time in memory and in the log file."""
        self._is_held = False
        """Whether a call is due that takes the floods and tells what is left out."""
        self._noticed_at = 0.0
        self._search: Callable[[str], bool] | None = None

    # ── on the thread that reads ─────────────────────────────────────────────────────────

    def watch(self, loop: EpollLoop) -> None:
        """Have the streams read by a loop.

        Raises:
            OSError: the kernel's limit of watched descriptors is reached.
        """
        for stream in self._open:
            loop.watch(stream, lambda stream=stream: self._on_readable(loop, stream))  # type: ignore[misc]

    def look_for(self, search: Callable[[str], bool]) -> None:
        """Call the function with each line that was kept and each further one, until it returns True."""
        with self._busy:
            if not any(search(line.text) for line in self.tail.last()):
                self._search = search

    def known(self) -> tuple[KnownOutput, dict[str, int]]:
        """What was read, and the open streams, after the thread that reads has ended."""
        with self._busy:
            self._take_floods()
            self._notice()
            rests = {self._name(stream): rest for stream, rest in self.tail.rests().items()}
            in_file = {} if self._file is None else self._file.rests
            known = KnownOutput(
                lines=self.tail.last(), partial=rests, in_file=in_file, dropped=self.tail.dropped
            )
            return known, {self._name(stream): stream for stream in self._open}

    def take_over(self, known: KnownOutput) -> None:
        """Go on where the former program of this process stopped to read."""
        streams = {self._name(stream): stream for stream in self._open}
        rests = {streams[name]: rest for name, rest in known.partial.items() if name in streams}
        self.tail.take_over(known.lines, rests, known.dropped)
        if self._file is not None:
            self._file.take_over(known.in_file)
        self._open = [stream for stream in self._open if stream != -1]

    def drain(self) -> None:
        """Read the last output of a process that has ended."""
        with self._busy:
            for stream in self._open:
                with suppress(BlockingIOError):
                    for _ in range(LAST_CHUNKS):
                        if not self._read(stream):
                            break
            self._take_floods()
            self._finish()

    def close(self, loop: EpollLoop) -> None:
        """Stop reading."""
        with self._busy:
            streams, self._open = self._open, []
            for stream in streams:
                loop.unwatch(stream)
                os.close(stream)

    def _on_readable(self, loop: EpollLoop, stream: int) -> None:
        with self._busy:
            if stream not in self._open:
                return
            if self._file is not None and self._file.is_full:
                loop.unwatch(stream)
                loop.after(FULL_S, lambda: self._watch_again(loop, stream))
                return
            try:
                ended = not self._read(stream)
            except BlockingIOError:
                return  # reported for a former descriptor of that number
            self._hold(loop)
            if ended:
                loop.unwatch(stream)
                self._open.remove(stream)
                os.close(stream)

    def _watch_again(self, loop: EpollLoop, stream: int) -> None:
        """The log file may have room again."""
        with self._busy:
            if stream in self._open:
                loop.watch(stream, lambda: self._on_readable(loop, stream))

    def _hold(self, loop: EpollLoop) -> None:
        """Have floods taken, and what is left out told, soon; one call is due at a time."""
        if (self._floods or self._unlogged) and not self._is_held:
            self._is_held = True
            loop.after(HOLD_S, lambda: self._on_hold_elapsed(loop))

    def _on_hold_elapsed(self, loop: EpollLoop) -> None:
        with self._busy:
            self._is_held = False
            self._take_floods()
            if time.monotonic() - self._noticed_at >= NOTICE_S:
                self._notice()
            self._hold(loop)

    def _read(self, stream: int) -> bool:
        """Take what a stream holds; False at its end. Raises BlockingIOError if it holds nothing."""
        data = os.read(stream, CHUNK)
        if not data:
            return False
        self._read_at_ms = _now_ms()
        if len(data) >= FULL_PIPE and stream not in self._large:
            self._enlarge(stream)
        if self._file is not None:
            self._file.take(self._name(stream), data, self._read_at_ms)
        lines = data.count(b"\n")
        flood = self._floods.get(stream)
        if flood is not None:
            flood.data = data if len(data) == CHUNK else (flood.data + data)[-CHUNK:]
            flood.lines += lines
        elif (lines or 1) > (allowed := self._lines.left(time.monotonic())):
            self._begin_flood(stream, data, lines, allowed)
        else:
            self._lines.use(lines or 1)
            self._log(self.tail.feed(stream, data))
        return True

    def _begin_flood(self, stream: int, data: bytes, lines: int, allowed: int) -> None:
        """Log as many lines as are allowed, and hold the others."""
        if allowed > 0:
            *first, data = data.split(b"\n", allowed)
            self._log(self.tail.feed(stream, b"\n".join([*first, b""])))
            self._lines.use(len(first))
        self._floods[stream] = _Flood(data, max(0, lines - allowed))

    def _enlarge(self, stream: int) -> None:
        """Give a pipe that was full more room. Not every one: a user may have few large ones."""
        self._large.add(stream)
        with suppress(OSError):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, LARGE_PIPE_SIZE)

    def _take_floods(self) -> None:
        """Keep the last lines of what arrived too fast, and count the others."""
        floods, self._floods = self._floods, {}
        for stream, flood in floods.items():
            *whole, rest = flood.data.split(b"\n")
            last = whole[-MOST_LINES:]
            skipped = flood.lines - len(last)
            if skipped > 0:
                self.tail.skip(stream, skipped)
                self._transcript.skip(skipped)
            logged = min(len(last), self._lines.left(time.monotonic()))
            self._lines.use(logged)
            lines = list(self.tail.feed(stream, b"\n".join([*last, rest])))
            self._unlogged += max(0, skipped) + len(lines) - logged
            self._log(iter(lines[len(lines) - logged :]))

    # ── on any thread ────────────────────────────────────────────────────────────────────

    def finish_at_once(self) -> bool:
        """Finish if everything that was written has been taken; False: it has to be drained.

        Waits for nothing: to ask whether a pipe holds something does not wait for its writer, as a read
        would.
        """
        if not self._busy.acquire(blocking=False):
            return False
        try:
            poll = select.poll()
            for stream in self._open:
                poll.register(stream, select.POLLIN)
            if self._floods or self._unlogged or any(found & select.POLLIN for _, found in poll.poll(0)):
                return False
            self._finish()
        finally:
            self._busy.release()
        return True

    def _made(self, stream: int, text: str) -> OutputLine:
        if self._search is not None and self._search(text):
            self._search = None
        return self._transcript.take(self._id, self._generation, self._name(stream), text, self._read_at_ms)

    def _name(self, stream: int) -> str:
        return "out" if stream == self._stdout else "err"

    def _finish(self) -> None:
        """Last lines without a line end count."""
        self._read_at_ms = _now_ms()
        self._log(self.tail.finish())
        self._notice()
        if self._file is not None:
            self._file.finish(self._read_at_ms)

    def _log(self, lines: Iterator[OutputLine]) -> None:
        allowed = self._bytes.left(time.monotonic())
        for line in lines:
            size = len(line.text.encode())
            if size > allowed:
                self._unlogged += 1
                continue
            allowed -= size
            self._bytes.use(size)
            # The text is an argument, never the template: a worker may write braces.
            self._logs[line.stream].bind(text=line.text).info("{} {} | {}", self._id, line.stream, line.text)

    def _notice(self) -> None:
        unlogged, self._unlogged = self._unlogged, 0
        self._noticed_at = time.monotonic()
        if unlogged:
            self._logs[""].warning(
                "{} writes too fast for the log: {} of its lines are left out", self._id, unlogged
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
