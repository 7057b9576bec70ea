"""Kills the processes that a killed supervisor leaves behind: `python -I -S guardian.py MARK [PID]`.

A supervisor that is killed with SIGKILL cannot end its workers. The guardian is a separate process in
its own session, which only waits on a pipe from the supervisor:

- `done` and a newline: the supervisor has ended all of its workers. Exit 0.
- end of file without it, or the end of the supervisor's process while a fork of it holds the
  pipe open: the supervisor is gone. After a grace period in which workers end themselves, the
  guardian kills every process with the mark of the system in its environment, regardless of its
  current parent, group or session. Exit 0, or 1 if some survived.

All processes of one system have `REKINDLE_SYSTEM=MARK` in their environment from the start, and
their children inherit it. A program that starts others with a clean environment, or overwrites its
own, escapes; the guardian itself must be started without the mark.

Run by path, so it imports nothing from its package.
"""

from __future__ import annotations

import os
import sys
import time

GRACE_S = 0.4
"""How long workers have to end themselves after the supervisor has gone."""

SWEEP_S = 10.0
"""How long the guardian keeps killing before it gives up."""

PAUSE_S = 0.02
CALM_SCANS = 2
"""Empty scans in a row that end the sweep: a single one can miss a process that is forking."""


def marked_processes(mark: str) -> list[tuple[int, str]]:
    """Every running process of the system with this mark, with the id of the worker it belongs to.

    The id is empty if `REKINDLE_WORKER` is not set. Unreadable processes and the caller are left out.
    """
    found = []
    for pid in _processes():
        environment = _environment(pid)
        if _entry(mark) in environment:
            found.append((pid, _component_id(environment)))
    return found


def main(arguments: list[str]) -> int:
    """Wait for the supervisor's `done` or its end; the exit code."""
    mark, *supervisor = arguments
    if _received_done(*map(int, supervisor)):
        return 0
    time.sleep(GRACE_S)
    return 0 if sweep(mark, SWEEP_S) else 1


def sweep(mark: str, within_s: float) -> bool:
    """Kill all marked processes, and the ones that they start meanwhile; False if some are left."""
    deadline = time.monotonic() + within_s
    calm = 0
    while calm < CALM_SCANS:
        found = marked_processes(mark)
        calm = 0 if found else calm + 1
        for pid, _ in found:
            _kill(pid, mark)
        if time.monotonic() > deadline:
            return not found
        if found:
            time.sleep(PAUSE_S)
    return True


def _received_done(supervisor: int | None = None) -> bool:
    import select

    poll = select.poll()
    poll.register(0, select.POLLIN)
    if supervisor is not None:
        try:
            poll.register(os.pidfd_open(supervisor), select.POLLIN)
        except ProcessLookupError:
            return False
        except (OSError, AttributeError):
            pass  # an old kernel, or a sandbox without the call: the pipe must suffice
    received = b""
    while not received.endswith(b"done\n"):
        # The pipe first: it may still hold the `done` of a supervisor that has ended.
        data = os.read(0, 64) if 0 in dict(poll.poll()) else b""
        if not data:
            return False
        received = received[-5:] + data
    return True


def _processes() -> list[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal() and int(name) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    """The entries that the process was started with; none if it is gone, a zombie or not readable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _entry(mark: str) -> bytes:
    return b"REKINDLE_SYSTEM=" + os.fsencode(mark)


def _component_id(environment: list[bytes]) -> str:
    prefix = b"REKINDLE_WORKER="
    return next((os.fsdecode(entry[len(prefix) :]) for entry in environment if entry.startswith(prefix)), "")


def _kill(pid: int, mark: str) -> None:
    """Kill the process if it is still the marked one: its PID may have been reused."""
    import signal

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):
        handle = None  # an old kernel, or a sandbox without the call
    try:
        if _entry(mark) not in _environment(pid):
            return
        if handle is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        pass  # already gone, or not permitted: the next scan shows which
    finally:
        if handle is not None:
            os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
