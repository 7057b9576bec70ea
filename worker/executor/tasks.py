"""Runs an executor's tasks inside a supervised process, one after another.

The executor listens on a socket that `REKINDLE_TASKS` names. The worker connects, identifies itself,
receives its setup, and then one task at a time. It reports the start of a task before it runs it, so
a death is attributed to the task that had started, and to no other.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import os
import socket
import sys
import traceback
from contextlib import suppress
from types import ModuleType, TracebackType

from .. import values
from ..handle import Worker
from . import task_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAIN = "__rekindle_main__"
"""The `__name__` of the host's program here, so that code under its `__main__` guard does not run."""

LAST_WAIT_S = 10.0
"""How long a worker waits to be asked to stop after the executor closed the connection."""

CANNOT_START = 3

loading_main = False
"""The host's program is being loaded in a worker: it must not create an executor meanwhile."""


def serve(worker: Worker) -> None:
    """Run tasks until the executor closes the connection."""
    faulthandler.enable(all_threads=False)  # a segmentation fault then shows its line on stderr
    address, _, token = os.environ.pop("REKINDLE_TASKS").rpartition(":")
    hello = values.dumps({"token": token, "generation": worker.generation})
    with socket.socket(socket.AF_UNIX) as connection, suppress(ConnectionError, FileNotFoundError):
        connection.connect(address)
        task_wire.send(connection, task_wire.HELLO, 0, hello)
        _work(connection)
    # Wait for the request to stop: an earlier exit would look like a crash.
    worker.wait(LAST_WAIT_S)


def _work(connection: socket.socket) -> None:
    first = task_wire.receive(connection)
    if first is None:
        return
    runner = TaskRunner(first[2])
    task_wire.send(connection, task_wire.READY, 0, b"")
    while (message := task_wire.receive(connection)) is not None:
        _, task, payload = message
        task_wire.send(connection, task_wire.STARTED, task, b"")
        kind, outcome = runner.run(payload)
        task_wire.send(connection, kind, task, outcome)


class TaskRunner:
    """Runs tasks with the executor's program, codec and initializer."""

    def __init__(self, setup: bytes | bytearray) -> None:
        wanted: Any = values.loads(setup)
        self._program: dict[str, str] | None = wanted["program"]
        self._codec: Any = None
        if wanted["codec"] is not None:
            load_main(self._program)  # the codec may need classes that are defined there
            self._codec = resolve(wanted["codec"])
        if wanted["initializer"] is not None:
            self._initialize(wanted["initializer"])

    def _initialize(self, payload: bytes) -> None:
        try:
            self._call(payload)
        except Exception:  # noqa: BLE001 - the host's own code may raise anything
            traceback.print_exc()
            sys.exit(CANNOT_START)

    def run(self, payload: bytes | bytearray) -> tuple[int, bytes]:
        """Run one task; the kind and payload of the message about its outcome."""
        try:
            result = self._call(payload)
            written = self._result(result)
            if len(written) > task_wire.MOST_BYTES:
                raise ValueError(f"the result takes {len(written)} bytes, of at most {task_wire.MOST_BYTES}")
        except BaseException as error:  # noqa: BLE001 - every exception goes to the caller
            return task_wire.RAISED, encoded_error(error)
        return task_wire.RETURNED, written

    def _call(self, payload: bytes | bytearray) -> object:
        if self._codec is not None:
            function, arguments, named = self._codec.loads(payload)
            return function(*arguments, **named)
        call: Any = values.loads(payload)
        target, arguments, named = call
        return self._function(target)(*arguments, **named)

    def _function(self, target: str) -> Any:
        if not target.startswith("__main__:"):
            return resolve(target)
        load_main(self._program)
        try:
            return resolve(target)
        except AttributeError:
            raise AttributeError(
                f"a worker that loads the program does not find {target}: define it outside of"
                " `if __name__ == '__main__':`"
            ) from None

    def _result(self, result: object) -> bytes:
        if self._codec is not None:
            return bytes(self._codec.dumps(result))
        try:
            return values.dumps(result, "the result")
        except TypeError as error:
            raise TypeError(
                f"{error}, which cannot be sent back; give the executor a codec, or return plain values"
            ) from None


def resolve(target: str) -> Any:
    """The object that `package.module:name` names, or the module itself without a name."""
    module_name, _, path = target.partition(":")
    module = sys.modules.get(module_name) or importlib.import_module(module_name)
    named: Any = module
    for name in path.split(".") if path else ():
        named = getattr(named, name)
    return named


def load_main(program: dict[str, str] | None) -> None:
    """Load the host's program as a module, once, for its functions and classes."""
    global loading_main
    if MAIN in sys.modules or program is None:
        return
    loading_main = True
    try:
        module = _loaded(program)
    except BaseException:
        sys.modules.pop(MAIN, None)
        raise
    finally:
        loading_main = False
    sys.modules[MAIN] = sys.modules["__main__"] = module


def _loaded(program: dict[str, str]) -> ModuleType:
    if "name" in program:
        return importlib.import_module(program["name"])
    spec = importlib.util.spec_from_file_location(MAIN, program["path"])
    if spec is None or spec.loader is None:
        raise ImportError(f"{program['path']} cannot be imported")
    module = sys.modules[MAIN] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def encoded_error(error: BaseException) -> bytes:
    """An exception as data: the name of its class, its state, and its traceback as text."""
    kind = type(error)
    module = "__main__" if kind.__module__ == MAIN else kind.__module__
    data: dict[str, object] = {
        "type": f"{module}:{kind.__qualname__}",
        "text": _text(error),
        "trace": "".join(traceback.format_exception(kind, error, _trace(error))),
        "state": {name: held for name, held in vars(error).items() if _travels(held)},
    }
    # The arguments of an OSError do not include its file name.
    args = error.__reduce__()[1] if isinstance(error, OSError) else error.args
    if _travels(args):
        data["args"] = args
    return values.dumps(data)


def _trace(error: BaseException) -> TracebackType | None:
    """Its traceback without the frames of this module, unless there are no others."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace or error.__traceback__


def _travels(value: object) -> bool:
    try:
        values.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the host's own code
        return f"<{type(error).__name__} that cannot be shown>"
