"""Mistakes in what an upgraded supervisor takes over."""

from __future__ import annotations

import pytest

from rekindle.actors.supervision.stop_order import StopOrder
from rekindle.actors.supervision.worker import WorkerStep
from rekindle.actors.supervisor import succession
from rekindle.actors.supervisor.upkeep import Upkeep


def forgets_delays_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A worker that waits for its restart is never started again."""
    patch.setattr(succession, "back_off", lambda worker, _phase, _world: WorkerStep(worker))


def forgets_the_age_of_processes_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """The time to the next recycling begins again."""
    patch.setattr(Upkeep, "known", lambda _self: {})


def forgets_stops_that_wait_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A stop that was decided, and waits for the end of another worker, does not happen."""
    patch.setattr(StopOrder, "take_over", lambda _self, _stops, _unkillable: None)
