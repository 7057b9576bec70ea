"""An example: a Dramatiq application whose worker reports its health and its messages to Rekindle."""

from __future__ import annotations

import os
import signal

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from rekindle.worker import Worker
from rekindle.worker.adapters.dramatiq_middleware import RekindleMiddleware, serve

broker = RedisBroker(
    url=os.environ["REDIS_URL"],
    # How soon the messages of a dead worker are delivered again: this is short, for the test of the example.
    heartbeat_timeout=1000,
    maintenance_chance=1_000_000,
)
broker.add_middleware(RekindleMiddleware())
dramatiq.set_broker(broker)


@dramatiq.actor
def report(file: str) -> None:
    """Write a line."""
    with open(file, "a") as lines:
        lines.write(f"done by {os.getpid()}\n")


@dramatiq.actor
def crash() -> None:
    """Kill the worker, as a bug in a C extension would."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(worker: Worker) -> None:
    """Work off the queues."""
    serve(worker, broker)
