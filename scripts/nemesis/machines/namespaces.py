"""Commands of iproute2 and util-linux, and whether this machine may make namespaces at all.

No namespace gets a name: each lives as long as the process that was started in it, and that process is
killed with the attacker. So nothing is left behind, also after `kill -9`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PROGRAMS = ("ip", "bridge", "tc", "unshare", "nsenter", "setpriv")
START_S = 20.0

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""In front of a command: the kernel kills it when the thread that started it ends."""


class RoomError(RuntimeError):
    """No machine can be made here; the text says why."""


def obstacle() -> str | None:
    """Why this process cannot make machines; None if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is missing: install iproute2 and util-linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    tried = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--mount-proc", "ip", "link", "add", "try", "type", "bridge"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"the kernel refuses namespaces: {tried.stderr.strip()}" if tried.returncode else None


def run(*words: str | int) -> str:
    """The standard output of a command.

    Raises:
        RoomError: it has failed.
    """
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RoomError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def wait_for(found: Callable[[], T | None], what: str, within_s: float = START_S) -> T:
    """The first answer that is not None.

    Raises:
        RoomError: there is none in time.
    """
    deadline = time.monotonic() + within_s
    while (answer := found()) is None:
        if time.monotonic() > deadline:
            raise RoomError(f"waited {within_s:g} s for {what}")
        time.sleep(0.01)
    return answer


def children(pid: int) -> list[int]:
    """The children of the first thread of a process."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def namespace(pid: int, kind: str) -> str | None:
    """The namespace of a process; None if it is gone."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    return None


def state(pid: int) -> str:
    """The letter of the kernel for what a process does; empty if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
