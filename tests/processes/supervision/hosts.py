"""Hosts with habits of their own: `python -m tests.processes.supervision.hosts HABIT DATABASE`.

Each has a System, sees one worker die and come back, and prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.processes.policies import python, shell, sleeper
from tests.processes.supervisors import guardian_of
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Exit, Status, System, WorkerDied
from rekindle.persistence import open_store


def ignore_sigchld() -> None:
    """The kernel throws the statuses of children away."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def reap_all() -> None:
    """A thread takes the status of every child that it can get."""

    def reap() -> None:
        nap = threading.Event()
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                nap.wait(0.001)

    threading.Thread(target=reap, daemon=True).start()


def want_sigpipe() -> None:
    """Writing to a closed pipe is deadly, as in a program of the shell."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def block_sigterm() -> None:
    """Its main thread waits for SIGTERM by `sigwait`; a thread inherits what is blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])


HABITS: dict[str, Callable[[], None]] = {
    "ignore_sigchld": ignore_sigchld,
    "reap_all": reap_all,
    "want_sigpipe": want_sigpipe,
    "block_sigterm": block_sigterm,
}


def main(arguments: Sequence[str]) -> int:
    """Live through a death."""
    habit, database = arguments
    HABITS[habit]()
    specs = [sleeper(), python("wait"), shell("brief", "exit 1")]
    causes: set[str] = set()
    exits: set[Exit] = set()
    with System(specs, store=open_store(database)) as system, system.events() as events:
        mark = system.mark
        pids = {id_: healthy_pid(system, id_) for id_ in ("sleeper", "wait")}
        assert eventually(lambda: guardian_of(os.getpid()) is not None)
        os.kill(guardian_of(os.getpid()) or 0, signal.SIGKILL)
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        died: set[str] = set()
        while not {"sleeper", "wait", "brief"} <= died:
            event = events.next(PATIENCE_S)
            if isinstance(event, WorkerDied):
                died.add(event.component_id)
                causes.add(event.death.cause.value)
                exits.add(event.death.exit)
        for id_, pid in pids.items():
            system.wait_until(id_, lambda w, pid=pid: w.status is Status.HEALTHY and w.pid != pid, PATIENCE_S)  # type: ignore[misc]
        # A command counts as healthy before its shim has become the program.
        deaf = [id_ for id_ in pids if not eventually(lambda id_=id_: hears(healthy_pid(system, id_)))]  # type: ignore[misc]
        system.restart("wait")
        system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
        results = system.stop()
    unknown = exits == {Exit()}
    gone = [result.gone for result in results]
    said = {"mark": mark, "causes": sorted(causes), "unknown": unknown, "gone": gone, "deaf": deaf}
    sys.stdout.write(json.dumps(said))
    return 0


def hears(pid: int) -> bool:
    """Whether SIGTERM and SIGCHLD reach a process."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    without = int(status["SigBlk"], 16) | int(status["SigIgn"], 16)
    return not any(without >> (signum - 1) & 1 for signum in (signal.SIGTERM, signal.SIGCHLD))


def healthy_pid(system: System, id_: str) -> int:
    """The worker's pid, once it is healthy."""
    pid = system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    return pid


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
