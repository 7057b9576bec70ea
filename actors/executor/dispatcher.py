"""Hands tasks to workers and takes back what came of them: one thread, one selector.

Workers are those of a real `System`: it starts, watches and restarts them, and tells their deaths as
events. The thread owns every connection and every assignment; other threads post orders to it. It
knows nothing of the executor in front of it, so that one that is dropped can be collected.
"""

from __future__ import annotations

import atexit
import os
import secrets
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from loguru import logger

from rekindle.worker import task_wire, values

from ..errors import ExecutorBrokenError, WorkerCrashedError
from ..messages import (
    Event,
    ResetWorker,
    RestartWorker,
    StartWorkers,
    WorkerDied,
    WorkerFailed,
    WorkerStopped,
)
from ..runtime.resilient_actor import tell
from ..system.facade import System
from .assignments import Assignments, Task
from .calls import Calls
from .connection import Connection, is_of_our_user
from .remote_errors import raised

BACKLOG = 128


class Dispatcher:
    """The thread behind one executor."""

    def __init__(
        self, calls: Calls, setup: bytes, assignments: Assignments, tasks_per_child: int | None
    ) -> None:
        self.name = f"rekindle-{secrets.token_hex(16)}"
        """Where the workers find us: a socket without a file, gone with this process."""
        self.broken: str | None = None
        self._calls = calls
        self._setup = setup
        self._assignments = assignments
        self._tasks_per_child = tasks_per_child
        self._tokens: Mapping[str, str] = {}
        self._system: System | None = None
        self._posted: deque[Callable[[], None]] = deque()
        self._connections: dict[str, Connection] = {}
        self._unidentified: set[Connection] = set()
        self._failed: dict[str, str] = {}
        self._excused: set[tuple[str, int]] = set()
        self._closing = False
        self._process = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="rekindle-executor", daemon=True)

    # ── for other threads ────────────────────────────────────────────────────────────────

    def start(self, system: System, tokens: Mapping[str, str]) -> None:
        """Have the workers started and served; `tokens` says which worker shows which word."""
        self._system, self._tokens = system, tokens
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake, selectors.EVENT_READ, self._woken)
        try:
            system.open()
            system.subscribe(self)
            system.start()
        except BaseException:
            system.stop()
            self._close_sockets()
            raise
        # Daemon threads still run when this is called: what was submitted is finished, as the
        # standard executors do.
        atexit.register(self.finish)
        self._thread.start()

    def tell(self, message: Event) -> None:
        """Hear what happens to the workers."""
        if isinstance(message, WorkerDied | WorkerFailed | WorkerStopped):
            self._post(lambda: self._on_event(message))

    def submit(self, task: Task) -> None:
        """Have a task run."""
        self._post(lambda: self._take(task))

    def close(self, cancel: bool = False) -> None:
        """Finish what was submitted, or what has begun, then end; does not wait."""
        self._post(lambda: self._close(cancel))

    def finish(self) -> None:
        """Finish what was submitted, end, and wait for that; nothing in a fork, or in our own thread."""
        if os.getpid() == self._process and threading.current_thread() is not self._thread:
            self.close()
            self._thread.join()

    def _post(self, order: Callable[[], None]) -> None:
        if os.getpid() != self._process:
            return
        self._posted.append(order)
        # Under a lock: once it is closed, its number may stand for a file of the host.
        with self._waking, suppress(OSError):
            if self._wake != -1:
                os.eventfd_write(self._wake, 1)

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while not (self._closing and self._assignments.idle):
                self._run_once()
        finally:
            self._end()

    def _run_once(self) -> None:
        for key, ready in self._selector.select():
            self._guarded(lambda key=key, ready=ready: key.data(ready))  # type: ignore[misc]
        while self._posted:
            self._guarded(self._posted.popleft())

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # one misfortune must not leave all futures waiting
            logger.opt(exception=error).error("the executor met an error and goes on")

    def _woken(self, _: int) -> None:
        os.eventfd_read(self._wake)

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

    # ── what workers say ─────────────────────────────────────────────────────────────────

    def _accept(self, _: int) -> None:
        line, _address = self._listener.accept()
        if not is_of_our_user(line):
            line.close()
            return
        connection = Connection(line)
        self._unidentified.add(connection)
        self._watch(connection, new=True)

    def _watch(self, connection: Connection, *, new: bool = False) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.sends else 0)
        change = self._selector.register if new else self._selector.modify
        change(connection.line, events, lambda ready: self._on_ready(connection, ready))

    def _on_ready(self, connection: Connection, ready: int) -> None:
        if ready & selectors.EVENT_WRITE:
            connection.flush()
            self._watch(connection)
        if ready & selectors.EVENT_READ and not self._receive(connection):
            # What it was at is settled by the news of its death.
            self._drop(connection)
            self._check_supervisor()

    def _receive(self, connection: Connection) -> bool:
        messages, open_still = connection.receive()
        for kind, number, payload in messages:
            self._on_message(connection, kind, number, payload)
        return open_still

    def _on_message(self, connection: Connection, kind: int, number: int, payload: bytes) -> None:
        if connection.worker is None:
            self._identify(connection, payload)
        elif kind == task_wire.READY:
            connection.ready = True
            self._serve(connection)
        elif kind == task_wire.STARTED:
            self._assignments.begun(connection.worker, number)
        elif kind in (task_wire.RETURNED, task_wire.RAISED):
            self._finished(connection, kind, number, payload)

    def _identify(self, connection: Connection, payload: bytes) -> None:
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

    def _finished(self, connection: Connection, kind: int, number: int, payload: bytes) -> None:
        assert connection.worker is not None
        task = self._assignments.finished(connection.worker, number)
        if task is None:
            return
        connection.done += 1
        # The worker goes on before the future's callbacks run, which may take their time.
        if connection.done == self._tasks_per_child:
            self._renew(connection)
        else:
            connection.ready = True
            self._serve(connection)
        self._settle(task, kind, payload)

    def _settle(self, task: Task, kind: int, payload: bytes) -> None:
        try:
            if kind == task_wire.RAISED:
                task.future.set_exception(raised(payload))
            else:
                task.future.set_result(self._calls.result(payload))
        except Exception as error:  # noqa: BLE001  # a codec of the host's may raise anything
            task.future.set_exception(error)

    def _renew(self, connection: Connection) -> None:
        """Have a new process in place of one that has done its share."""
        assert connection.worker is not None
        self._drop(connection)
        self._tell_supervisor(RestartWorker(connection.worker[0]))

    def _drop(self, connection: Connection) -> None:
        if connection.line.fileno() == -1:
            return
        self._selector.unregister(connection.line)
        with suppress(OSError):
            # A fork of the host may hold it open: closing alone would not reach the worker.
            connection.line.shutdown(socket.SHUT_RDWR)
        connection.line.close()
        connection.ready = False
        self._unidentified.discard(connection)
        if connection.worker is not None and self._connections.get(connection.worker[0]) is connection:
            del self._connections[connection.worker[0]]

    # ── what becomes of workers ──────────────────────────────────────────────────────────

    def _on_event(self, event: WorkerDied | WorkerFailed | WorkerStopped) -> None:
        match event:
            case WorkerDied():
                self._died(event)
            case WorkerStopped(component_id=id_, generation=generation):
                self._drain(id_, generation)
                self._assignments.give_back((id_, generation))
                self._serve_idle_workers()
            case WorkerFailed(component_id=id_, generation=generation, reason=reason):
                if (id_, generation) not in self._excused:
                    self._failed[id_] = reason
                    self._check_any_left()

    def _died(self, event: WorkerDied) -> None:
        death = event.death
        self._drain(death.component_id, death.generation)
        task, given_up = self._assignments.died(death)
        if task is not None:
            self._restart_without_penalty(death.component_id, death.generation)
        self._serve_idle_workers()
        if task is not None and given_up:
            task.future.set_exception(WorkerCrashedError(task.name, task.deaths))

    def _drain(self, component_id: str, generation: int) -> None:
        """Take in what a worker said before it ended: what it finished is no crash."""
        connection = self._connections.get(component_id)
        if connection is not None and connection.worker == (component_id, generation):
            connection.ready = False
            while self._receive(connection) and connection.line.fileno() != -1:
                if not _readable(connection.line):
                    break
            self._drop(connection)

    def _restart_without_penalty(self, component_id: str, generation: int) -> None:
        """The task was to blame, so the worker comes back at once, and its budget is whole again."""
        self._excused = {(id_, number) for id_, number in self._excused if id_ != component_id}
        self._excused.add((component_id, generation))
        # First what lets it come back now if it is waiting, then what clears its counters, then
        # what starts it if it had been given up. Each does nothing where it is not needed.
        self._tell_supervisor(StartWorkers((component_id,)))
        self._tell_supervisor(ResetWorker(component_id))
        self._tell_supervisor(StartWorkers((component_id,)))

    def _tell_supervisor(self, command: StartWorkers | ResetWorker | RestartWorker) -> None:
        assert self._system is not None
        tell(self._system.supervisor, command)

    def _check_any_left(self) -> None:
        if len(self._failed) == len(self._tokens):
            self.broken = next(iter(self._failed.values()))
            self._fail_all(self.broken)

    def _check_supervisor(self) -> None:
        """A host that stops all actors of its process stops ours as well: no news will come."""
        assert self._system is not None
        if not self._system.supervisor.is_alive():
            self.broken = "its supervisor was stopped"
            self._fail_all(self.broken)

    def _fail_all(self, why: str) -> None:
        for task in self._assignments.drain():
            if task.future.running() or task.future.set_running_or_notify_cancel():
                task.future.set_exception(ExecutorBrokenError(f"no worker can be started: {why}"))

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _end(self) -> None:
        assert self._system is not None
        # A worker that is just starting must not wait here for its first task.
        self._selector.unregister(self._listener)
        self._listener.close()
        for connection in (*self._connections.values(), *self._unidentified):
            self._drop(connection)
        self._system.stop()
        self._close_sockets()
        atexit.unregister(self.finish)

    def _close_sockets(self) -> None:
        self._selector.close()
        self._listener.close()
        with self._waking:
            os.close(self._wake)
            self._wake = -1


def _readable(line: socket.socket) -> bool:
    try:
        return bool(line.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
