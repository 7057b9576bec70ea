"""Many jobs of which some kill their workers, while workers and supervisors are killed at random.

Afterwards every job is accounted for: none is lost, each result was recorded by the claim in force, every
killer is toxic, and no innocent job is toxic whose deaths were all caused by another job.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors import JobPolicy, PythonCall, System, WorkerSpec
from rekindle.actors.facts.jobs import JobView, NewJob, QueueStats
from rekindle.persistence import open_queue, open_store
from rekindle.worker.jobs import Job, JobWorker

from .endings import count_endings, ended_twice

WORKERS = 4
AT_A_TIME = 3
KILLERS = 0.01
PATIENCE_S = 60.0
"""How long without an end of a job until the rest counts as lost."""

RESTART = {"initial_delay_s": 0.0, "min_delay_s": 0.0, "max_in_window": None, "max_lifetime": None}


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the jobs."""

    jobs: int
    done: int
    toxic: int
    killers: int
    kills_of_workers: int
    kills_of_supervisors: int
    seconds: float
    lost: tuple[int, ...]
    """Jobs that are neither done nor toxic."""
    wrong: tuple[int, ...]
    """Jobs whose result is not that of the claim in force."""
    spared: tuple[int, ...]
    """Killers that are not toxic."""
    twice: tuple[int, ...]
    """Jobs of which the database was given more than one end."""
    convicted: tuple[int, ...]
    """Innocent jobs that are toxic, though no random kill ever met a worker that had begun them."""
    unlucky: int
    """Innocent jobs that are toxic because of random kills, which look like their own."""

    @property
    def is_fair(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.wrong or self.spared or self.twice or self.convicted)


class FairWorker(JobWorker):
    """Dies of some jobs, and returns which execution of the others it was."""

    def process(self, job: Job) -> object:
        """Kill this process, or return the number of the attempt."""
        if job.payload["kills"]:
            with open(os.environ["KILLED_BY_JOBS"], "a") as file:
                file.write(f"{self.worker.component_id} {self.worker.generation}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
        return {"attempt": job.attempt}


def run_fairness(where: str, folder: Path, jobs: int, seed: int, supervisor_every_s: float = 8.0) -> Account:
    """Add the jobs, kill supervisors from time to time, and account for the jobs."""
    chance = random.Random(seed)
    killers = set(chance.sample(range(jobs), max(1, round(jobs * KILLERS))))
    with closing(open_store(where)) as store:
        ids = store.jobs.add(
            "fair", [NewJob(payload=f'{{"kills": {str(n in killers).lower()}}}') for n in range(jobs)]
        )
    count_endings(where)
    began, kills = time.monotonic(), 0
    log = folder / "killed"
    with closing(open_queue(where)) as queue:
        serving = _serve(where, log, seed)
        ended, at_start, last = 0, 0, time.monotonic()
        next_kill = last + supervisor_every_s * chance.uniform(0.5, 1.5)
        while ended < jobs and time.monotonic() < last + PATIENCE_S:
            time.sleep(0.2)
            now = _ended(queue.stats())
            ended, last = (now, time.monotonic()) if now > ended else (ended, last)
            # Not before the present supervisor has got somewhere: its start may take long on a busy machine.
            if time.monotonic() > next_kill and ended > at_start:
                kills += 1
                serving.kill()
                serving.wait()
                serving, at_start = _serve(where, log, seed + kills), ended
                next_kill = time.monotonic() + supervisor_every_s * chance.uniform(0.5, 1.5)
        serving.send_signal(signal.SIGTERM)
        serving.wait()
        found = [job for begin in range(0, jobs, 500) for job in queue.named(ids[begin : begin + 500])]
        guilty = {ids[n] for n in killers}
        killed = _noted(log)
        by_chance = killed - _noted(_killed_by_jobs(log))
        convicted = [job.id for job in found if job.state == "toxic" and job.id not in guilty]
        unfair = tuple(
            job_id
            for job_id in convicted
            if not any((c.component_id, str(c.generation)) in by_chance for c in queue.crashes([job_id]))
        )
    return Account(
        jobs=jobs,
        done=sum(job.state == "done" for job in found),
        toxic=sum(job.state == "toxic" for job in found),
        killers=len(killers),
        kills_of_workers=len(killed),
        kills_of_supervisors=kills,
        seconds=time.monotonic() - began,
        lost=tuple(set(ids) - {job.id for job in found if job.state in ("done", "toxic")}),
        wrong=tuple(job.id for job in found if job.state == "done" and not _is_right(job)),
        spared=tuple(job.id for job in found if job.id in guilty and job.state != "toxic"),
        twice=ended_twice(where),
        convicted=unfair,
        unlucky=len(convicted) - len(unfair),
    )


def _ended(queues: Iterable[QueueStats]) -> int:
    return sum(stats.completed + stats.toxic for stats in queues)


def _noted(file: Path) -> set[tuple[str, ...]]:
    return {tuple(line.split()) for line in file.read_text().splitlines()} if file.exists() else set()


def _killed_by_jobs(log: Path) -> Path:
    return log.with_name("killed-by-jobs")


def _is_right(job: JobView) -> bool:
    return job.result == f'{{"attempt":{job.attempts}}}'


def _serve(where: str, log: Path, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "scripts.bench.jobs.fairness", where, str(log), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def serve(where: str, log: Path, seed: int) -> None:
    """Run the workers, and kill one of them from time to time, until this process is ended.

    A kill waits until a job has ended since the last one. Kills by the clock alone come faster than workers
    can start on a machine that is busy enough: then they end worker after worker before it has begun a job.
    """
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    chance = random.Random(seed)
    run = PythonCall("scripts.bench.jobs.fairness:FairWorker.main")
    policy = JobPolicy(queues=("fair",), concurrency=AT_A_TIME)
    specs = [
        WorkerSpec.from_preset(
            f"worker:fair:{number}",
            run,
            "steady",
            jobs=policy,
            restart=RESTART,
            env={"KILLED_BY_JOBS": str(_killed_by_jobs(log))},
        )
        for number in range(WORKERS)
    ]
    with System(specs, store=open_store(where)) as system:
        at_last_kill = -1
        while not stopped:
            time.sleep(chance.uniform(0.2, 0.8))
            ended = _ended(system.jobs.stats())
            if ended == at_last_kill:
                continue
            at_last_kill = ended
            worker = chance.choice(system.report().workers)
            if worker.pid is not None:
                with log.open("a") as file:
                    file.write(f"{worker.component_id} {worker.generation}\n")
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
