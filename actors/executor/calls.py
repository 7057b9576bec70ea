"""How a call is sent to a worker: the function by its name, its arguments as values."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Protocol

from rekindle.worker import values
from rekindle.worker.executor.task_wire import MOST_BYTES
from rekindle.worker.executor.tasks import resolve

HOW_TO = (
    "Functions are sent to a worker by name and values as data; for anything else pass a codec that both"
    " sides trust: a module with dumps and loads, such as RekindleExecutor(codec=cloudpickle)."
)

HINT = "cloudpickle also writes lambdas and closures: RekindleExecutor(codec=cloudpickle)."


class Codec(Protocol):
    """Turns any object into bytes and back, such as a module with these two functions."""

    def dumps(self, obj: Any, /) -> bytes:
        """The object as bytes."""
        ...

    def loads(self, data: Any, /) -> Any:
        """The object that was written."""
        ...


class Calls:
    """Writes calls, and reads their results."""

    def __init__(self, codec: ModuleType | str | None = None) -> None:
        """Use this codec: a module or `"package.module:object"`.

        Raises:
            TypeError: a worker could not find the codec, or it lacks `dumps` and `loads`.
        """
        self.codec_name = _codec_name(codec)
        self._codec: Codec | None = None if self.codec_name is None else resolve(self.codec_name)
        if self._codec is not None and not (hasattr(self._codec, "dumps") and hasattr(self._codec, "loads")):
            raise TypeError(f"the codec {self.codec_name} needs both dumps and loads")

    def written(
        self, function: Callable[..., object], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> bytes:
        """A call as bytes.

        Raises:
            TypeError: the function or a value cannot be sent; the message says which, and what to do.
            ValueError: the call is longer than a message may be.
        """
        if self._codec is not None:
            payload = self._encoded(self._codec, (function, args, dict(named)))
        else:
            payload = _plainly(function, args, dict(named))
        if len(payload) > MOST_BYTES:
            raise ValueError(f"the arguments take {len(payload)} bytes; the limit is {MOST_BYTES}")
        return payload

    def _encoded(self, codec: Codec, call: tuple[object, ...]) -> bytes:
        try:
            return bytes(codec.dumps(call))
        except Exception as error:
            hint = "" if self.codec_name == "cloudpickle" else f" {HINT}"
            raise TypeError(f"the codec {self.codec_name} cannot write this call: {error}.{hint}") from error

    def result(self, payload: bytes | bytearray) -> Any:
        """The result of a task."""
        return values.loads(payload) if self._codec is None else self._codec.loads(payload)


def _plainly(function: Callable[..., object], args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    while isinstance(function, functools.partial):
        args, named = (*function.args, *args), {**function.keywords, **named}
        function = function.func
    target = _known_target(function)
    try:
        return values.dumps([target, list(args), named])
    except TypeError:
        raise TypeError(f"{_culprit(args, named)}, which cannot be sent to a worker. {HOW_TO}") from None


def _culprit(args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Which argument cannot be written, and its type."""
    labelled = [(f"argument {place}", value) for place, value in enumerate(args, 1)]
    labelled += [(f"argument {name!r:.40}", value) for name, value in named.items()]
    try:
        for label, value in labelled:
            values.dumps(value, label)
    except TypeError as error:
        return str(error)
    return "an argument is nested too deeply"


def target_of(function: Callable[..., object]) -> str:
    """The name by which a worker finds a function, `package.module:name`.

    Raises:
        TypeError: the function cannot be found by name.
    """
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    shown = f"{path or function!r:.80}"
    if not isinstance(module, str) or not isinstance(path, str) or "<" in path:
        raise TypeError(f"{shown} is not a function of a module, so a worker cannot find it. {HOW_TO}")
    try:
        same = resolve(f"{module}:{path}") == function
    except (ImportError, AttributeError):
        same = False
    if not same:
        raise TypeError(f"{module}:{path} is another object than a worker would find by that name. {HOW_TO}")
    if module == "__main__" and program_of_host() is None:
        raise TypeError(f"{path} was entered interactively, not in a file; put it into a module. {HOW_TO}")
    return f"{module}:{path}"


def _known_target(function: Callable[..., object]) -> str:
    try:
        return _cached_target(function)
    except TypeError:  # it cannot be hashed, or found
        return target_of(function)


_cached_target = functools.lru_cache(maxsize=256)(target_of)


def name_of(function: Callable[..., object]) -> str:
    """A function's name, for messages."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}:{path}" if isinstance(module, str) and isinstance(path, str) else f"{function!r:.80}"


def program_of_host() -> dict[str, str] | None:
    """Where a worker finds the host's `__main__`; None if it was entered interactively."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return {"name": spec.name}
    file = getattr(main, "__file__", None)
    return {"path": os.path.abspath(file)} if file is not None and os.path.isfile(file) else None


def _codec_name(codec: ModuleType | str | None) -> str | None:
    if codec is None or isinstance(codec, str):
        return codec
    if isinstance(codec, ModuleType) and importlib.import_module(codec.__name__) is codec:
        return codec.__name__
    raise TypeError(
        f"a codec is a module, or the name of an object, 'package.module:object', not {codec!r:.80}"
    )
