"""Runs somebody's program to its end, or to its time limit: arguments only, in a session of its own.

Blocks, so it is for threads that are nobody's lane. Nothing waits for what the program starts: once
it has ended itself, what still holds its output is killed with its group.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from ..deaths.death import Exit
from .spawn.posix_spawn import fork_lock
from .strays import waited_for, waited_for_lock

MOST_OUTPUT = 64 * 1024
"""What a program writes beyond this is read and dropped."""


class Ran(msgspec.Struct, frozen=True):
    """How a program ended, and how its output began."""

    exit: Exit | None
    """None: it was cut off."""
    output: bytes

    @property
    def well(self) -> bool:
        """Whether it says that all is well."""
        return self.exit is not None and self.exit.clean


def run_tool(
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    timeout_s: float,
    until: int | None = None,
) -> Ran:
    """Run a program; what it writes on stdout and stderr together.

    It is cut off when its time is over, or as soon as the descriptor `until` has something to read.

    Raises:
        OSError: it could not be started.
    """
    deadline = time.monotonic() + timeout_s
    # Known before anybody could find it ended and take its status.
    with waited_for_lock, fork_lock:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        waited_for.add(process.pid)
    assert process.stdout is not None
    try:
        with process.stdout as stream:
            return _attend(process.pid, stream.fileno(), deadline, until)
    finally:
        process.returncode = 0  # ours to reap: without this, subprocess would look for the status as well
        waited_for.discard(process.pid)


def _attend(pid: int, stream: int, deadline: float, until: int | None) -> Ran:
    ended = os.pidfd_open(pid)
    output = bytearray()
    try:
        over = _read_until_end(ended, stream, output, deadline, until)
        # While the zombie is there, its number cannot stand for another group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        exit_ = _reaped(ended)
    finally:
        os.close(ended)
    return Ran(exit_ if over else None, bytes(output))


def _read_until_end(ended: int, stream: int, output: bytearray, deadline: float, until: int | None) -> bool:
    """Take the output until the program has ended; False if its time was over first."""
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
    """Take what there is; False once there is no more to come."""
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
        return Exit()  # somebody else took it
    assert found is not None
    return Exit(code=found.si_status) if found.si_code == os.CLD_EXITED else Exit(signal=found.si_status)
