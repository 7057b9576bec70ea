"""Small texts that are remembered by name across restarts, such as the position of a gateway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from ..facts.records import MetaSet


class RememberedTexts:
    """The remembered texts. Safe to use from any thread; never waits for the store."""

    def __init__(self, known: Mapping[str, str], keep: Callable[[MetaSet], object]) -> None:
        """Take what a former run left, and the function that persists changes."""
        self._known = dict(known)
        self._keep = keep
        self._lock = threading.Lock()

    def get(self, name: str) -> str | None:
        """What is remembered under this name."""
        with self._lock:
            return self._known.get(name)

    def set(self, name: str, text: str) -> None:
        """Remember this from now on."""
        with self._lock:
            self._known[name] = text
        self._keep(MetaSet(name, text))
