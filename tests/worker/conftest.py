"""Real worker processes, with the test as their supervisor."""

from __future__ import annotations

import json
import os
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from rekindle.worker.guardian import marked_processes, sweep

HERE = Path(__file__).parent
IMPORT_ROOT = HERE.parents[1] / "scripts" / "import_root"
DEADLINE_S = 20.0

Frame = dict[str, Any]


class Peer:
    """The supervisor's side of one worker: its process and the other end of its channel."""

    def __init__(self, process: subprocess.Popen[str], channel: socket.socket) -> None:
        self.process = process
        self.channel = channel
        self.received = 0
        self._buffer = b""

    def line(self) -> bytes | None:
        """The next line, without its end; None once the worker's end is closed."""
        while b"\n" not in self._buffer:
            self.channel.settimeout(DEADLINE_S)
            data = self.channel.recv(65536)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.received += 1
        return line

    def frames(self) -> Iterator[Frame]:
        """All further frames, until the worker's end is closed."""
        while (line := self.line()) is not None:
            yield json.loads(line)

    def frame(self, **expected: object) -> Frame:
        """The next frame that has all of the expected entries; None stands for a missing one."""
        deadline = time.monotonic() + DEADLINE_S
        for frame in self.frames():
            if all(frame.get(key) == value for key, value in expected.items()):
                return frame
            if time.monotonic() > deadline:
                break
        raise AssertionError(f"no frame came with {expected}")

    def say(self, do: str) -> None:
        """Send a control line."""
        self.channel.sendall(json.dumps({"do": do}).encode() + b"\n")

    def exit_code(self) -> int:
        """How the process ended, by the deadline."""
        return self.process.wait(DEADLINE_S)

    def stderr(self) -> str:
        """What it wrote to stderr, after it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def stdout(self) -> str:
        """What it wrote to stdout, after it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def close(self) -> None:
        """End the process and let go of everything."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


class Start(Protocol):
    """Starts a command, or a function of `workers.py` by the runner."""

    def __call__(
        self, target: str | list[str], *, heartbeat_s: float = 0.05, **environment: str | None
    ) -> Peer: ...


@pytest.fixture
def mark() -> Iterator[str]:
    """The mark of this test's processes, none of which may be left at its end."""
    mark = secrets.token_hex(8)
    yield mark
    left = [pid for pid, _ in marked_processes(mark) if not ends(pid, within_s=DEADLINE_S)]
    sweep(mark, within_s=5.0)
    assert left == [], "processes were left behind"


@pytest.fixture
def environment(mark: str) -> dict[str, str]:
    """What every process of a system finds in its environment."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("REKINDLE_")}
    return inherited | {
        "PYTHONPATH": str(IMPORT_ROOT),
        "REKINDLE_GENERATION": "7",
        "REKINDLE_PATH": os.pathsep.join([str(HERE), *sys.path]),
        "REKINDLE_SUPERVISOR_PID": str(os.getpid()),
        "REKINDLE_SYSTEM": mark,
        "REKINDLE_WORKER": "worker:tag:0",
    }


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Starts workers, each the leader of a session, and ends what is left of them."""
    peers: list[Peer] = []

    def start(target: str | list[str], *, heartbeat_s: float = 0.05, **changes: str | None) -> Peer:
        ours, theirs = socket.socketpair()
        with theirs:
            env = environment | {
                "REKINDLE_FD": str(theirs.fileno()),
                "REKINDLE_HEARTBEAT_S": str(heartbeat_s),
            }
            env = {key: value for key, value in (env | changes).items() if value is not None}
            process = subprocess.Popen(
                runner(target) if isinstance(target, str) else target,
                env=env,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        peers.append(Peer(process, ours))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Tells whether a process that need not be a child ends by the deadline."""
    return lambda pid: ends(pid, within_s=DEADLINE_S)


@pytest.fixture
def script() -> Callable[[str], list[str]]:
    """The command that runs one of the worker's scripts by path, in an isolated interpreter."""
    return lambda name: [sys.executable, "-I", "-S", str(IMPORT_ROOT / "rekindle" / "worker" / name)]


def runner(target: str) -> list[str]:
    """The command that runs a target; one without a module is a function of `workers.py`."""
    return [sys.executable, "-m", "rekindle.worker.run", target if ":" in target else f"workers:{target}"]


def ends(pid: int, within_s: float) -> bool:
    """Whether the process ends, or is gone already; a zombie has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)
