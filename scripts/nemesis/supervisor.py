"""One `rekindle run` after the other, on one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from rekindle.cli.client import ControlClient, ControlError

from .fleet.witness import FOLDER
from .journal import Journal
from .processes import left_over

ROOT = Path(__file__).parents[2]
STOP_S = 60.0


class Supervisor:
    """The current supervisor of a run, if there is one."""

    def __init__(self, folder: Path, state: Path, journal: Journal) -> None:
        self.file = folder / "workers.toml"
        self.log = folder / "supervisor.log"
        self.client = ControlClient(state / "control.sock", timeout_s=3.0)
        self._folder = folder
        self._journal = journal
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    @property
    def pid(self) -> int | None:
        """Its pid; None if none runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start one, unless one runs."""
        if self._process is not None:
            return
        paths = [str(ROOT / "scripts" / "import_root"), str(ROOT)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rekindle.cli", "run", str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), FOLDER: str(self._folder)},
                start_new_session=True,
            )
        self._began = time.monotonic()

    def answers(self) -> bool:
        """Whether it answers requests."""
        try:
            self.client.get("/info", timeout_s=1.0)
        except ControlError:
            return False
        return True

    def has_ended(self) -> bool:
        """Whether it ended by itself; that is noted once."""
        if self._process is None or self._process.poll() is None:
            return False
        self._note_end("itself")
        return True

    def signal(self, number: int) -> None:
        """Send it a signal."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it as the kernel does when memory runs out."""
        if self._process is None or self.has_ended():
            return
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._note_end("killed")

    def stop(self) -> None:
        """Stop it in order, and note its exit code."""
        if self._process is None or self.has_ended():
            return
        self.signal(signal.SIGCONT)
        ordered = time.monotonic()
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._journal.note("orphan", text=f"supervisor {self.pid} did not stop within {STOP_S:g} s")
            self._process.kill()
            self._process.wait()
        self._note_end("stopped", stop_ordered=ordered)

    def _note_end(self, end: str, **more: object) -> None:
        assert self._process is not None
        ended = time.monotonic()
        self._journal.note(
            "supervisor",
            pid=self.pid,
            began=self._began,
            ended=ended,
            end=end,
            code=self._process.returncode,
            **more,
        )
        if end == "stopped":
            # The workers of one that was killed before it may still be ending.
            left = [process for process in left_over(self._folder) if process.supervisor == self.pid]
            for process in left:
                self._journal.note("orphan", text=f"{process} outlived supervisor {self.pid} when it stopped")
        self._process = None
