"""Pure: what a changed set of specs means for the workers that run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from .job_policy import JobPolicy
from .worker_spec import WorkerSpec


class Changes(msgspec.Struct, frozen=True):
    """What becomes of each worker, by id."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    """Something changed that only a new process can take up."""
    adjusted: tuple[str, ...] = ()
    """Only policies changed: they hold from the next decision on."""
    unchanged: tuple[str, ...] = ()
    lifted: tuple[str, ...] = ()
    """Those of them that were failed, are another version now, and were given a fresh budget."""
    stays_failed: tuple[str, ...] = ()
    """Those of `restarted` that get no process: only the end of their failure starts them."""
    when_resumed: tuple[str, ...] = ()
    """Those of `restarted` that a pause holds back."""
    when_started: tuple[str, ...] = ()
    """Those of `restarted` that are down until somebody starts them."""
    when_restarted: tuple[str, ...] = ()
    """Those of `restarted` that crashed: the restart that they wait for takes the change up."""


def compare(before: Mapping[str, WorkerSpec], after: Iterable[WorkerSpec]) -> Changes:
    """What leads from one set of workers to another."""
    wanted = {spec.id: spec for spec in after}
    common = [id_ for id_ in wanted if id_ in before]
    changed = [id_ for id_ in common if wanted[id_] != before[id_]]
    restarted = tuple(id_ for id_ in changed if needs_new_process(before[id_], wanted[id_]))
    return Changes(
        added=tuple(id_ for id_ in wanted if id_ not in before),
        removed=tuple(id_ for id_ in before if id_ not in wanted),
        restarted=restarted,
        adjusted=tuple(id_ for id_ in changed if id_ not in restarted),
        unchanged=tuple(id_ for id_ in common if id_ not in changed),
    )


def needs_new_process(before: WorkerSpec, after: WorkerSpec) -> bool:
    """Whether a running process cannot take up the change."""
    return _told_of_jobs(before) != _told_of_jobs(after) or any(
        getattr(before, name) != getattr(after, name)
        for name in ("run", "env", "inherit_env", "cwd", "user", "health")
    )


def _told_of_jobs(spec: WorkerSpec) -> JobPolicy | None:
    """What a process hears of its queues when it starts; what follows its crash is not its affair."""
    jobs = spec.jobs
    return None if jobs is None or not jobs.queues else replace(jobs, crash_retries=None)
