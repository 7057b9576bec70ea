"""What other processes read of this one: its command line and its environment, rewritten in place.

The kernel shows the memory that the process was started with. A fork of a warm process has that of the warm
process, until it writes its own words there. There is as much room as there was at the start.
"""

from __future__ import annotations

import ctypes
import os

ARG_START, ENV_END = 47, 50
"""The fields of /proc/self/stat, counted from 0."""


class ProcessText:
    """The two areas. Without access to them (a kernel without /proc), nothing is written."""

    def __init__(self) -> None:
        try:
            with open("/proc/self/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            places = [int(field) for field in fields[ARG_START - 2 : ENV_END - 1]]
        except (OSError, ValueError):
            places = [0, 0, 0, 0]
        self._command, self._command_end, self._environment, self._environment_end = places

    def set_command(self, *words: str) -> None:
        """Show this command line."""
        room = self._command_end - self._command
        if room > 0:
            text = b"\0".join(map(os.fsencode, words))
            ctypes.memmove(self._command, text[: room - 1].ljust(room, b"\0"), room)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Show these values where a variable of that name, with enough room, is in the environment."""
        block = ctypes.string_at(self._environment, self._environment_end - self._environment)
        place = 0
        for entry in block.split(b"\0"):
            name = os.fsdecode(entry.partition(b"=")[0])
            if name in variables:
                shown = os.fsencode(f"{name}={variables[name]}")
                if len(shown) <= len(entry):
                    ctypes.memmove(self._environment + place, shown.ljust(len(entry), b"\0"), len(entry))
            place += len(entry) + 1
