"""An exception of a task, rebuilt from the data that its worker sent.

A worker's bytes run no code here: a class is looked up among the loaded ones, and its `__init__` is not
called (so an exception whose `__init__` takes other arguments is rebuilt completely as well).
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


def raised(payload: bytes | bytearray) -> BaseException:
    """The exception, of its own class if that is loaded here, with the remote traceback as its cause."""
    data = values.loads(payload)
    if not isinstance(data, Mapping) or not isinstance(name := data.get("type"), str):
        return TaskError("unknown", "the worker sent an exception that cannot be decoded")
    error = _rebuilt(name, data)
    error.__cause__ = RemoteTraceback(str(data.get("trace", "")))
    return error


def _rebuilt(name: str, data: Mapping[str, Any]) -> BaseException:
    kind, args, state = _class(name), data.get("args"), data.get("state")
    fallback = TaskError(name.replace("builtins:", "").replace(":", "."), str(data.get("text", "")))
    if kind is None or not isinstance(args, tuple):
        return fallback
    try:
        # A builtin exception unpacks its arguments in `__init__`, which is not foreign code.
        error = kind(*args) if kind.__module__ == "builtins" else kind.__new__(kind, *args)
        if isinstance(state, dict):
            vars(error).update(state)
    except Exception:  # noqa: BLE001  # the host's class may raise anything
        return fallback
    return error


def _class(name: str) -> type[BaseException] | None:
    module, _, path = name.partition(":")
    found: Any = builtins if module == "builtins" else sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
