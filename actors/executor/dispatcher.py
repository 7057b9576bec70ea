"""Sends tasks to workers and receives their outcomes: one thread, one selector.

A real `System` starts, watches and restarts the workers, and reports their deaths as events. The
thread owns every connection and every assignment; other threads post orders to it. It holds no
reference to the executor, so that a dropped executor can be garbage-collected.
"""

from __future__ import annotations

import atexit
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from loguru import logger

from rekindle.worker import values
from rekindle.worker.executor import task_wire

from ..errors import ExecutorBrokenError, TaskTimeoutError, WorkerCrashedError
from ..messages import (
    Event,
    WorkerDied,
    WorkerFailed,
    WorkerStopped,
)
from ..processes.watch.transcript import OutputLine
from ..spec.policies.stop_policy import Urgency
from ..system.facade import System
from .assignments import Assignments, Task
from .calls import Calls, name_of
from .connection import Connection
from .order_queue import OrderQueue
from .remote_errors import raised
from .task_output import TaskOutput
from .task_socket import TaskSocket
from .worker_control import WorkerControl


class Dispatcher:
    """The thread behind one executor."""

    def __init__(
        self, calls: Calls, setup: bytes, *, tasks_per_child: int | None, shows_output: bool
    ) -> None:
        self.broken: str | None = None
        self._calls = calls
        self._setup = setup
        self._assignments = Assignments()
        self._tasks_per_child = tasks_per_child
        self._shows_output = shows_output
        self._tokens: Mapping[str, str] = {}
        self._system: System | None = None
        self._orders = OrderQueue()
        self._output = TaskOutput()
        self._connections: dict[str, Connection] = {}
        self._unidentified: set[Connection] = set()
        self._failed: dict[str, str] = {}
        self._closing = False
        self._ended = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._listener = TaskSocket()
        self._thread = threading.Thread(target=self._run, name="rekindle-executor", daemon=True)

    # ── for other threads ────────────────────────────────────────────────────────────────

    @property
    def address(self) -> str:
        """The path of the socket to which the workers connect."""
        return self._listener.path

    def start(self, system: System, tokens: Mapping[str, str]) -> None:
        """Start the workers and serve them; `tokens` maps each worker's secret token to its id."""
        self._system, self._tokens = system, tokens
        try:
            self._listener.listen()
            self._selector.register(self._listener.socket, selectors.EVENT_READ, self._accept)
            self._selector.register(self._orders, selectors.EVENT_READ, lambda _: None)
            system.open()
            self._control = WorkerControl(system)
            system.subscribe(self)
            if self._shows_output:
                system.follow_output(self._show)
            system.start()
        except BaseException:
            system.stop()
            self._close_sockets()
            raise
        # Daemon threads still run at that time: submitted tasks are finished, as in the standard executors.
        atexit.register(self._finish_at_exit)
        self._thread.start()

    def tell(self, message: Event) -> None:
        """Receive an event about the workers."""
        if isinstance(message, WorkerDied | WorkerFailed | WorkerStopped):
            self._orders.post(lambda: self._on_event(message))

    def submit(self, task: Task) -> None:
        """Queue a task."""
        self._orders.post(lambda: self._take(task))

    def close(self, cancel: bool = False) -> None:
        """Finish the submitted tasks, or with `cancel` only the begun ones, then end; does not wait."""
        self._orders.post(lambda: self._close(cancel))

    def interrupt(self) -> None:
        """Cancel the tasks that wait, fail the ones that run, and kill every worker; returns at once."""
        self._orders.post(self._interrupt)

    def finish(self) -> None:
        """Finish the submitted tasks, end, and wait for that; does nothing in a fork or in its own thread.

        Ctrl-C ends the wait: the tasks are then interrupted.
        """
        if not self._orders.is_ours or threading.current_thread() is self._thread:
            return
        self.close()
        try:
            # Not by joining the thread: an interrupted join takes it for ended.
            self._ended.wait()
        except KeyboardInterrupt:
            self.interrupt()
            self._ended.wait()
            raise

    def _finish_at_exit(self) -> None:
        """The same at the end of the program; one that Ctrl-C ends waits for no task."""
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            self.interrupt()
        self.finish()

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        with ExitStack() as at_the_end:
            at_the_end.callback(self._ended.set)
            at_the_end.callback(self._end)
            while not (self._closing and self._assignments.idle):
                self._run_once()

    def _run_once(self) -> None:
        for key, ready in self._selector.select(self._assignments.wait_s(time.monotonic())):
            self._guarded(key.data, ready)
        for order in self._orders.take():
            self._guarded(order)
        self._guarded(self._end_overdue_tasks)

    def _guarded(self, call: Callable[..., None], *args: int) -> None:
        try:
            call(*args)
        except Exception as error:  # noqa: BLE001  # one error must not leave all futures waiting
            logger.opt(exception=error).error("executor: an internal error; it continues")

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _take(self, task: Task) -> None:
        self._assignments.add(task)
        if self.broken is not None:
            self._fail_all(self.broken)
            return
        self._serve_idle_workers()

    def _close(self, cancel: bool) -> None:
        self._closing = True
        if cancel:
            for task in self._assignments.withdraw():
                task.future.cancel()
                task.future.set_running_or_notify_cancel()

    def _interrupt(self) -> None:
        assert self._system is not None
        self._close(cancel=True)
        for task in self._assignments.drain():
            task.future.set_exception(ExecutorBrokenError("the task was interrupted by Ctrl-C"))
        self._system.escalate_stop(Urgency.KILL)

    def _serve_idle_workers(self) -> None:
        for connection in tuple(self._connections.values()):
            if connection.ready and not self._serve(connection):
                return

    def _serve(self, connection: Connection) -> bool:
        """Give an idle worker the next task; False if there is none."""
        assert connection.worker is not None
        task = self._assignments.assign(connection.worker)
        if task is None:
            return False
        connection.ready = False
        connection.send(task_wire.RUN, task.number, task.payload)
        self._watch(connection)
        return True

    # ── messages from workers ────────────────────────────────────────────────────────────

    def _accept(self, _: int) -> None:
        line, _address = self._listener.socket.accept()
        connection = Connection(line)
        self._unidentified.add(connection)
        self._selector.register(line, selectors.EVENT_READ, lambda ready: self._on_ready(connection, ready))

    def _watch(self, connection: Connection) -> None:
        """Watch whether more can be sent while there is more to send."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.sends else 0)
        key = self._selector.get_key(connection.line)
        if key.events != events:
            self._selector.modify(connection.line, events, key.data)

    def _on_ready(self, connection: Connection, ready: int) -> None:
        if ready & selectors.EVENT_WRITE:
            connection.flush()
            self._watch(connection)
        if ready & selectors.EVENT_READ and not self._receive(connection):
            # The event of its death decides about its task.
            self._drop(connection)
            self._check_supervisor()

    def _receive(self, connection: Connection) -> bool:
        messages, open_still = connection.receive()
        for kind, number, payload in messages:
            self._on_message(connection, kind, number, payload)
        return open_still

    def _on_message(self, connection: Connection, kind: int, number: int, payload: bytes | bytearray) -> None:
        if connection.worker is None:
            self._identify(connection, payload)
        elif kind == task_wire.READY:
            connection.ready = True
            self._serve(connection)
        elif kind == task_wire.STARTED:
            self._assignments.begun(connection.worker, number, time.monotonic())
        elif kind in (task_wire.RETURNED, task_wire.RAISED):
            self._finished(connection, kind, number, payload)

    def _identify(self, connection: Connection, payload: bytes | bytearray) -> None:
        with suppress(ValueError):
            match values.loads(payload):
                case {"token": str(token), "generation": int(generation)} if token in self._tokens:
                    self._unidentified.discard(connection)
                    id_ = self._tokens[token]
                    connection.worker = (id_, generation)
                    self._connections[id_] = connection
                    self._failed.pop(id_, None)
                    connection.send(task_wire.SETUP, 0, self._setup)
                    return
        self._drop(connection)

    def _finished(self, connection: Connection, kind: int, number: int, payload: bytes | bytearray) -> None:
        assert connection.worker is not None
        task = self._assignments.finished(connection.worker, number)
        if task is None:
            return
        connection.done += 1
        # The worker gets its next task before the future's callbacks run, which may be slow.
        if connection.done == self._tasks_per_child:
            self._renew(connection)
        else:
            connection.ready = True
            self._serve(connection)
        self._settle(task, kind, payload)

    def _settle(self, task: Task, kind: int, payload: bytes | bytearray) -> None:
        try:
            if kind == task_wire.RAISED:
                task.future.set_exception(raised(payload))
            else:
                task.future.set_result(self._calls.result(payload))
        except Exception as error:  # noqa: BLE001  # the host's codec may raise anything
            task.future.set_exception(error)

    def _renew(self, connection: Connection) -> None:
        """Replace a process that has reached its limit of tasks."""
        assert connection.worker is not None
        self._drop(connection)
        self._control.renew(connection.worker)

    def _drop(self, connection: Connection) -> None:
        if connection.line.fileno() == -1:
            return
        self._selector.unregister(connection.line)
        with suppress(OSError):
            # A fork of the host may hold it open: the worker would not notice a close alone.
            connection.line.shutdown(socket.SHUT_RDWR)
        connection.line.close()
        connection.ready = False
        self._unidentified.discard(connection)
        if connection.worker is not None and self._connections.get(connection.worker[0]) is connection:
            del self._connections[connection.worker[0]]

    # ── events about workers ─────────────────────────────────────────────────────────────

    def _on_event(self, event: WorkerDied | WorkerFailed | WorkerStopped) -> None:
        match event:
            case WorkerDied():
                self._died(event)
            case WorkerStopped(component_id=id_, generation=generation):
                self._drain(id_, generation)
                self._assignments.give_back((id_, generation))
                self._serve_idle_workers()
                self._control.note_end((id_, generation))
            case WorkerFailed(component_id=id_, generation=generation, reason=reason):
                if not self._control.is_excused((id_, generation)):
                    self._failed[id_] = reason
                    self._check_any_left()

    def _died(self, event: WorkerDied) -> None:
        death = event.death
        worker = (death.component_id, death.generation)
        self._drain(*worker)
        task, given_up = self._assignments.died(death)
        if task is not None:
            self._control.restart_without_penalty(worker)
        self._control.note_end(worker)
        self._serve_idle_workers()
        if task is not None and given_up:
            task.future.set_exception(WorkerCrashedError(name_of(task.function), task.deaths))

    def _drain(self, component_id: str, generation: int) -> None:
        """Process the last messages of a worker that ended: a task that it finished did not crash."""
        connection = self._connections.get(component_id)
        if connection is not None and connection.worker == (component_id, generation):
            connection.ready = False
            while self._receive(connection) and connection.line.fileno() != -1:
                if not connection.is_readable:
                    break
            self._drop(connection)

    def _end_overdue_tasks(self) -> None:
        for worker, task in self._assignments.overdue(time.monotonic()):
            assert task.timeout_s is not None
            connection = self._connections.get(worker[0])
            if connection is not None and connection.worker == worker:
                self._drop(connection)
            self._control.kill(worker)
            task.future.set_exception(TaskTimeoutError(name_of(task.function), task.timeout_s, worker[0]))

    def _check_any_left(self) -> None:
        if len(self._failed) == len(self._tokens):
            self.broken = next(iter(self._failed.values()))
            self._fail_all(self.broken)

    def _check_supervisor(self) -> None:
        """Fail all tasks if the host stopped every actor of its process: no more events will come."""
        if not self._control.is_alive:
            self.broken = "its supervisor was stopped"
            self._fail_all(self.broken)

    def _fail_all(self, why: str) -> None:
        for task in self._assignments.drain():
            if task.future.running() or task.future.set_running_or_notify_cancel():
                task.future.set_exception(ExecutorBrokenError(f"no worker can be started: {why}"))

    def _show(self, line: OutputLine) -> None:
        self._output.add(line)
        self._orders.post(self._output.show)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _end(self) -> None:
        assert self._system is not None
        # A worker that is still starting must not connect and wait for a task.
        self._selector.unregister(self._listener.socket)
        self._listener.close()
        for connection in (*self._connections.values(), *self._unidentified):
            self._drop(connection)
        self._system.stop()
        self._output.show()
        self._close_sockets()
        atexit.unregister(self._finish_at_exit)

    def _close_sockets(self) -> None:
        self._selector.close()
        self._listener.close()
        self._orders.close()
