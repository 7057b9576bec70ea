"""Mistakes about groups that stand and fall together, and about deaths that no limit counts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors.deaths.death import Death
from rekindle.actors.rules import restarts
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.supervision import group_rules as groups
from rekindle.actors.supervision.worker import Worker, WorkerStep
from rekindle.actors.supervisor import actor


def starts_before_the_others_have_ended(patch: pytest.MonkeyPatch) -> None:
    """A member is restarted while members that restart with it still run."""
    patch.setattr(groups, "waits_for", lambda *_: ())


def restarts_only_the_member_that_died(patch: pytest.MonkeyPatch) -> None:
    """The strategy of a group is forgotten."""
    patch.setattr(groups, "affected", lambda *_: ())


def leaves_a_group_that_is_given_up_running(patch: pytest.MonkeyPatch) -> None:
    """A group that is given up keeps the processes of its other members."""
    right = groups.fall

    def fall(worker: Worker, culprit: str, down: str | None) -> WorkerStep:
        return right(worker, culprit, None) if down is None else WorkerStep(worker)

    patch.setattr(groups, "fall", fall)


def never_spends_the_budget_of_a_group(patch: pytest.MonkeyPatch) -> None:
    """A group restarts without end."""
    patch.setattr(groups, "recent", lambda *_: ())


def restarts_in_a_hot_loop(patch: pytest.MonkeyPatch) -> None:
    """A worker that exits with an uncounted code as soon as it starts takes all of the machine."""
    patch.setattr(restarts, "UNCOUNTED_APART_MS", 0)


def takes_success_for_a_failure(patch: pytest.MonkeyPatch) -> None:
    """The exit codes that mean success are forgotten."""
    for module in (restarts, actor):
        patch.setattr(module, "judged", lambda _policy, death: death)


def allows_one_boot_failure_too_many(patch: pytest.MonkeyPatch) -> None:
    """A worker that never gets ready has one try more than its policy says."""
    right = restarts._uncounted

    def uncounted(policy: RestartPolicy, state: Any, death: Death, around: Any) -> Any:
        generous = replace(state, boot_failures=max(0, state.boot_failures - 1))
        decision = right(policy, generous, death, around)
        if decision is None or state.boot_failures == 0:
            return decision
        return replace(decision, state=replace(decision.state, boot_failures=state.boot_failures + 1))

    patch.setattr(restarts, "_uncounted", uncounted)
