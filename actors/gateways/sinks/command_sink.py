"""Runs a command for an alert: a list of arguments, never a shell string; the alert as JSON on stdin."""

from __future__ import annotations

import os

from ...processes.run_tool import run_tool
from ..settings.alert_command import filled
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
        ran = run_tool(
            words, cwd=None, env=os.environ, timeout_s=self._timeout_s, given=notification.document()
        )
        if ran.exit is None:
            raise OSError(f"took longer than {self._timeout_s:g} s")
        if not ran.well:
            output = ran.output.decode(errors="replace").strip()[-200:]
            raise OSError(f"{ran.exit}: {output}")
