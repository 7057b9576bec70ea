"""The applications of RQ and Dramatiq, as their workers import them: REDIS_URL is the address."""

from __future__ import annotations

import os
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from redis import Redis

broker = RedisBroker(url=os.environ["REDIS_URL"])  # type: ignore[no-untyped-call]
dramatiq.set_broker(broker)
counted = Redis.from_url(os.environ["REDIS_URL"])


def noop(number: int) -> int:
    """Return a result at once; RQ stores it."""
    return number


@dramatiq.actor(max_retries=0)
def noop_actor(number: int) -> None:
    """Record the result, since Dramatiq stores none by default."""
    counted.hset("dramatiq-results", str(number), number)


def stamp(path: str) -> None:
    """Write down when the job starts."""
    now = time.time_ns()
    with open(path, "a") as file:
        file.write(f"{now}\n")


@dramatiq.actor(max_retries=0)
def stamp_actor(path: str) -> None:
    """The same, for Dramatiq."""
    stamp(path)
