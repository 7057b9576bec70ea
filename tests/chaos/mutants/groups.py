"""Mistakes about groups that stand and fall together, and about deaths that no limit counts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors.deaths.death import Death
from rekindle.actors.rules import restarts
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.supervision import group_rules as groups
from rekindle.actors.supervision.worker import SupervisedWorker, WorkerStep
from rekindle.actors.supervisor import actor
from rekindle.actors.supervisor.groups import Groups


def starts_before_the_others_have_ended(patch: pytest.MonkeyPatch) -> None:
    """A member is restarted while members that restart with it still run."""
    patch.setattr(groups, "waits_for", lambda *_: ())


def restarts_only_the_member_that_died(patch: pytest.MonkeyPatch) -> None:
    """The strategy of a group is forgotten."""
    patch.setattr(groups, "affected", lambda *_: ())


def leaves_a_group_that_is_given_up_running(patch: pytest.MonkeyPatch) -> None:
    """A group that is given up keeps the processes of its other members."""
    right = groups.fall

    def fall(worker: SupervisedWorker, culprit: str, down: str | None) -> WorkerStep:
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
        patch.setattr(module, "with_success_codes", lambda _policy, death: death)


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


def never_forgets_a_restart(patch: pytest.MonkeyPatch) -> None:
    """The window of a group's budget is ignored."""
    edit(patch, groups.recent, " if now_ms - at < group.window_s * 1000", "")


def allows_a_group_one_restart_more(patch: pytest.MonkeyPatch) -> None:
    """A group restarts once more than its budget says."""
    edit(patch, groups.rule, "used < group.max_in_window", "used <= group.max_in_window")


def allows_a_group_one_restart_less(patch: pytest.MonkeyPatch) -> None:
    """A group is given up one restart early."""
    edit(patch, groups.rule, "used < group.max_in_window", "used + 1 < group.max_in_window")


def forgets_the_budget_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A new supervisor allows a group its whole budget."""
    edit(patch, Groups.restore, "if restarts:", "if False:")


def forgets_at_a_restart_what_is_given_up(patch: pytest.MonkeyPatch) -> None:
    """A new supervisor starts a group that was given up."""
    edit(patch, Groups.restore, "if given_up is not None:", "if False:")


def takes_stamps_from_the_future(patch: pytest.MonkeyPatch) -> None:
    """Restarts that a clock which was set back dates into the future stay forever."""
    edit(patch, Groups.restore, "now - max(0, wall - at)", "now - (wall - at)")


def gives_up_for_what_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """An exit that no limit counts spends the budget of a group."""
    edit(
        patch,
        groups.rule,
        "if action in (Action.HELD, Action.RESTART_UNCOUNTED):",
        "if action is Action.HELD:",
    )


def keeps_the_budget_of_what_was_given_up(patch: pytest.MonkeyPatch) -> None:
    """A group that is started again has no budget."""
    edit(patch, Groups._note, "self._budgets.pop(group.name, None)", "pass")


def leaves_the_others_of_a_restored_group_down(patch: pytest.MonkeyPatch) -> None:
    """Only the member that died last comes back."""
    edit(
        patch,
        Groups.start_restored,
        "self._start([worker.id for worker in barred if not self._orders.down(worker)])",
        "pass",
    )


def restores_a_group_by_a_reset(patch: pytest.MonkeyPatch) -> None:
    """A group starts although the member that died last does not."""
    edit(
        patch,
        Groups._is_back,
        "not down and not isinstance(worker.phase, Failed)",
        "not isinstance(worker.phase, Failed)",
    )


def restarts_the_siblings_of_the_same_table(patch: pytest.MonkeyPatch) -> None:
    """`rest_for_one` also restarts the workers beside the dead one."""
    edit(
        patch,
        groups._falls,
        "place.position > ruling.from_position",
        "place.position >= ruling.from_position",
    )


def stops_a_group_in_the_order_of_its_starts(patch: pytest.MonkeyPatch) -> None:
    """What falls with a dead member falls in the wrong order."""
    edit(patch, groups.affected, "tuple(reversed(chosen))", "tuple(chosen)")


def restarts_a_temporary_worker(patch: pytest.MonkeyPatch) -> None:
    """A worker that is never restarted is restarted with its group."""
    edit(patch, groups.fall, "relaunch=not worker.spec.temporary", "relaunch=True")


def starts_while_another_member_waits(patch: pytest.MonkeyPatch) -> None:
    """A group runs in part while a member waits for its delay."""
    edit(patch, groups.waits_for, "isinstance(other.phase, BackingOff) and", "False and")


def counts_a_restart_at_the_edge_of_its_window(patch: pytest.MonkeyPatch) -> None:
    """A restart exactly one window ago still counts against a group."""
    edit(patch, groups.recent, "now_ms - at < group", "now_ms - at <= group")


def carries_counters_over_an_escalation(patch: pytest.MonkeyPatch) -> None:
    """A member that reached its own limit goes on with what was counted, although its group escalates."""
    edit(
        patch, groups.decision_in_group, "restart, RestartState(), around", "restart, decision.state, around"
    )


def stores_no_new_beginning(patch: pytest.MonkeyPatch) -> None:
    """That a member starts from zero in the group around its own is not persisted."""
    edit(patch, Groups.judge, "if begins_anew else ()", "if False else ()")


def leaves_a_finished_member_down(patch: pytest.MonkeyPatch) -> None:
    """A member that ended well does not start with those that restart."""
    edit(patch, Groups.follow, "if not given_up:", "if False:")


def restarts_an_escalated_group_in_part(patch: pytest.MonkeyPatch) -> None:
    """The strategy of the group around it says which members of a group that escalates restart."""
    edit(patch, groups._falls, "if ruling.renewed and", "if False and")


def gives_up_members_that_do_not_depend(patch: pytest.MonkeyPatch) -> None:
    """In a `one_for_one` group all members are stopped when one is given up."""
    right = "group.on_exhausted is GroupExhausted.FAIL and group.strategy is Strategy.ONE_FOR_ONE"
    edit(patch, groups.rule, right, "False")


def gives_up_one_member_only(patch: pytest.MonkeyPatch) -> None:
    """A member that reaches its own limit is given up without its group."""
    edit(patch, groups.rule, "action in (Action.MARK_FAILED, Action.HELD)", "action is Action.HELD")
