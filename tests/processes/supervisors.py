"""Supervisors in processes of their own, for tests that kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.processes.waiting import PATIENCE_S

from rekindle.worker.guardian import marked_processes

ROOT = Path(__file__).parents[2]
IMPORT_PATH = os.pathsep.join([str(ROOT / "scripts" / "import_root"), str(ROOT)])


def python_process(*arguments: str) -> subprocess.Popen[str]:
    """A Python process that imports what we do."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd="/",
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Supervisor:
    """One supervisor of `supervisor.py`; use it as a context manager."""

    def __init__(self, setup: str, database: Path | str, *options: str) -> None:
        self.process = python_process("-m", "tests.processes.supervisor", setup, str(database), *options)
        self._mark: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def said(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        """Let one with the option `wait` start its workers."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def mark(self) -> str:
        """The mark of its system, once it runs."""
        if self._mark is None:
            self._mark = self.said().split()[1]
        return self._mark

    def family(self) -> list[int]:
        """Every process that carries its mark now."""
        return [pid for pid, _ in marked_processes(self.mark)]

    def guardian(self) -> int | None:
        """The process beside it that carries no mark."""
        return guardian_of(self.process.pid)

    def kill(self) -> None:
        """End it as the out-of-memory killer would, and see that it has ended."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Let it stop by itself; its exit code."""
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


def guardian_of(supervisor: int) -> int | None:
    """The guardian that a process has now, if it has one."""
    return next((pid for pid in children_of(supervisor) if b"guardian.py" in command_of(pid)), None)


def children_of(parent: int) -> list[int]:
    """The children of a process, whichever of its threads started them."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def command_of(pid: int) -> bytes:
    """The command line of a process; nothing once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
