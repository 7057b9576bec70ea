"""Measures the latency of one library: `python -m scripts.bench.jobs.stamping NAME ADDRESS FILE`.

Prints a JSON list of milliseconds. The jobs append the times of their starts to the file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .libraries.procrastinate_side import worker_command as procrastinate_command

ROUNDS = 100
FIRST = 5
"""How many jobs are left out: the first ones load modules."""
IDLE_S = 0.03
PATIENCE_S = 30.0

Enqueue = Callable[[str], object]
"""Adds a job that appends the time of its start to this file."""


def main(name: str, address: str, stamps: Path) -> None:
    """Measure a library, and print the milliseconds."""
    with LIBRARIES[name](address) as enqueue:
        took: list[float] = []
        for number in range(ROUNDS + FIRST):
            time.sleep(IDLE_S)
            began = time.time_ns()
            enqueue(str(stamps))
            took.append((_stamp(stamps, number) - began) / 1e6)
    print(json.dumps(took[FIRST:]))


def _stamp(stamps: Path, number: int) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = stamps.read_text().splitlines() if stamps.exists() else []
        if len(lines) > number:
            return int(lines[number])
        time.sleep(0.002)
    raise TimeoutError(f"job {number} did not start")


@contextmanager
def _rekindle(address: str) -> Iterator[Enqueue]:
    from rekindle.actors import JobPolicy, PythonCall, Status, System, WorkerSpec
    from rekindle.persistence import open_store

    run = PythonCall("scripts.bench.jobs.libraries.noop:Stamp.main")
    spec = WorkerSpec("worker:stamp:0", run, jobs=JobPolicy(queues=("stamp",)))
    with System([spec], store=open_store(address)) as system:
        system.wait_for(spec.id, Status.HEALTHY, timeout_s=30)
        yield lambda path: system.enqueue("stamp", path)


@contextmanager
def _huey(_address: str) -> Iterator[Enqueue]:
    """One process that polls every millisecond."""
    from .libraries.huey_app import stamp

    app = "scripts.bench.jobs.libraries.huey_app.huey"
    polls = ["-k", "process", "-w", "1", "-d", "0.001", "-m", "0.01", "-q"]
    with _worker([sys.executable, "-m", "huey.bin.huey_consumer", app, *polls]):
        yield stamp


@contextmanager
def _procrastinate(_address: str) -> Iterator[Enqueue]:
    from .libraries.procrastinate_app import app, stamp

    with app.open():
        if not app.check_connection():
            app.schema_manager.apply_schema()
        with _worker(procrastinate_command("stamp")):
            yield lambda path: stamp.defer(path=path)


@contextmanager
def _rq(address: str) -> Iterator[Enqueue]:
    from rq import Queue

    from .libraries.redis_app import counted, stamp

    queue = Queue("stamp", connection=counted)
    with _worker([sys.executable, "-m", "rq.cli", "worker", "stamp", "--quiet", "--url", address]):
        yield lambda path: queue.enqueue(stamp, path)


@contextmanager
def _dramatiq(_address: str) -> Iterator[Enqueue]:
    from .libraries.redis_app import stamp_actor

    with _worker(
        [sys.executable, "-m", "dramatiq", "scripts.bench.jobs.libraries.redis_app", "-p", "1", "-t", "1"]
    ):
        yield stamp_actor.send


@contextmanager
def _worker(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


LIBRARIES = {
    "Rekindle": _rekindle,
    "Huey": _huey,
    "Procrastinate": _procrastinate,
    "RQ": _rq,
    "Dramatiq": _dramatiq,
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
