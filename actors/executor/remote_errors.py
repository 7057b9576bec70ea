"""An exception of a task, rebuilt from what its worker told.

A worker's bytes run nothing here: a class is looked up among those that are loaded already, and its
`__init__` is not called (which is also why one with arguments of its own comes through whole).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from typing import Any

from rekindle.worker import values

from ..errors import TaskError


class RemoteTraceback(Exception):  # noqa: N818  # what the standard library calls its own
    """The traceback of a task, as text: the cause of the exception that its future raises."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace

    def __str__(self) -> str:
        return f'\n"""\n{self.trace}"""'


def raised(payload: bytes) -> BaseException:
    """The exception, of its own class where that is known here, with the remote traceback as its cause."""
    told = values.loads(payload)
    if not isinstance(told, Mapping) or not isinstance(name := told.get("type"), str):
        return TaskError("unknown", "the worker told nothing that can be understood")
    error = _rebuilt(name, told)
    error.__cause__ = RemoteTraceback(str(told.get("trace", "")))
    return error


def _rebuilt(name: str, told: Mapping[str, Any]) -> BaseException:
    kind, args, state = _class(name), told.get("args"), told.get("state")
    fallback = TaskError(name.replace("builtins:", "").replace(":", "."), str(told.get("text", "")))
    if kind is None or not isinstance(args, tuple):
        return fallback
    try:
        # A builtin one takes its arguments apart in `__init__`, and that is no code of anybody's.
        error = kind(*args) if kind.__module__ == "builtins" else kind.__new__(kind, *args)
        if isinstance(state, dict):
            vars(error).update(state)
    except Exception:  # noqa: BLE001  # whatever a class of the host makes of it
        return fallback
    return error


def _class(name: str) -> type[BaseException] | None:
    module, _, path = name.partition(":")
    found: Any = builtins if module == "builtins" else sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
