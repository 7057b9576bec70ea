"""Rekindle: a supervisor with workers that serve one queue."""

from __future__ import annotations

from rekindle.actors import JobPolicy, PythonCall, System, WorkerSpec
from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store

from .race import Result, watch


def run_rekindle(where: str, jobs: int, workers: int) -> Result:
    """Serve a queue of no-op jobs; SQLite with synchronous=FULL, PostgreSQL with its defaults."""
    store = open_store(where)
    store.jobs.add("noop", [NewJob(payload=str(number)) for number in range(jobs)])
    policy = JobPolicy(queues=("noop",))
    run = PythonCall("scripts.bench.jobs.libraries.noop:Noop.main")
    specs = [WorkerSpec(f"worker:noop:{number}", run, jobs=policy) for number in range(workers)]
    with System(specs, store=store) as system:

        def done() -> int:
            return sum(stats.completed for stats in system.jobs.stats())

        seconds, rate = watch(done, jobs)
        rows = system.jobs.find(queue="noop", limit=jobs)
    lost = sum(row.state != "done" or row.result != row.payload for row in rows)
    repeated = sum(row.attempts - 1 for row in rows)
    return Result("Rekindle", jobs, seconds, rate, lost, repeated)
