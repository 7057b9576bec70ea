"""A fleet of job workers that is hurt while it works, and the account of what it did.

Every execution is noted in a file by the worker itself, before and after: the account is apart
from the database, and the two are compared at the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rekindle.actors import (
    HealthPolicy,
    JobPolicy,
    PythonCall,
    RestartPolicy,
    System,
    UnknownWorkerError,
    WorkerSpec,
)
from rekindle.actors.errors import RekindleError
from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes

JOBS = int(os.environ.get("REKINDLE_JOBS", "120"))
"""How many jobs a proof is about; 10000 by hand."""

WORKERS = 4
TOXIC_EVERY = 60
"""One job of this number kills the worker that executes it."""

MOST_NOTED_BETWEEN_KILLS = 1000
"""In bytes of notes, some 30 executions."""

_GLANCE_S = 0.005

WITHIN_S = 100.0 + JOBS / 20

_TIRELESS = RestartPolicy(
    max_in_window=None, max_lifetime=None, initial_delay_s=0.0, min_delay_s=0.0, max_delay_s=0.0
)
_HEALTH = HealthPolicy(startup_timeout_s=60.0, staleness_s=60.0, heartbeat_interval_s=1.0)


def specs(notes: Path) -> list[WorkerSpec]:
    """The workers."""
    return [
        WorkerSpec(
            f"worker:tag:{number}",
            PythonCall("tests.processes.job_workers:Obedient.main"),
            restart=_TIRELESS,
            health=_HEALTH,
            jobs=JobPolicy(queues=("tag",)),
            env={"NOTES": str(notes)},
        )
        for number in range(WORKERS)
    ]


def fill(where: str) -> tuple[int, ...]:
    """Put the jobs into the queue; the numbers of the jobs that kill."""
    store = open_store(where)
    payloads = [
        '{"do": "die"}' if n % TOXIC_EVERY == TOXIC_EVERY // 2 else '{"do": "a little"}' for n in range(JOBS)
    ]
    ids = store.jobs.add("tag", [NewJob(payload=payload) for payload in payloads])
    store.close()
    return tuple(id_ for id_, payload in zip(ids, payloads, strict=True) if "die" in payload)


class Nemesis:
    """Kills a worker whenever some more was done, until it is stopped.

    By what was done and not by time: a quick machine is hurt as often as a slow one, and one where
    to start a worker takes longer than it lives comes to the end too.
    """

    def __init__(self, mark: str, seed: int, notes: Path) -> None:
        self.kills = 0
        self._mark = mark
        self._notes = notes
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nemesis")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        enough = 1
        while not self._over.wait(_GLANCE_S):
            noted = self._notes.stat().st_size
            if noted < enough:
                continue
            victims = [pid for pid, worker in marked_processes(self._mark) if worker]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(self._chance.choice(victims), signal.SIGKILL)
                    self.kills += 1
                    enough = noted + self._chance.randint(1, MOST_NOTED_BETWEEN_KILLS)


def all_ended(system: System) -> bool:
    """Whether no job is pending or running; a database that is away does not count as empty."""
    try:
        return all(stats.pending == stats.running == 0 for stats in system.jobs.stats())
    except (RekindleError, UnknownWorkerError):
        return False


def wait_for_the_end(system: System) -> None:
    """Wait until every job has ended, one way or the other; a look counts them all, so not too often."""
    pause = threading.Event()
    deadline = time.monotonic() + WITHIN_S
    while not all_ended(system):
        assert time.monotonic() < deadline, system.jobs.stats()
        pause.wait(0.2)


@dataclass(frozen=True)
class Account:
    """What the workers themselves noted: executions that began and that ended, by job."""

    began: Counter[int]
    ended: Counter[int]

    @classmethod
    def of(cls, notes: Path) -> Account:
        """Read the notes."""
        began: Counter[int] = Counter()
        ended: Counter[int] = Counter()
        for line in notes.read_text().splitlines():
            word, job, *_ = line.split()
            (began if word == "began" else ended)[int(job)] += 1
        return cls(began, ended)


def check(system: System, killers: tuple[int, ...], account: Account) -> None:
    """The promises: none lost, recorded once, none innocent convicted, none guilty acquitted."""
    jobs = system.jobs.find(limit=10**9)
    assert len(jobs) == JOBS
    assert {job.state for job in jobs} <= {"done", "toxic"}
    assert {job.id for job in jobs if job.state == "toxic"} >= set(killers)
    for job in jobs:
        # Every execution was counted before it began.
        assert account.began[job.id] <= job.attempts, job
        if job.state == "toxic":
            # Three workers died with it in hand, also where random kills met it three times.
            ends = {(crash.component_id, crash.at_wall_ms) for crash in system.jobs.crashes([job.id])}
            assert (len(ends), job.crash_count) == (3, 3), job
            assert account.ended[job.id] == 0 or job.id not in killers
        else:
            # Recorded once, by the claim that was in force: an older one carries a smaller number.
            assert job.result is not None
            assert json.loads(job.result)["attempt"] == job.attempts, job
            assert account.ended[job.id] >= 1
            assert job.crash_count == 0
