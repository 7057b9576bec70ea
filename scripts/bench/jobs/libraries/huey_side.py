"""Huey on SQLite: its own consumer with process workers."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from .race import Result, watch

_FILL = """
import sys
from scripts.bench.jobs.libraries.huey_app import huey, noop
with huey.storage.db(commit=True):
    pass
for number in range(int(sys.argv[1])):
    noop(number)
"""


def run_huey(folder: Path, jobs: int, workers: int) -> Result:
    """The same jobs: each is removed from the queue and its result stored, both with fsync."""
    database = folder / "huey.db"
    environment = {**os.environ, "HUEY_DATABASE": str(database)}
    subprocess.run([sys.executable, "-c", _FILL, str(jobs)], env=environment, check=True)
    consumer = subprocess.Popen(
        [sys.executable, "-m", "huey.bin.huey_consumer", "scripts.bench.jobs.libraries.huey_app.huey",
         "-k", "process", "-w", str(workers), "-d", "0.001", "-m", "0.01", "-q"],
        env=environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        connection = sqlite3.connect(database, timeout=10)

        def done() -> int:
            (count,) = connection.execute("SELECT count(*) FROM kv").fetchone()
            return int(count)

        seconds, rate = watch(done, jobs)
        lost = jobs - done()
        connection.close()
    finally:
        os.killpg(consumer.pid, signal.SIGKILL)
        consumer.wait()
    return Result("Huey", jobs, seconds, rate, lost, repeated=0)
