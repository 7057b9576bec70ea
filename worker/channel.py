"""The worker's end of its channel: lines of JSON, out and in, over one inherited socket.

Nothing here blocks a sender and nothing raises at one: a frame that does not go out now is
dropped, because the next one says the same and more.
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
        # A grandchild that held it open would hide this worker's end from the supervisor.
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def send(self, frame: Mapping[str, object]) -> bool:
        """Send the frame, or drop it where it cannot go out at once; tells which."""
        import json

        if os.getpid() != self._owner:
            return False
        # A lone surrogate (an undecodable file name) has no UTF-8; as "?" the frame still arrives.
        line = json.dumps(frame, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        # The rest of a frame that was cut short goes first, or it would spoil this one too.
        if self._unsent and not self._write(self._unsent):
            return False
        return self._write(line)

    def receive(self, timeout_s: float) -> list[object] | None:
        """What has arrived by the timeout or a `wake`, decoded; None once the supervisor is gone."""
        ready = dict(self._poll.poll(max(0.0, timeout_s) * 1000))
        if self._woken in ready:
            os.read(self._woken, MAX_LINE)
        if self._fd not in ready:
            return []
        try:
            data = os.read(self._fd, MAX_LINE)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        return self._lines(data) if data else None

    def wake(self) -> None:
        """Have `receive`, in another thread, return."""
        # When a pipe full of wakes takes no more, one is on its way. (contextlib is too slow to load here.)
        try:
            os.write(self._waker, b"w")
        except BlockingIOError:
            return

    def abandon(self) -> None:
        """Let go of the channel in a forked child, which has no part in it."""
        for fd in (self._fd, self._woken, self._waker):
            os.close(fd)

    def _write(self, data: bytes) -> bool:
        """Write what fits and keep the rest of a line that has begun; True if all went out."""
        try:
            written = os.write(self._fd, data)
        except OSError:
            # Full (EAGAIN), or the supervisor is gone, which the reading side finds out.
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

    The variable is taken out of the environment: the descriptor is not inherited any
    further, and a child must not take another one with the same number for it.

    Raises:
        RuntimeError: This process has taken its channel over already.
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
