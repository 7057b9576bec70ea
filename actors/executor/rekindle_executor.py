"""`RekindleExecutor`: an `Executor` like the standard library's, on supervised workers.

    with RekindleExecutor(max_workers=4) as executor:
        futures = [executor.submit(convert, name) for name in names]

When a process dies, only the future of the task that it was running fails: it raises
`WorkerCrashedError` with the evidence. All other tasks run as if nothing had happened.
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import ModuleType, TracebackType
from typing import ParamSpec, TypeVar

from rekindle.worker import values
from rekindle.worker.executor import tasks

from ..errors import ExecutorBrokenError
from ..ports import Store
from ..spec.policies.health_policy import HealthPolicy
from ..spec.policies.restart_policy import RestartPolicy
from ..spec.policies.stop_policy import StopPolicy
from ..spec.program import PythonCall
from ..spec.worker_spec import WorkerSpec
from ..system.facade import System
from .assignments import Assignments, Task
from .calls import Calls, program_of_host, target_of
from .dispatcher import Dispatcher
from .null_store import NullStore

P = ParamSpec("P")
T = TypeVar("T")

RESTART = RestartPolicy(
    max_in_window=None,
    max_lifetime=None,
    max_consecutive=5,
    initial_delay_s=0.25,
    max_delay_s=30.0,
    min_delay_s=0.0,
    immediate_first=True,
    reset_after_healthy_s=60.0,
    give_up_exit_codes=(tasks.CANNOT_START,),
)
"""For deaths that no task caused: after five in a row the worker is given up."""

HEALTH = HealthPolicy(staleness_s=None, heartbeat_interval_s=60.0)
"""No staleness limit, since a task may block the interpreter for any time."""

STOP = StopPolicy(ask_s=2.0, term_s=2.0)


class RekindleExecutor(Executor):
    """Runs calls in supervised processes; a crash fails one future, never the executor."""

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[object, ...] = (),
        max_tasks_per_child: int | None = None,
        crash_retries: int = 0,
        codec: ModuleType | str | None = None,
        store: Store | None = None,
        name: str = "executor",
    ) -> None:
        """Describe an executor; its processes start with the first task.

        Args:
            max_workers: how many processes; default: the number of usable processors.
            initializer: called in every new process before its first task.
            initargs: the arguments of the initializer.
            max_tasks_per_child: a process that has finished this many tasks is replaced.
            crash_retries: how often a task that crashed its worker is retried.
            codec: turns calls and results into bytes: a module with `dumps` and `loads`, or
                `"package.module:object"`. Without it functions are sent by name, and values as data.
            store: persists deaths, and is closed with the executor; default: nothing is persisted.
            name: the prefix of the workers' ids.

        Raises:
            ValueError: a number is too small.
            TypeError: the initializer or the codec cannot be sent to a worker.
            RuntimeError: it is created while a worker loads the host's program.
        """
        _refuse_in_worker()
        _check_at_least(1, max_workers=max_workers, max_tasks_per_child=max_tasks_per_child)
        _check_at_least(0, crash_retries=crash_retries)
        workers = max_workers or len(os.sched_getaffinity(0))
        self._ids = tuple(f"{name}:{number}" for number in range(workers))
        self._calls = Calls(codec)
        first = None if initializer is None else self._calls.written(initializer, initargs, {})
        setup = {"program": program_of_host(), "codec": self._calls.codec_name, "initializer": first}
        self._setup = values.dumps(setup)
        self._store = store
        self._crash_retries = crash_retries
        self._tasks_per_child = max_tasks_per_child
        self._dispatcher: Dispatcher | None = None
        self._closed = False
        self._life = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a worker; the future of its outcome.

        Raises:
            TypeError: the function or an argument cannot be sent to a worker.
            RuntimeError: the executor has been shut down.
            ExecutorBrokenError: none of its workers can be started.
        """
        payload = self._calls.written(fn, args, kwargs)
        future: Future[T] = Future()
        with self._life:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            dispatcher = self._dispatcher or self._start()
            if dispatcher.broken is not None:
                raise ExecutorBrokenError(f"no worker can be started: {dispatcher.broken}")
            dispatcher.submit(Task(_name(fn), payload, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks, finish the submitted ones, and end every process.

        Args:
            wait: return only when all of that is done.
            cancel_futures: cancel the tasks that have not begun.
        """
        with self._life:
            self._closed = True
            dispatcher = self._dispatcher
        if dispatcher is not None:
            dispatcher.close(cancel=cancel_futures)
            if wait:
                dispatcher.finish()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shut down and wait. After Ctrl-C the tasks are interrupted, not waited for."""
        if isinstance(error, KeyboardInterrupt) and self._dispatcher is not None:
            self._dispatcher.interrupt()
        self.shutdown(wait=True)

    def _start(self) -> Dispatcher:
        dispatcher = Dispatcher(
            self._calls, self._setup, Assignments(self._crash_retries), self._tasks_per_child
        )
        tokens = {secrets.token_hex(16): id_ for id_ in self._ids}
        specs = [_spec(id_, f"{dispatcher.address}:{token}") for token, id_ in tokens.items()]
        dispatcher.start(System(specs, store=self._store or NullStore()), tokens)
        self._dispatcher = dispatcher
        # When the executor is dropped without a shutdown, submitted tasks are finished and all processes end.
        weakref.finalize(self, dispatcher.close).atexit = False
        return dispatcher


def _spec(component_id: str, line: str) -> WorkerSpec:
    return WorkerSpec(
        component_id,
        PythonCall("rekindle.worker.executor.tasks:serve"),
        restart=RESTART,
        health=HEALTH,
        stop=STOP,
        env={"REKINDLE_TASKS": line},
        # The host's own functions expect the host's environment.
        inherit_env=("*",),
    )


def _name(function: Callable[..., object]) -> str:
    try:
        return target_of(function)
    except TypeError:
        return f"{function!r:.80}"


def _check_at_least(least: int, **given: int | None) -> None:
    for name, value in given.items():
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, is {value}")


def _refuse_in_worker() -> None:
    if tasks.loading_main:
        raise RuntimeError(
            "an executor was created while a worker loads the program; put the code that creates it under"
            " `if __name__ == '__main__':`"
        )
