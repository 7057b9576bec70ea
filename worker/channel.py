"""The worker's end of its channel: lines of JSON, out and in, over one inherited socket.

Sending never blocks and never raises: a frame that cannot be sent now is dropped, because the next
one repeats what it says.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Mapping

MAX_LINE = 64 * 1024

_connected_process: int | None = None


class Channel:
    """One end of a stream socket, used by one process only. Sending needs the caller's lock."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._owner = os.getpid()
        self._unsent = b""
        self._received = b""
        # A grandchild that held it open would hide the end of this worker from the supervisor.
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def send(self, frame: Mapping[str, object]) -> bool:
        """Send the frame, or drop it if it cannot be sent at once; whether it was sent."""
        import json

        if os.getpid() != self._owner:
            return False
        # A lone surrogate (an undecodable file name) cannot be encoded; as "?" the frame still arrives.
        line = json.dumps(frame, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        # The rest of a partly sent frame goes first, or this frame would be corrupted too.
        if self._unsent and not self._write(self._unsent):
            return False
        return self._write(line)

    def wait(self, timeout_s: float) -> None:
        """Wait until a line arrives, but not longer than this, nor after a `wake`."""
        ready = dict(self._poll.poll(max(0.0, timeout_s) * 1000))
        if self._woken in ready:
            os.read(self._woken, MAX_LINE)

    def receive(self) -> list[object] | None:
        """The lines that have arrived, decoded; None once the supervisor is gone. One thread at a time."""
        try:
            data = os.read(self._fd, MAX_LINE)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        return self._lines(data) if data else None

    def wake(self) -> None:
        """Make `receive` return in another thread."""
        # A full pipe already holds a wake. (contextlib is too slow to load here.)
        try:
            os.write(self._waker, b"w")
        except BlockingIOError:
            return

    def abandon(self) -> None:
        """Close the channel in a forked child, which must not use it."""
        for fd in (self._fd, self._woken, self._waker):
            os.close(fd)

    def _write(self, data: bytes) -> bool:
        """Write what fits and keep the rest of a partly sent line; True if all was sent."""
        try:
            written = os.write(self._fd, data)
        except OSError:
            # Full (EAGAIN), or the supervisor is gone, which the reading side detects.
            return False
        self._unsent = data[written:]
        return not self._unsent

    def _lines(self, data: bytes) -> list[object]:
        *lines, rest = (self._received + data).split(b"\n")
        self._received = rest if len(rest) <= MAX_LINE else b""
        return [_decoded(line) for line in lines]


def _decoded(line: bytes) -> object:
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def inherited() -> Channel | None:
    """The channel that `REKINDLE_FD` names; None outside of Rekindle.

    The variable is removed from the environment: a child does not inherit the descriptor, and must
    not use another one with the same number.

    Raises:
        RuntimeError: This process already has a channel.
    """
    global _connected_process
    if _connected_process == os.getpid():
        raise RuntimeError("this process has its Worker already: take it as the function's parameter")
    try:
        fd = int(os.environ.pop("REKINDLE_FD", ""))
        is_socket = stat.S_ISSOCK(os.fstat(fd).st_mode)
    except (ValueError, OSError):
        return None
    if not is_socket:
        return None
    _connected_process = os.getpid()
    return Channel(fd)
