"""Pure: how far the jobs are that workers execute, beside the workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .text import printable, progress_words

Document = Mapping[str, Any]

RUNNING_JOBS = "/jobs?state=running&limit=1000"
"""What to ask a supervisor for."""

JOBS_S = 2.0
"""How long to wait for it: a store that does not answer holds up nothing else."""


def hold_jobs(workers: Iterable[Document]) -> bool:
    """Whether one of these workers may execute a job of a queue."""
    return any(isinstance(worker["current_job"], int) for worker in workers)


def with_jobs(workers: Iterable[Document], listed: Document) -> list[dict[str, Any]]:
    """Each worker with the running jobs that show their progress, by the answer to `RUNNING_JOBS`."""
    held: dict[tuple[str, int], list[Document]] = {}
    for each in listed["jobs"]:
        job = each["job"]
        if job.get("progress") and job["claimed_by"] is not None:
            held.setdefault((job["claimed_by"], job["claimed_generation"]), []).append(job)
    return [
        {**worker, "jobs": held.get((worker["component_id"], worker["generation"]), ())} for worker in workers
    ]


def progress_of(progress: Document) -> str:
    """How far one job is."""
    return printable(progress_words(progress["done"], progress["total"], progress["note"]))


def progress_cell(worker: Document) -> str:
    """How far the jobs of a worker are; the number only of those that its own column does not name."""
    jobs: Sequence[Document] = sorted(worker.get("jobs") or (), key=lambda job: job["id"])
    shown = (progress_of(job["progress"]) for job in jobs)
    if len(jobs) == 1 and jobs[0]["id"] == worker["current_job"]:
        return next(shown)
    return "; ".join(f"job {job['id']}: {words}" for job, words in zip(jobs, shown, strict=True))
