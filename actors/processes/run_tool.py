"""Runs a program of the user to its end or its time limit: no shell, in a session of its own.

It blocks, so it must not run on a lane. It does not wait for descendants: when the program has ended, the
rest of its process group is killed.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import msgspec

from ..deaths.death import Exit
from .spawn.posix_spawn import Program, fork_lock, start_process
from .strays import waited_for, waited_for_lock

MOST_OUTPUT = 64 * 1024
"""Output beyond this is read and dropped."""


class Ran(msgspec.Struct, frozen=True):
    """How a program ended, and the beginning of its output."""

    exit: Exit | None
    """None: it was killed at its time limit."""
    output: bytes

    @property
    def well(self) -> bool:
        """Whether it succeeded."""
        return self.exit is not None and self.exit.clean


def run_tool(
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    timeout_s: float,
    until: int | None = None,
    given: bytes | int = b"",
    user: str | None = None,
) -> Ran:
    """Run a program; its exit, and what it wrote to stdout and stderr.

    It is killed at its time limit, or as soon as the descriptor `until` is readable. It reads what is
    given to it from its stdin, which may be a descriptor. It runs as our user, or another one.

    Raises:
        OSError: it could not be started.
    """
    deadline = time.monotonic() + timeout_s
    with _readable(given) as stdin:
        pid, stream = started(Program(argv, env, cwd, user), stdin)
    try:
        return _attend(pid, stream, deadline, until)
    finally:
        os.close(stream)
        waited_for.discard(pid)


@contextmanager
def _readable(given: bytes | int) -> Iterator[int]:
    """A descriptor from which the program reads this. A file in memory: a pipe may block its writer."""
    if isinstance(given, int):
        yield given
        return
    if not given:
        with open(os.devnull, "rb") as nothing:
            yield nothing.fileno()
        return
    with os.fdopen(os.memfd_create("stdin", os.MFD_CLOEXEC), "w+b") as file:
        file.write(given)
        file.seek(0)
        yield file.fileno()


def started(program: Program, stdin: int) -> tuple[int, int]:
    """Start a program: its pid, which stays in `waited_for`, and the descriptor of its output."""
    read, write = os.pipe2(os.O_CLOEXEC)
    try:
        # Register the pid before `reap_orphans` can see it exit.
        with waited_for_lock, fork_lock:
            pid = start_process(program, {}, stdio=(stdin, write, write))
            waited_for.add(pid)
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    return pid, read


def _attend(pid: int, stream: int, deadline: float, until: int | None) -> Ran:
    ended = os.pidfd_open(pid)
    output = bytearray()
    try:
        over = _read_until_end(ended, stream, output, deadline, until)
        # While the zombie exists, no other group can have its number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        exit_ = _reaped(ended)
    finally:
        os.close(ended)
    return Ran(exit_ if over else None, bytes(output))


def _read_until_end(ended: int, stream: int, output: bytearray, deadline: float, until: int | None) -> bool:
    """Read the output until the program ends; False if the time limit came first."""
    os.set_blocking(stream, False)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(stream, select.POLLIN)
    if until is not None:
        poll.register(until, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        ready = dict(poll.poll(left * 1000))
        if stream in ready and not _take(stream, output):
            poll.unregister(stream)
        elif ended in ready:
            return True
        elif until in ready:
            return False
    return False


def _take(stream: int, output: bytearray) -> bool:
    """Read what there is; False at the end of the stream."""
    try:
        data = os.read(stream, MOST_OUTPUT)
    except BlockingIOError:
        return True
    output += data[: MOST_OUTPUT - len(output)]
    return bool(data)


def _reaped(ended: int) -> Exit:
    try:
        found = os.waitid(os.P_PIDFD, ended, os.WEXITED)
    except ChildProcessError:
        return Exit()  # another thread reaped it
    assert found is not None
    return Exit(code=found.si_status) if found.si_code == os.CLD_EXITED else Exit(signal=found.si_status)
