"""A supervisor of others: how it is installed, and how it is run with a worker for every slot of an arena.

Everything that a peer starts has the variable BENCH_PEER with its folder, by which it is ended for good.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..arena import Arena
from ..floor import Programs

MARK = "BENCH_PEER"
END_S = 15.0
INSTALL_S = 180.0


class PeerMissingError(Exception):
    """The machine cannot get the peer; the text says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a peer is started."""

    command: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Peer:
    """A supervisor."""

    name: str
    install: Callable[[Path], None]
    """Installs it into a folder, or raises PeerMissingError."""
    launch: Callable[[Path, Path, Arena, Programs], Launch]
    """What runs it: its installation, a folder for this run, the arena, the programs in C."""
    is_python: bool = False
    """Whether its worker is a Python function; otherwise it is the trivial program in C."""


def run_tool(*command: str, cwd: Path | None = None) -> str:
    """Run an installer; its output.

    Raises:
        PeerMissingError: it fails, or takes too long.
    """
    if shutil.which(command[0]) is None:
        raise PeerMissingError(f"there is no {command[0]}")
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        raise PeerMissingError(f"{command[0]} takes longer than {INSTALL_S:g} s") from None
    if done.returncode != 0:
        last = done.stdout.strip().splitlines()[-1:] or [f"{command[0]} failed"]
        raise PeerMissingError(last[0])
    return done.stdout


@contextmanager
def running_peer(peer: Peer, installed: Path, folder: Path, arena: Arena, built: Programs) -> Iterator[None]:
    """Keep every slot's worker alive by the peer while the block runs.

    Raises:
        TimeoutError: not all of its workers start in time.
    """
    folder.mkdir()
    launch = peer.launch(installed, folder, arena, built)
    own = {"BENCH_ARENA": str(arena.path), "HOME": str(folder), MARK: str(folder)}
    environment = {**os.environ, **own, **launch.variables}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            launch.command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        arena.wait_until_all_run()
        yield
    finally:
        process.terminate()
        _end_marked(folder)
        process.wait()


def _end_marked(folder: Path) -> None:
    deadline = time.monotonic() + END_S
    while (pids := _marked(folder)) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _marked(folder: Path) -> list[int]:
    wanted, found = os.fsencode(f"{MARK}={folder}"), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found
