"""Procrastinate on PostgreSQL: as many of its worker processes, one job at a time each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psycopg

from .race import Result, watch

_FILL = """
import sys
from scripts.bench.jobs.libraries.procrastinate_app import app, noop
with app.open():
    app.schema_manager.apply_schema()
    noop.configure().batch_defer(*[{"number": number} for number in range(int(sys.argv[1]))])
"""


def run_procrastinate(address: str, jobs: int, workers: int) -> Result:
    """The same jobs, not deleted when they are done."""
    environment = {**os.environ, "PROCRASTINATE_DATABASE": address}
    subprocess.run([sys.executable, "-c", _FILL, str(jobs)], env=environment, check=True)
    running = [
        subprocess.Popen(
            worker_command("noop"), env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        for _ in range(workers)
    ]
    try:
        with psycopg.connect(address, autocommit=True) as connection:

            def done() -> int:
                found = connection.execute(
                    "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
                ).fetchone()
                return int(found[0]) if found else 0

            seconds, rate = watch(done, jobs)
            lost = jobs - done()
    finally:
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return Result("Procrastinate", jobs, seconds, rate, lost, repeated=0)


def worker_command(queue: str) -> list[str]:
    """A worker process that serves this queue."""
    application = "scripts.bench.jobs.libraries.procrastinate_app.app"
    return [sys.executable, "-m", "procrastinate", "--app", application,
            "worker", "--queues", queue, "--concurrency", "1", "--delete-jobs", "never"]  # fmt: skip
