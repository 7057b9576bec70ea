"""An example: a Celery application whose worker reports its health and its tasks to Rekindle.

The line with `install` is all that an application needs. Without a supervisor it does nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_init

from rekindle.worker.adapters.celery_tasks import install

BROKER = Path("broker")
QUEUE, TAKEN, RESULTS, CONTROL = (BROKER / name for name in ("queue", "taken", "results", "control"))
for folder in (QUEUE, TAKEN, RESULTS, CONTROL):
    folder.mkdir(parents=True, exist_ok=True)

app = Celery("celery_app", broker="filesystem://", backend=f"file://{RESULTS.absolute()}")
app.conf.update(
    # A message is acknowledged when its task is done, so that it is not lost if the worker dies.
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={
        "data_folder_in": str(QUEUE),
        "data_folder_out": str(QUEUE),
        "control_folder": str(CONTROL),
        "store_processed": True,
        "processed_folder": str(TAKEN),
    },
)
install(app)  # before the tasks are defined


@app.task
def crash() -> None:
    """Kill the worker, as a bug in a C extension would."""
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def report(file: str, seconds: float) -> str:
    """Write a line at the start, sleep, and write a line at the end."""
    with open(file, "a") as lines:
        lines.write(f"begun by {os.getpid()}\n")
    time.sleep(seconds)
    with open(file, "a") as lines:
        lines.write(f"done by {os.getpid()}\n")
    return file


# ── for the transport of this example only ───────────────────────────────────────────────


@worker_init.connect
def _put_back(**_: Any) -> None:
    """Put messages back that a worker took and did not finish.

    RabbitMQ and Redis deliver an unacknowledged message again by themselves; the transport over
    files forgets delivered messages. With one worker, a taken message without a result was lost.
    """
    for message in TAKEN.glob("*.msg"):
        task_id = json.loads(message.read_text())["headers"].get("id")
        if task_id is None or app.AsyncResult(task_id).ready():
            message.unlink()
        else:
            shutil.move(message, QUEUE / message.name)
