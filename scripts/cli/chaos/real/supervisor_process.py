"""The process of a supervisor in a real run, and the channel to it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

START_S = 60.0
STOP_S = 90.0


class SupervisorProcess:
    """One supervisor, from its start to its end."""

    def __init__(self, folder: Path) -> None:
        """Start the process; it waits for `open`."""
        self.mark = ""
        self._folder = folder
        self._errors = (folder / "errors").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rekindle.cli.chaos.real.killable_supervisor", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._received = b""

    def open(self) -> None:
        """Make it open the store, and wait until its actors exist.

        Raises:
            RuntimeError: it ended instead; the text has its error output.
        """
        self._await("ready")
        self.send({"do": "open"})
        self.mark = self._await("mark")

    def _await(self, word: str) -> Any:
        deadline = time.monotonic() + START_S
        message = None
        while message is None and time.monotonic() < deadline:
            message = self.receive(1.0)
        if message is None or word not in message:
            self.kill()
            raise RuntimeError(f"the supervisor did not start: {self.errors()}")
        return message[word]

    def errors(self) -> str:
        """The end of its error output."""
        return (self._folder / "errors").read_text(errors="replace")[-2000:]

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._process.pid

    def send(self, order: dict[str, Any]) -> None:
        """Send it an order, unless it has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, within_s: float) -> dict[str, Any] | None:
        """Its next message, `{"ended": …}` at its end; None if none arrives in time."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._received:
            left = deadline - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(0.0, left))[0]:
                return None
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                return {"ended": True}
            self._received += data
        line, self._received = self._received.split(b"\n", 1)
        document: dict[str, Any] = json.loads(line)
        return document

    def signal(self, signum: int) -> None:
        """Send it a signal."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signum)

    def stop(self) -> int:
        """Make it stop everything; return its exit code."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            return self._process.wait()
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill it if it has not ended, and close its streams."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
