"""A command on a terminal of its own, as a person would sit before it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from types import TracebackType
from typing import Self

from tests.cli.conftest import COMMAND, Client
from tests.processes.waiting import PATIENCE_S

_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs a command on a pseudo-terminal, and reads what it draws."""

    def __init__(self, client: Client, *arguments: str, columns: int = 100, rows: int = 30) -> None:
        self.text = ""
        """Everything that was drawn, with what steers the terminal."""
        self._ours, theirs = pty.openpty()
        self.resize(columns, rows)
        variables = {**client.variables, "TERM": "xterm", **client.environment}
        try:
            # A session of its own, whose terminal this is: Ctrl-C goes through the terminal's driver.
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                env={name: value for name, value in variables.items() if name not in ("COLUMNS", "LINES")},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        finally:
            os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal another size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Press keys; b"\\x03" is Ctrl-C."""
        os.write(self._ours, keys)

    def read_until(self, wanted: str) -> str:
        """What is drawn from now on, up to and with the text that matches."""
        return self._read(lambda new: re.search(wanted, new) is not None, wanted)

    def end(self) -> int:
        """Read to the end; the exit code."""
        self._read(lambda _new: False, None)
        return self.process.wait(PATIENCE_S)

    def _read(self, enough: object, wanted: str | None) -> str:
        assert callable(enough)
        start, deadline = len(self.text), time.monotonic() + PATIENCE_S
        while not enough(self.text[start:]):
            ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{wanted!r} was not drawn in time: {self.text[start:]!r}"
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # the last process on this terminal has ended
                data = b""
            if not data:
                assert wanted is None, f"{wanted!r} was never drawn: {self.text[start:]!r}"
                break
            self.text += data.decode("utf-8", "replace")
        return self.text[start:]


def plain(text: str) -> str:
    """Without what steers the terminal."""
    return _STEERING.sub("", text).replace("\r", "")
