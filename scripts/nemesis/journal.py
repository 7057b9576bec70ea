"""What the attacker does, as lines in a file: every signal, fault, order and job."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Journal:
    """The notes of the attacker; they are written at once, also by threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(self, what: str, **more: object) -> None:
        """Append a line."""
        line = {"what": what, "at": time.monotonic(), "wall_ms": time.time_ns() // 1_000_000, **more}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def notes(self, *what: str) -> list[dict[str, Any]]:
        """The lines of these kinds."""
        lines = map(json.loads, self._path.read_text().splitlines())
        return [line for line in lines if line["what"] in what]
