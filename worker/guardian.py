"""Kills the processes that a killed supervisor leaves behind: `python -I -S guardian.py [PID]`.

A supervisor that is killed with SIGKILL cannot end its workers. The guardian is a separate process in
its own session, which only waits on a pipe from the supervisor. The first line is the mark of the system.
Then follows:

- `cgroup PATH` and a newline: the control group of all workers, if they have one.
- `lease SECONDS` and a newline, on a node of a cluster: until then on CLOCK_BOOTTIME the workers may run.
  If no later time has come by then, the guardian kills every process with the mark of the system, and goes
  on waiting: the supervisor may be frozen, and the cluster starts the workers elsewhere. Workers of the
  node itself (`REKINDLE_WORKER=system:…`) and their children live on: they need no lease.
- `done` and a newline: the supervisor has ended all of its workers. Exit 0.
- end of file without it, or the end of the supervisor's process while a fork of it holds the
  pipe open: the supervisor is gone. After a grace period in which workers end themselves, the
  guardian kills every process with the mark of the system, regardless of its current parent, group or
  session. Exit 0, or 1 if some survived.

All processes of one system have the mark in two places, which their children inherit: `REKINDLE_SYSTEM=MARK`
in their environment and, under `rekindle run`, a resource limit (see `limit_mark`). A daemon that overwrites
its environment, as Redis and nginx do, or a program that starts others with a clean one, keeps the limit. One
that changes both escapes. The guardian itself must be started without the mark in its environment, and gets
it on the pipe because other users can read its arguments.

Run by path, so it imports nothing from its package.
"""

from __future__ import annotations

import os
import sys
import time

GRACE_S = 0.4
"""How long workers have to end themselves after the supervisor has gone."""

GLANCE_S = 0.5
"""How long it waits at a time for the end of a lease: a wait does not count while the machine sleeps."""

SWEEP_S = 10.0
"""How long the guardian keeps killing before it gives up."""

PAUSE_S = 0.02
LONGEST = 8192
"""How much of what the supervisor sent is kept."""
CALM_SCANS = 2
"""Empty scans in a row that end the sweep: a single one can miss a process that is forking."""


OF_THE_NODE = "system:"
"""The prefix of the ids of workers that need no lease."""

SYSTEM_BITS, START_BITS = 26, 36


def limit_mark(mark: str, start: int) -> int:
    """The limit of real-time CPU time (RLIMIT_RTTIME, soft) that marks the processes of one start.

    A child inherits it whatever it does to its session, its parents and its environment, and it can be read
    in /proc. It limits nothing: it is more than 100,000 years, and counts for real-time tasks only.
    """
    return (1 << 62) | (_system_number(mark) << START_BITS) | (start & ((1 << START_BITS) - 1))


def marked_start(pid: int, mark: str) -> int | None:
    """The number of the start that the limit of a process names; None if it has no mark of this system."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            text = file.read()
    except OSError:
        return None
    soft = text.partition(b"Max realtime timeout")[2].split(maxsplit=1)[:1]
    value = int(soft[0]) if soft and soft[0].isdigit() else 0
    if value >> START_BITS != (1 << (62 - START_BITS)) | _system_number(mark):
        return None
    return value & ((1 << START_BITS) - 1)


def _system_number(mark: str) -> int:
    return int(mark, 16) & ((1 << SYSTEM_BITS) - 1)


def marked_processes(mark: str) -> list[tuple[int, str]]:
    """Every running process of the system with this mark, with the id of the worker it belongs to.

    The id is empty if `REKINDLE_WORKER` is not in its environment. Zombies and the caller are left out.
    """
    found = []
    for pid in _processes():
        environment = _environment(pid)
        if _entry(mark) in environment:
            found.append((pid, _component_id(environment)))
        elif marked_start(pid, mark) is not None and not is_zombie(pid):
            found.append((pid, ""))
    return found


def main(arguments: list[str]) -> int:
    """Wait for the supervisor's `done` or its end; the exit code."""
    received = _Received()
    mark = received.mark()
    if mark is None or received.done(mark, *map(int, arguments)):
        return 0
    time.sleep(GRACE_S)
    for path in received.cgroups():
        end_cgroup(path)
    return 0 if sweep(mark, SWEEP_S) else 1


def end_cgroup(path: str) -> None:
    """Kill everything in a control group, and remove it."""
    try:
        with open(os.path.join(path, "cgroup.kill"), "w") as file:
            file.write("1")
    except OSError:
        return  # an old kernel: the marks must suffice
    deadline = time.monotonic() + GRACE_S
    while os.path.exists(path) and time.monotonic() < deadline:
        try:
            for folder, _, _ in os.walk(path, topdown=False):
                os.rmdir(folder)
        except OSError:
            time.sleep(PAUSE_S)  # a process in it has not ended yet


def sweep(mark: str, within_s: float, spared: str = "") -> bool:
    """Kill all marked processes, and the ones that they start meanwhile; False if some are left.

    Those of workers whose ids begin with `spared`, if that is given, live on.
    """
    deadline = time.monotonic() + within_s
    calm = 0
    while calm < CALM_SCANS:
        found = [each for each in marked_processes(mark) if not (spared and each[1].startswith(spared))]
        calm = 0 if found else calm + 1
        for pid, _ in found:
            _kill(pid, mark)
        if time.monotonic() > deadline:
            return not found
        if found:
            time.sleep(PAUSE_S)
    return True


class _Received:
    """What the supervisor has sent on the pipe."""

    def __init__(self) -> None:
        self._data = b""

    def mark(self) -> str | None:
        """The mark of the system; None if the supervisor ended before it sent one."""
        while b"\n" not in self._data:
            data = os.read(0, 256)
            if not data:
                return None
            self._data += data
        mark, _, self._data = self._data.partition(b"\n")
        return os.fsdecode(mark)

    def cgroups(self) -> list[str]:
        """The control groups that the supervisor named."""
        lines = self._data.split(b"\n")
        return [os.fsdecode(line[7:]) for line in lines if line.startswith(b"cgroup /")]

    def lease(self) -> float | None:
        """Until when the workers may run, on CLOCK_BOOTTIME; None: as long as the supervisor lives."""
        complete = self._data.rpartition(b"\n")[0].split(b"\n")
        last = next((line[6:] for line in reversed(complete) if line.startswith(b"lease ")), None)
        return None if last is None else float(last)

    def done(self, mark: str, supervisor: int | None = None) -> bool:
        """Whether `done` arrives before the supervisor ends."""
        import select

        poll = select.poll()
        poll.register(0, select.POLLIN)
        if supervisor is not None:
            try:
                poll.register(os.pidfd_open(supervisor), select.POLLIN)
            except ProcessLookupError:
                return self._data.endswith(b"done\n")
            except (OSError, AttributeError):
                pass  # an old kernel, or a sandbox without the call: the pipe must suffice
        swept: float | None = None
        while not self._data.endswith(b"done\n"):
            lease = self.lease()
            left = None
            if lease is not None and lease != swept:
                left = lease - time.clock_gettime(time.CLOCK_BOOTTIME)
            found = dict(poll.poll(None if left is None else max(0.0, min(left, GLANCE_S)) * 1000))
            if not found:
                if left is not None and left <= 0:
                    sweep(mark, SWEEP_S, OF_THE_NODE)
                    swept = lease
                continue
            # The pipe first: it may still hold the `done` of a supervisor that has ended.
            data = os.read(0, LONGEST) if 0 in found else b""
            if not data:
                return False
            self._data = self._kept() + data
        return True

    def _kept(self) -> bytes:
        """What was received, with the latest lease only."""
        *lines, rest = self._data.split(b"\n")
        leases = [line for line in lines if line.startswith(b"lease ")]
        others = [line for line in lines if not line.startswith(b"lease ")]
        return b"\n".join([*others, *leases[-1:], rest])[-LONGEST:]


def is_zombie(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"Z", b"X")
    except OSError:
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
        if _entry(mark) not in _environment(pid) and marked_start(pid, mark) is None:
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
