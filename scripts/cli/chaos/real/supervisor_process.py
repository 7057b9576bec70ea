"""The process of a supervisor in a real run, and how to talk to it."""

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
        self._heard = b""

    def open(self) -> None:
        """Have it open the store, and wait until its actors are there.

        Raises:
            RuntimeError: it ended instead; what it wrote is in the text.
        """
        self._await("ready")
        self.say({"do": "open"})
        self.mark = self._await("mark")

    def _await(self, word: str) -> Any:
        deadline = time.monotonic() + START_S
        said = None
        while said is None and time.monotonic() < deadline:
            said = self.hear(1.0)
        if said is None or word not in said:
            self.kill()
            raise RuntimeError(
                f"the supervisor did not start: {(self._folder / 'errors').read_text()[-2000:]}"
            )
        return said[word]

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def say(self, order: dict[str, Any]) -> None:
        """Tell it something; nothing if it has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def hear(self, within_s: float) -> dict[str, Any] | None:
        """The next thing that it says, `{"ended": …}` at its end; None if nothing comes in time."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(0.0, left))[0]:
                return None
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                return {"ended": True}
            self._heard += data
        line, self._heard = self._heard.split(b"\n", 1)
        document: dict[str, Any] = json.loads(line)
        return document

    def signal(self, signum: int) -> None:
        """Send it a signal."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signum)

    def stop(self) -> int:
        """Let it stop everything; its exit code."""
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
        """End it, if it has not ended, and let go of it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
