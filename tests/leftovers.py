"""Ends what the tests have started if their process ends without doing so, for example because it was killed.

A process of its own holds a handle of each of these processes; the end of a pipe tells it that the tests
have ended. A killed supervisor leaves its workers to its guardian, so nothing else needs to be ended.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_WATCHERS: list[int] = []
"""The pipe to the watcher of this process."""

_DETACHED = 'exec 3<&0; "$@" <&3 3<&- &'
"""It is not a child of the tests: some look at their children."""


def start_watcher() -> None:
    """Start it before the first test, so that none finds a descriptor more than before."""
    if not _WATCHERS:
        theirs, ours = os.pipe()
        command = ["sh", "-c", _DETACHED, "sh", sys.executable, "-I", "-S", str(Path(__file__).resolve())]
        subprocess.run(
            command,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )
        os.close(theirs)
        _WATCHERS.append(ours)


def ends_with_tests(pid: int, signum: int = signal.SIGKILL) -> None:
    """Have a process end by this signal when the process of the tests has ended."""
    _tell(f"end {pid} {int(signum)}")


def removed_with_tests(folder: Path) -> None:
    """Have a folder removed when the process of the tests has ended."""
    _tell(f"remove {folder}")


def _tell(line: str) -> None:
    start_watcher()
    os.write(_WATCHERS[0], f"{line}\n".encode())


def watch() -> None:
    """Hold what the tests name, until they end."""
    held: dict[int, int] = {}
    folders: list[str] = []
    for line in sys.stdin:
        word, _, what = line.rstrip("\n").partition(" ")
        for handle in [each for each in held if select.select([each], [], [], 0)[0]]:
            os.close(handle)
            del held[handle]
        if word == "end":
            pid, signum = map(int, what.split())
            with suppress(ProcessLookupError):
                held[os.pidfd_open(pid)] = signum
        else:
            folders.append(what)
    for handle, signum in held.items():
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signum)
    for handle in held:
        select.select([handle], [], [], 10.0)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch()
