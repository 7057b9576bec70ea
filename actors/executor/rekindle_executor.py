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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from types import MappingProxyType, ModuleType, TracebackType
from typing import Any, ParamSpec, TypeVar

import msgspec

from rekindle.worker import values
from rekindle.worker.executor import tasks

from ..errors import ExecutorBrokenError
from ..ports import Store
from ..spec.policies.health_policy import HealthPolicy
from ..spec.policies.restart_policy import RestartPolicy
from ..spec.policies.stop_policy import StopPolicy
from ..spec.program import MODULE, PythonCall
from ..spec.worker_spec import WorkerSpec
from ..system.facade import System
from .assignments import Task
from .calls import Calls, program_of_host
from .dispatcher import Dispatcher
from .null_store import NullStore

P = ParamSpec("P")
T = TypeVar("T")

SERVE = "rekindle.worker.executor.tasks:serve"

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
        show_output: bool = True,
        warm: bool | Sequence[str] = True,
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
            show_output: whether what tasks print appears on the host's stdout and stderr. The evidence of
                a crash has it in either case.
            warm: fork the processes from one that has imported the module of the first task's function
                already, or these modules; where that is not safe, each is executed.

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
        self._show_output = show_output
        self._warm = warm
        self._dispatcher: Dispatcher | None = None
        self._closed = False
        self._life = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a worker; the future of its outcome.

        A keyword is the function's own; only a `timeout` that the function does not take limits the time of
        the task. `schedule` has more options, whatever the function takes.

        Raises:
            TypeError: the function or an argument cannot be sent to a worker.
            ValueError: the timeout is not positive.
            RuntimeError: the executor has been shut down.
            ExecutorBrokenError: none of its workers can be started.
        """
        options, own = _split(TaskOptions(crash_retries=self._crash_retries), fn, kwargs)
        return self._submit(options, fn, args, own)

    def schedule(
        self,
        fn: Callable[..., T],
        /,
        args: Iterable[object] = (),
        kwargs: Mapping[str, object] = MappingProxyType({}),
        *,
        timeout: float | None = None,
        crash_retries: int | None = None,
    ) -> Future[T]:
        """Run `fn(*args, **kwargs)` in a worker with options of its own; the future of its outcome.

        Args:
            fn: the function.
            args: its positional arguments.
            kwargs: its keyword arguments, of which one may be called `timeout` too.
            timeout: how many seconds the task may run; see `with_options`.
            crash_retries: how often it is retried if it crashed its worker.

        Raises:
            ValueError: a number is too small.
            TypeError, RuntimeError, ExecutorBrokenError: as `submit` does.
        """
        return self._submit(self._options(timeout, crash_retries), fn, tuple(args), kwargs)

    def with_options(
        self, *, timeout: float | None = None, crash_retries: int | None = None
    ) -> ExecutorWithOptions:
        """The same executor, whose `submit` and `map` have other options.

        Args:
            timeout: how many seconds a task may run. A task that runs for longer raises
                `TaskTimeoutError`, and its process is killed. The time begins with the task, not with
                `submit`.
            crash_retries: how often a task that crashed its worker is retried.

        Raises:
            ValueError: a number is too small.
        """
        return ExecutorWithOptions(self, self._options(timeout, crash_retries))

    def _options(self, timeout: float | None, crash_retries: int | None) -> TaskOptions:
        _check_at_least(0, crash_retries=crash_retries)
        _check_timeout(timeout)
        return TaskOptions(timeout, self._crash_retries if crash_retries is None else crash_retries)

    def _submit(
        self,
        options: TaskOptions,
        fn: Callable[..., T],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Future[T]:
        payload = self._calls.written(fn, args, kwargs)
        future: Future[T] = Future()
        task = Task(fn, payload, future, options.crash_retries, options.timeout_s)
        with self._life:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            dispatcher = self._dispatcher or self._start(fn)
            if dispatcher.broken is not None:
                raise ExecutorBrokenError(f"no worker can be started: {dispatcher.broken}")
            dispatcher.submit(task)
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

    def _start(self, first: Callable[..., object]) -> Dispatcher:
        dispatcher = Dispatcher(
            self._calls, self._setup, tasks_per_child=self._tasks_per_child, shows_output=self._show_output
        )
        tokens = {secrets.token_hex(16): id_ for id_ in self._ids}
        call = PythonCall(SERVE, warm=warm_modules(self._warm, first))
        specs = [_spec(id_, call, f"{dispatcher.address}:{token}") for token, id_ in tokens.items()]
        dispatcher.start(System(specs, store=self._store or NullStore()), tokens)
        self._dispatcher = dispatcher
        # When the executor is dropped without a shutdown, submitted tasks are finished and all processes end.
        weakref.finalize(self, dispatcher.close).atexit = False
        return dispatcher


class TaskOptions(msgspec.Struct, frozen=True):
    """How a task is run."""

    timeout_s: float | None = None
    crash_retries: int = 0


class ExecutorWithOptions(Executor):
    """An executor whose tasks have options of their own; made by `RekindleExecutor.with_options`."""

    def __init__(self, executor: RekindleExecutor, options: TaskOptions) -> None:
        self._executor = executor
        self._options = options

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a worker; see `RekindleExecutor.submit`."""
        options, own = _split(self._options, fn, kwargs)
        return self._executor._submit(options, fn, args, own)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the executor down, which is the same one."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)


def warm_modules(warm: bool | Sequence[str], first: Callable[..., object]) -> bool | tuple[str, ...]:
    """What the process imports from which the workers are forked; False: each is executed.

    The program itself is not among them: only a worker may load it, under another name.
    """
    if warm is False:
        return False
    named = (getattr(first, "__module__", None),) if warm is True else tuple(warm)
    names = (name for name in named if isinstance(name, str) and MODULE.fullmatch(name))
    return tuple(dict.fromkeys((SERVE.partition(":")[0], *(name for name in names if name != "__main__"))))


def _spec(component_id: str, call: PythonCall, line: str) -> WorkerSpec:
    return WorkerSpec(
        component_id,
        call,
        restart=RESTART,
        health=HEALTH,
        stop=STOP,
        env={"REKINDLE_TASKS": line},
        # The host's own functions expect the host's environment.
        inherit_env=("*",),
    )


def _split(
    options: TaskOptions, fn: Callable[..., object], kwargs: Mapping[str, Any]
) -> tuple[TaskOptions, Mapping[str, Any]]:
    """The options of a task that is submitted, and the keywords of its function."""
    if "timeout" not in kwargs or _takes_timeout(fn):
        return options, kwargs
    own = dict(kwargs)
    timeout = own.pop("timeout")
    _check_timeout(timeout)
    return msgspec.structs.replace(options, timeout_s=timeout), own


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be more than 0 s, not {timeout}")


def _takes_timeout(fn: Callable[..., object]) -> bool:
    from inspect import Parameter, signature  # rarely needed

    try:
        parameters = signature(fn).parameters
    except (TypeError, ValueError):
        return True  # some functions in C do not say what they take
    own = parameters.get("timeout")
    by_name = own is not None and own.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return by_name or any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())


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
