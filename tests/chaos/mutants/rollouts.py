"""Mistakes in rollouts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors.rules import rollout as rules
from rekindle.actors.rules.rollout import Rollout, Sights, Turn
from rekindle.actors.supervisor.orders.declarations import Declarations
from rekindle.actors.supervisor.rollouts import Rollouts


def replaces_before_a_spare_is_ready(patch: pytest.MonkeyPatch) -> None:
    """A process that has started is taken for one that is ready."""
    real = rules.advance

    def advance(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
        seen = {id_: replace(each, is_ready=each.is_up) for id_, each in sights.items()}
        return real(rollout, seen, now_ms)

    patch.setattr(rules, "advance", advance)


def leaves_the_spares(patch: pytest.MonkeyPatch) -> None:
    """The additional workers are not removed."""
    patch.setattr(Declarations, "dismiss", lambda _self, _ids: None)


def lets_nothing_settle(patch: pytest.MonkeyPatch) -> None:
    """A new process that is ready counts at once."""
    edit(patch, rules._go_on, " + rollout.settle_ms", "")


def settles_with_the_first_of_several(patch: pytest.MonkeyPatch) -> None:
    """The first new process that is ready starts the time of all."""
    edit(patch, rules._go_on, "max((each.ready_ms or 0 for", "min((each.ready_ms or 0 for")


def waits_for_ever_for_a_new_process(patch: pytest.MonkeyPatch) -> None:
    """A new process has any time to become ready."""
    edit(patch, rules._problem, "now_ms >= rollout.since_ms + rollout.patience_ms", "False")


def loses_patience(patch: pytest.MonkeyPatch) -> None:
    """A new process has an eighth of its time to become ready."""
    edit(
        patch,
        rules._problem,
        "rollout.since_ms + rollout.patience_ms",
        "rollout.since_ms + rollout.patience_ms // 8",
    )


def overlooks_a_death_while_it_settles(patch: pytest.MonkeyPatch) -> None:
    """A new process that dies before it has settled is not a problem."""
    wrong = "has_died or has_ended or (is_new and (sight.is_dead or sight.is_down))"
    edit(patch, rules._problem, wrong, f"watched.ready_ms is None and ({wrong})")


def takes_a_paused_process_for_a_settled_one(patch: pytest.MonkeyPatch) -> None:
    """A new process that is stopped before it has settled is not a problem."""
    edit(patch, rules._problem, "watched.first == sight.generation and not sight.is_up", "False")


def counts_readiness_that_was_lost(patch: pytest.MonkeyPatch) -> None:
    """A new process that is not ready any more counts as ready since it first was."""
    edit(patch, rules._looked_at, "    since = None", "    since = watched.ready_ms")


def ends_after_the_first_members(patch: pytest.MonkeyPatch) -> None:
    """A rollout is over although some have their old processes."""
    edit(patch, rules._go_on, "if not rollout.left:", "if rollout.replaced or not rollout.left:")


def replaces_all_at_once(patch: pytest.MonkeyPatch) -> None:
    """More are replaced than there are spares."""
    edit(patch, rules._batch, "size = len(rollout.spares)", "size = len(there)")


def replaces_beside_a_spare_that_died(patch: pytest.MonkeyPatch) -> None:
    """Only the first step looks at the spares."""
    edit(patch, rules._replace_next, " or not sights[id_].is_ready", "")


def awaits_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """A worker that an operator stopped ends the rollout."""
    edit(patch, rules._replace_next, " if _runs(id_, sights)", "")


def leaves_the_old_processes(patch: pytest.MonkeyPatch) -> None:
    """The old processes of the members run on."""
    edit(patch, Rollouts._renew, "self._workers.step(component_id, change)", "pass")


def sets_no_timer(patch: pytest.MonkeyPatch) -> None:
    """A rollout goes on only when something happens."""
    edit(patch, Rollouts._look_again, "if at_ms is not None and", "if False and")
