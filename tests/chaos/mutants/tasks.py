"""Mistakes with tasks, and with who restarts in a group."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors import supervision
from rekindle.actors.rules import restarts
from rekindle.actors.supervision import group_rules as groups
from rekindle.actors.supervision import on_death, on_health
from rekindle.actors.supervision.worker import SupervisedWorker


def restarts_the_members_before_the_dead_one(patch: pytest.MonkeyPatch) -> None:
    """`rest_for_one` is taken for `one_for_all`."""
    right = groups._falls

    def falls(worker: Any, culprit: Any, ruling: Any) -> bool:
        return right(worker, culprit, replace(ruling, from_position=-1))

    patch.setattr(groups, "_falls", falls)


def leaves_the_others_of_a_group_down(patch: pytest.MonkeyPatch) -> None:
    """A member that was stopped for another one is not started again."""
    right = groups.fall

    def fall(worker: Any, culprit: str, down: str | None) -> Any:
        step = right(worker, culprit, down)
        phase = step.worker.phase
        if not hasattr(phase, "relaunch"):
            return step
        return replace(step, worker=replace(step.worker, phase=replace(phase, relaunch=False)))

    patch.setattr(groups, "fall", fall)


def repeats_a_task_that_is_done(patch: pytest.MonkeyPatch) -> None:
    """A task is restarted like any worker."""
    right = restarts.decide

    def decide(policy: Any, state: Any, death: Any, around: Any) -> Any:
        return right(policy, state, death, replace(around, is_task=False))

    patch.setattr(on_death, "decide", decide)


def starts_before_the_task_is_done(patch: pytest.MonkeyPatch) -> None:
    """A worker that waits for a task starts when the task is healthy."""
    patch.setattr(SupervisedWorker, "lets_start", lambda self, _other: self.is_healthy or self.is_done)


def remembers_the_failure_of_a_task(patch: pytest.MonkeyPatch) -> None:
    """The counters of a task outlast the supervisor."""
    right = on_health.remembered

    def remembered(spec: Any, known: Any, world: Any) -> Any:
        from dataclasses import replace as changed

        if not spec.is_task:
            return right(spec, known, world)
        step = right(changed(spec, kind="service"), known, world)
        return replace(step, worker=replace(step.worker, spec=spec))

    patch.setattr(supervision, "remembered", remembered)
