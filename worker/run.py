"""The runner: `python -m rekindle.worker.run package.module:function`.

It runs an importable function as a process: it ties the process to its supervisor, turns
SIGTERM into a request to stop, and calls the function, with the `Worker` if it takes a
positional parameter. A coroutine function is run by asyncio.

Exit codes: 0 when the function returns, regardless of the value; the code given to `sys.exit`; 1
after an exception, with its traceback on stderr; `CANNOT_START` when there is nothing to call.

Stacks and the exception that ends the process go to a separate file (`crash_dump`).
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import CoroutineType, FrameType, FunctionType

from . import crash_dump
from .crash_dump import STACK_SIGNAL, CrashDump
from .handle import Worker
from .pdeathsig import die_with_parent

CANNOT_START = 3

VARIADIC = 0x04  # inspect.CO_VARARGS, without the cost of inspect


def main(arguments: list[str]) -> int:
    """Run the target that the arguments name; the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m rekindle.worker.run package.module:function\n")
        return CANNOT_START
    if not _tie_to_supervisor():
        return CANNOT_START
    dump = crash_dump.inherited()
    worker = Worker()
    if dump is not None:
        worker.shows_stacks_on(STACK_SIGNAL)
    _prepare_process(worker)
    function = _load(arguments[0], dump)
    if function is None:
        return CANNOT_START
    try:
        _call(function, worker)
    except Exception as error:
        _tell(dump, error)
        raise
    finally:
        if worker.orphaned:
            _end_what_it_started()
    return 0


def _tie_to_supervisor() -> bool:
    """Have SIGTERM sent when the supervisor's thread ends; False if the supervisor is already gone."""
    die_with_parent(signal.SIGTERM)
    supervisor = os.environ.get("REKINDLE_SUPERVISOR_PID")
    return supervisor is None or int(supervisor) == os.getppid()


def _prepare_process(worker: Worker) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # In a fork of a warm process the application is imported already, and its own handlers stay.
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _Terminate(worker))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # A handler instead of SIG_IGN, which the programs that a worker starts would inherit.
        signal.signal(signal.SIGINT, _ignore)
    if sys.stdout is not None and not sys.stdout.line_buffering:
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    take_over_import_path()


def take_over_import_path() -> None:
    """Use the host's import path; the variables for it are not for the programs that the worker starts."""
    host_path = os.environ.pop("REKINDLE_PATH", None)
    if host_path is None:
        return
    entries = host_path.split(os.pathsep) if host_path else []
    sys.path[:] = entries + [own for own in sys.path if own not in entries]
    own_path = os.environ.pop("REKINDLE_PYTHONPATH", None)
    if own_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = own_path


class _Terminate:
    """The handler of SIGTERM: it stops the worker. A forked child gets the default action back.

    Otherwise `terminate` of multiprocessing would only stop the child's copy of the worker, and wait
    indefinitely. SIGTERM is blocked during a fork, because the interpreter loses a signal that
    reaches a child before it is ready.
    """

    def __init__(self, worker: Worker) -> None:
        self._stop = worker.stop
        self._fork = threading.local()
        atexit.register(self._at_exit)
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._after_fork_in_child,
        )

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        # In another thread: the interrupted code may hold the lock of the event that `stop` sets.
        # While the interpreter shuts down no thread can be started, and the process ends anyway.
        with suppress(RuntimeError):
            _thread.start_new_thread(self._stop, ())

    def _at_exit(self) -> None:
        # The interpreter restores the default action before it ends; a late SIGTERM would then turn
        # a clean exit into a death by signal.
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _before_fork(self) -> None:
        self._fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def _after_fork(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._fork.mask)

    def _after_fork_in_child(self) -> None:
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._after_fork()


def _ignore(signum: int, frame: FrameType | None) -> None:
    pass


def _tell(dump: CrashDump | None, error: Exception) -> None:
    if dump is not None:
        dump.tell(error, skip=__file__)


def _load(target: str, dump: CrashDump | None) -> Callable[..., object] | None:
    """The function that the target names; None, with the reason on stderr, if it cannot be loaded."""
    import importlib

    module_name, _, path = target.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
        if not callable(found):
            raise TypeError(f"{path} is a {type(found).__name__}, not a function")
        if isinstance(found, type) and any(_is_job_worker(each) for each in found.__mro__):
            raise TypeError(f"{path} is a class: its method runs it, {target}.main")
    except Exception as error:  # noqa: BLE001 - a module may raise anything while it is imported
        import traceback

        sys.stderr.write(f"rekindle: cannot start {target}: {type(error).__name__}: {error}\n")
        traceback.print_exc()
        _tell(dump, error)
        return None
    return found


def _is_job_worker(found: type) -> bool:
    """Whether it is the class of job workers, which a worker without a queue does not load."""
    return found.__name__ == "JobWorker" and found.__module__.startswith("rekindle.worker.jobs")


def _call(function: Callable[..., object], worker: Worker) -> None:
    if not getattr(function, "slow_start", False):
        worker.healthy()
    result = function(worker) if _takes_worker(function) else function()
    if isinstance(result, CoroutineType):
        import asyncio

        asyncio.run(result)


def _takes_worker(function: Callable[..., object]) -> bool:
    """Whether the function can be called with one positional argument."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        return bool(function.__code__.co_argcount or function.__code__.co_flags & VARIADIC)
    import inspect

    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    positional = {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    }
    return bool(kinds & positional)


def _end_what_it_started() -> None:
    """Ask the rest of the process group to end, since the supervisor is gone."""
    if os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
