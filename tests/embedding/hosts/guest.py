"""A host that has two systems in its process for a while, and looks what they left behind."""

from __future__ import annotations

import importlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pykka
from loguru import logger

PATIENCE_S = 20.0

host_actors: Any = importlib.import_module("actors")
heard: queue.Queue[Any] = queue.Queue()
seen: list[str] = []


def traces() -> dict[str, Any]:
    """Everything that a guest must leave as it was."""
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": sorted(fd for fd in os.listdir("/proc/self/fd") if is_open(fd)),
        "children": sorted(children()),
        "environment": dict(os.environ),
        "signals": {int(s): repr(signal.getsignal(s)) for s in signal.valid_signals()},
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "actors": sorted(ref.actor_urn for ref in pykka.ActorRegistry.get_all()),
        "logging": [repr(logging.root.handlers), logging.root.level, logging.raiseExceptions],
        "loguru": sorted(logger._core.handlers),  # type: ignore[attr-defined]
        "hooks": [repr(sys.excepthook), repr(threading.excepthook)],
        "folder": os.getcwd(),
        "host": host_actors.OWNER,
    }


def is_open(fd: str) -> bool:
    """Whether it is still there after the folder was listed."""
    return os.path.exists(f"/proc/self/fd/{fd}")


def children() -> list[int]:
    """The pids of our children, zombies included."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError), open(f"/proc/self/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def hear(wanted: Callable[[Any], bool]) -> Any:
    """Skip to the first message that is wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        message = heard.get(timeout=max(0.0, deadline - time.monotonic()))
        seen.append(type(message).__name__)
        if wanted(message):
            return message


def is_a(kind: type[Any], component_id: str) -> Callable[[Any], bool]:
    """Tells an event of this kind about this worker."""
    return lambda message: isinstance(message, kind) and message.component_id == component_id


signal.signal(signal.SIGCHLD, lambda *_: None)
own_child = subprocess.Popen(
    [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(42)"], stdin=subprocess.PIPE
)
ear = host_actors.Ear.start(heard)
bystander = host_actors.Ear.start(heard)
before = traces()

from rekindle.actors import (  # noqa: E402
    PauseWorkers,
    PythonCall,
    RestartPolicy,
    RestartWorker,
    Status,
    StatusChanged,
    System,
    WorkerDied,
    WorkerFailed,
    WorkerSpec,
    WorkerStarted,
    WorkerStopped,
    command,
)
from rekindle.actors.messages import Done  # noqa: E402
from rekindle.persistence import open_store  # noqa: E402

quick = RestartPolicy(initial_delay_s=0.05, min_delay_s=0.0, max_delay_s=0.1, max_in_window=2)
works = WorkerSpec("work", PythonCall("works:wait"), restart=quick)
crashes = WorkerSpec("crash", PythonCall("works:crash"), restart=quick)
sleeps = WorkerSpec("work", command("sleep", "1000"), restart=quick)

with ExitStack() as stack:
    first = stack.enter_context(System([works, crashes], store=open_store("state/first.db")))
    first.subscribe(ear)  # before anything else: a worker that crashes is soon given up
    second = stack.enter_context(System([sleeps], store=open_store("state/second.db")))
    marks = [first.mark, second.mark]
    neighbour = second.wait_for("work", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    hear(is_a(WorkerFailed, "crash"))
    pid = first.wait_for("work", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    hear(is_a(StatusChanged, "work"))
    died = hear(is_a(WorkerDied, "work"))
    hear(is_a(WorkerStarted, "work"))
    counted = first.status("work").restart_count
    first.supervisor.tell(RestartWorker("work", ear))
    hear(lambda message: message == Done())
    hear(is_a(WorkerStarted, "work"))
    recounted = first.status("work").restart_count
    first.supervisor.tell(PauseWorkers(reply_to=ear))
    hear(is_a(WorkerStopped, "work"))
    neighbour_undisturbed = second.status("work").pid == neighbour

after = traces()
own_child.communicate(timeout=PATIENCE_S)
forked = os.fork()
if forked == 0:
    os._exit(7)
_, status = os.waitpid(forked, 0)
print(  # noqa: T201
    json.dumps(
        {
            "marks": marks,
            "before": before,
            "after": after,
            "died_of": died.death.exit.signal,
            "counts": [counted, recounted],
            "neighbour_undisturbed": neighbour_undisturbed,
            "own_child": own_child.returncode,
            "forked": os.waitstatus_to_exitcode(status),
            "pong": [ref.ask("ping", timeout=PATIENCE_S) for ref in (ear, bystander)],
            "seen": sorted(set(seen)),
        }
    )
)
pykka.ActorRegistry.stop_all()
