"""Runs a command for an alert: a list of arguments, never a shell string; the alert as JSON on stdin."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from ..settings.placeholders import filled
from .notification import Notification

TIMEOUT_S = 10.0


class CommandSink:
    """Runs a program for every notification."""

    def __init__(self, argv: tuple[str, ...], timeout_s: float = TIMEOUT_S) -> None:
        self._argv = argv
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return f"command {self._argv[0]}"

    def send(self, notification: Notification) -> None:
        """Run the command and wait for it.

        Raises:
            OSError: the command could not be started, failed, or took too long.
        """
        fields = notification.fields()
        words = [filled(word, fields) for word in self._argv]
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                _, errors = process.communicate(notification.document(), timeout=self._timeout_s)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise OSError(f"took longer than {self._timeout_s:g} s") from None
        if process.returncode:
            said = errors.decode(errors="replace").strip()[-200:]
            raise OSError(f"exited with code {process.returncode}: {said}")
