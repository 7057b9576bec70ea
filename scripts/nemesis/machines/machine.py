"""One machine: a network, its processes, and a service that starts with it.

Its first process starts the service again whenever that ends, and reaps what loses its parent. Killing the
first process is a power failure: the kernel ends everything else in the same moment.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .namespaces import DIES_WITH_US, RoomError, children, namespace, run, state, wait_for

INIT = "read -r _; while :; do {service} >> {log} 2>&1; sleep 0.3; done"
"""The line that it waits for comes when the network is there. bash reaps whatever becomes its child."""
STOP_S = 10.0
STOPPING_S = 0.005
"""How long a process is given to stop before it is looked at again."""


class Machine:
    """A machine that can be powered off and on, paused, and entered."""

    def __init__(self, name: str, address: str, hardware: str, ahead_s: int = 0) -> None:
        """`ahead_s` is how much longer it claims to be running than this computer."""
        self.name, self.address, self.hardware = name, address, hardware
        self._clocks = ("--time", "--boottime", str(ahead_s), "--monotonic", str(ahead_s)) if ahead_s else ()
        self._script = INIT.format(service="sleep infinity", log="/dev/null")
        self._holder: subprocess.Popen[bytes] | None = None
        self._init = 0
        self._pids = ""
        """Its namespace of processes."""

    @property
    def is_on(self) -> bool:
        """Whether it has power."""
        return self._holder is not None

    @property
    def init(self) -> int:
        """The pid of its first process, as it is called outside."""
        return self._init

    def serve(self, command: Sequence[str], log: Path) -> None:
        """From the next start on it runs this program, again and again."""
        self._script = INIT.format(service=shlex.join(command), log=shlex.quote(str(log)))

    def power_on(self) -> None:
        """Start it, without a cable and without its service."""
        if self._holder is not None:
            return
        words = ("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", *self._clocks)
        # `unshare` remarks on a child that is killed.
        holder = subprocess.Popen(
            [*DIES_WITH_US, *words, "bash", "-c", self._script],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._holder = holder
        self._init = wait_for(lambda: _started(holder.pid), f"{self.name} to start")
        self._pids = namespace(self._init, "pid") or ""
        self.run("ip", "link", "set", "lo", "up")

    def begin(self) -> None:
        """Let it start its service."""
        assert self._holder is not None
        assert self._holder.stdin is not None
        self._holder.stdin.write(b"\n")
        self._holder.stdin.close()

    def power_off(self) -> None:
        """Take its power away: every process in it ends at once, and its cable is gone."""
        if self._holder is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self._init, signal.SIGKILL)
        if self._holder.stdin is not None:
            self._holder.stdin.close()
        self._holder.wait()
        self._holder = None

    def run(self, *words: str | int) -> str:
        """Run a command on it; its standard output."""
        return run(*self.entered(), *words)

    def entered(self) -> tuple[str, ...]:
        """What stands in front of a command that runs on it."""
        return ("nsenter", "--target", str(self._init), "--net", "--pid", "--mount")

    def pause(self) -> None:
        """Let none of its processes execute anything, the guardian included."""
        deadline = time.monotonic() + STOP_S
        while running := [pid for pid in self.processes() if state(pid) not in "TZ"]:
            if time.monotonic() > deadline:
                raise RoomError(f"{self.name} cannot be paused: {len(running)} of its processes still run")
            for pid in running:
                _send(pid, signal.SIGSTOP)
            time.sleep(STOPPING_S)

    def resume(self) -> None:
        """Let all of them continue."""
        for pid in self.processes():
            _send(pid, signal.SIGCONT)

    def processes(self) -> list[int]:
        """The pids of everything in it, as they are called outside."""
        if not self.is_on:
            return []
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in pids if namespace(pid, "pid") == self._pids]

    def find(self, *words: str) -> list[int]:
        """The pids of its programs that were started with these words in a row."""
        wanted = b"\0".join(word.encode() for word in words)
        return sorted(pid for pid in self.processes() if wanted in _command_line(pid))


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _started(holder: int) -> int | None:
    """The first process, once `unshare` has mounted /proc and become bash."""
    for pid in children(holder):
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "bash":
                return pid
    return None


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
