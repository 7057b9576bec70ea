"""A host that ends in one of the ways in which hosts end: `main.py HOW`."""

from __future__ import annotations

import importlib
import json
import os
import queue
import select
import sys
import threading
import time
from typing import Any

import pykka

from rekindle.actors import PythonCall, Status, System, WorkerSpec, command
from rekindle.persistence import open_store

PATIENCE_S = 20.0

host_actors: Any = importlib.import_module("actors")
ear = host_actors.Ear.start(queue.Queue())
(how,) = sys.argv[1:]
system = System(
    [WorkerSpec("work", PythonCall("works:wait")), WorkerSpec("sleep", command("sleep", "1000"))],
    store=open_store("state/host.db"),
)
system.start()
handles = []
for id_ in ("work", "sleep"):
    pid = system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    handles.append(os.pidfd_open(pid))
said: dict[str, Any] = {"marks": [system.mark]}


def workers_end() -> bool:
    """Whether both workers end while we live."""
    return all(select.select([handle], [], [], PATIENCE_S)[0] for handle in handles)


def tell(**more: object) -> None:
    """Print what there is to say."""
    sys.stdout.write(json.dumps(said | more))
    sys.stdout.flush()


match how:
    case "stop_all":
        # What pykka's documentation tells hosts to do at the end; the system is not asked.
        pykka.ActorRegistry.stop_all()
        tell(workers_ended=workers_end())
    case "stop_all_then_stop":
        pykka.ActorRegistry.stop_all()
        ended = workers_end()
        began = time.monotonic()
        results = system.stop()
        took = time.monotonic() - began
        threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("rekindle")]
        tell(workers_ended=ended, results=len(results), took=took, threads=threads)
    case "forget":
        ear.stop()
        tell()
    case "fork":
        with system:
            began = time.monotonic()
            forked = os.fork()
            if forked == 0:
                sys.exit(5)  # which leaves the block, in a process that is not the system's
            _, status = os.waitpid(forked, 0)
            took = time.monotonic() - began
            undisturbed = not select.select(handles, [], [], 0)[0] and len(system.report().workers) == 2
        ear.stop()
        tell(exit_code=os.waitstatus_to_exitcode(status), took=took, undisturbed=undisturbed)
    case "raise":
        ear.stop()
        tell()
        with system:
            raise RuntimeError("the host has a bug")
    case "exit_in_an_actor":
        # pykka stops every actor of the process when one of them exits.

        class Exits(pykka.ThreadingActor):
            """Stops every actor of the process."""

            def on_receive(self, message: Any) -> Any:
                """Exit."""
                sys.exit(message)

        Exits.start().tell(1)
        tell(workers_ended=workers_end())
    case _:
        raise AssertionError(how)
