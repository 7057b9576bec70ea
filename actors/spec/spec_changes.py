"""Pure: what a changed set of specs means for running workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from .policies.job_policy import JobPolicy
from .worker_spec import WorkerSpec


class Changes(msgspec.Struct, frozen=True):
    """What becomes of each worker, by id."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    """Something changed that takes effect only in a new process."""
    adjusted: tuple[str, ...] = ()
    """Only policies changed; they apply from the next decision on."""
    unchanged: tuple[str, ...] = ()
    lifted: tuple[str, ...] = ()
    """Workers that were failed, have changed, and got a new restart budget."""
    stays_failed: tuple[str, ...] = ()
    """Workers of `restarted` that stay failed, and so get no new process."""
    when_resumed: tuple[str, ...] = ()
    """Workers of `restarted` that are paused."""
    when_started: tuple[str, ...] = ()
    """Workers of `restarted` that are stopped until an operator starts them."""
    rolled_out: tuple[str, ...] = ()
    """Workers of `restarted` that get their new processes by a rollout."""
    when_restarted: tuple[str, ...] = ()
    """Workers of `restarted` that crashed; their pending restart applies the change."""


def compare(before: Mapping[str, WorkerSpec], after: Iterable[WorkerSpec]) -> Changes:
    """The changes from one set of specs to another."""
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
    """Whether the change takes effect only in a new process."""
    if (before.schedule is None) != (after.schedule is None):
        return True
    return (
        _told_of_jobs(before) != _told_of_jobs(after)
        or any(
            getattr(before, name) != getattr(after, name)
            for name in ("run", "env", "inherit_env", "cwd", "user", "surroundings", "obstacle", "health")
        )
        or _listens(before) != _listens(after)
    )


def _listens(spec: WorkerSpec) -> list[tuple[str, tuple[str, bool]]]:
    """The names and places of its sockets: another backlog or mode applies to the open socket."""
    return [(each.name, each.place) for each in spec.sockets]


def _told_of_jobs(spec: WorkerSpec) -> JobPolicy | None:
    """What a process receives about its queues when it starts; `crash_retries` is not part of it."""
    jobs = spec.jobs
    return None if jobs is None or not jobs.queues else replace(jobs, crash_retries=None)
