"""Pure: what a file declares about queues: their limits, and the jobs that they get by the clock."""

from __future__ import annotations

from collections.abc import Collection

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.policies.queues.periodic import Periodic, unserved
from rekindle.actors.spec.policies.queues.queue_policy import QueuePolicy

from ..file_tables import Given
from ..problems import NOTHING, ConfigFinding


def periodic_of(file: Given, served: Collection[str], findings: list[ConfigFinding]) -> tuple[Periodic, ...]:
    """The periodic jobs of a file; their problems are added to the findings."""
    jobs: list[Periodic] = []
    for name, table in file.get("periodic", {}).items():
        try:
            job = Periodic(name, **table)
        except SpecError as error:
            for problem in error.problems:
                path = ("periodic", name) if problem.field == "name" else ("periodic", name, problem.field)
                findings.append(ConfigFinding(path, problem.reason, table.get(problem.field, NOTHING)))
            continue
        if job.queue not in served:
            findings.append(
                ConfigFinding(("periodic", name, "queue"), unserved(job.queue, sorted(served)), job.queue)
            )
        jobs.append(job)
    return tuple(jobs)


def queues_of(file: Given, served: Collection[str], findings: list[ConfigFinding]) -> tuple[QueuePolicy, ...]:
    """The limits of the queues of a file; their problems are added to the findings."""
    policies: list[QueuePolicy] = []
    for name, table in file.get("queue", {}).items():
        try:
            policies.append(QueuePolicy(name, **table))
        except SpecError as error:
            for problem in error.problems:
                path = ("queue", name) if problem.field == "name" else ("queue", name, problem.field)
                findings.append(ConfigFinding(path, problem.reason, table.get(problem.field, NOTHING)))
        else:
            if name not in served:
                findings.append(ConfigFinding(("queue", name), unserved(name, sorted(served))))
    return tuple(policies)
