"""Orders that an agent proposed and a person has to confirm, as files in the state directory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = "proposals"
MOST_OPEN = 100
"""An agent must not fill the disk with proposals."""


@dataclass(frozen=True, slots=True)
class ProposedOrder:
    """One order for the supervisor: a route and its body, why, and who asked for it."""

    action: str
    path: str
    body: dict[str, Any]
    reason: str
    client: str

    @property
    def words(self) -> str:
        """What it would do, in a line."""
        what = " ".join(f"{name}={value}" for name, value in self.body.items())
        return f"{self.action} {self.path}{' ' + what if what else ''}"


class Proposals:
    """The open proposals of one supervisor."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    def add(self, order: ProposedOrder) -> int:
        """Keep an order for a person to confirm; returns its number.

        Raises:
            OSError: it cannot be written, or too many are open.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        numbers = [number for number, _ in self.open()]
        if len(numbers) >= MOST_OPEN:
            raise OSError(f"{MOST_OPEN} proposals are open already; confirm or reject some first")
        document = json.dumps({**asdict(order), "at": time.time()}).encode()
        number = max(numbers, default=0)
        while True:
            number += 1
            with suppress(FileExistsError):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with open(os.open(self._path(number), flags, 0o600), "wb") as file:
                    file.write(document)
                return number

    def open(self) -> Iterator[tuple[int, ProposedOrder]]:
        """The proposals that are neither confirmed nor rejected, the oldest first."""
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._folder), key=lambda each: each.zfill(20)):
                number = name.removesuffix(".json")
                if number.isdecimal() and (order := self._read(int(number))) is not None:
                    yield int(number), order

    def take(self, number: int) -> ProposedOrder | None:
        """Remove a proposal and return it; None if there is no such one. It is taken once."""
        order = self._read(number)
        if order is not None:
            try:
                self._path(number).unlink()
            except FileNotFoundError:
                return None  # another person was quicker
        return order

    def _read(self, number: int) -> ProposedOrder | None:
        try:
            document = json.loads(self._path(number).read_bytes())
            return ProposedOrder(**{name: document[name] for name in ProposedOrder.__slots__})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"
