"""Mistakes in pauses, and in what they hold back."""

from __future__ import annotations

import pytest
from tests.chaos.mutants.mutant import edit

from rekindle.actors.rules.worker_health.observed_worker import ObservedWorker
from rekindle.actors.supervision.pauses import Pauses
from rekindle.actors.supervisor.orders.pause_orders import PauseOrders
from rekindle.actors.supervisor.pending.pause_ends import PauseEnds


def ends_all_pauses_with_the_first(patch: pytest.MonkeyPatch) -> None:
    """When one worker is resumed, all are."""
    edit(patch, Pauses.resumed, "if id_ not in chosen}", "if False}")


def ends_the_pauses_of_workers_with_that_of_everything(patch: pytest.MonkeyPatch) -> None:
    """When everything is resumed, so is a worker that was paused by itself."""
    edit(patch, Pauses.resumed, "if id_ not in chosen}", "if id_ not in chosen and ids is not None}")


def starts_what_another_pause_holds(patch: pytest.MonkeyPatch) -> None:
    """A worker starts when its own pause ends, although everything is paused."""
    edit(patch, PauseOrders.end, "and not self._orders.pauses.holds(id_)", "")


def forgets_the_ends_of_other_pauses(patch: pytest.MonkeyPatch) -> None:
    """When one pause ends, no other one ends by itself."""
    edit(patch, PauseEnds.remove, "self._ends.pop(id_, None)", "self._ends.clear()")


def ends_a_pause_when_an_earlier_one_would_have_ended(patch: pytest.MonkeyPatch) -> None:
    """A pause without an end that follows one with an end ends with that."""
    edit(patch, PauseEnds.set, "self._ends.pop(id_, None)", "pass")


def sets_no_timer_for_the_next_end(patch: pytest.MonkeyPatch) -> None:
    """After one pause has ended by itself, the next one does not."""
    edit(patch, PauseOrders.end_elapsed, "self._ends.arm()", "pass")


def counts_probes_in_a_pause(patch: pytest.MonkeyPatch) -> None:
    """A worker that idles is ended because its probe fails."""
    edit(patch, ObservedWorker.probed, "not self.paused and ", "")
