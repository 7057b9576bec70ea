"""Mistakes in what an upgraded supervisor takes over."""

from __future__ import annotations

import pytest
from tests.chaos.mutants.mutant import edit

from rekindle.actors.alert_desk import AlertDesk
from rekindle.actors.rules.worker_health import known_health
from rekindle.actors.supervision import handed_over_worker
from rekindle.actors.supervision.stop_order import StopOrder
from rekindle.actors.supervision.worker import WorkerStep
from rekindle.actors.supervisor import succession
from rekindle.actors.supervisor.breakers import Breakers
from rekindle.actors.supervisor.pending.start_gate import StartGate
from rekindle.actors.supervisor.pending.worker_timers import WorkerTimers
from rekindle.actors.supervisor.upkeep import Upkeep
from rekindle.actors.worker_proxy import WorkerProxy


def forgets_delays_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A worker that waits for its restart is never started again."""
    patch.setattr(succession, "back_off", lambda worker, _phase, _world: WorkerStep(worker))


def forgets_the_age_of_processes_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """The time to the next recycling begins again."""
    patch.setattr(Upkeep, "known", lambda _self: {})


def forgets_stops_that_wait_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A stop that was decided, and waits for the end of another worker, does not happen."""
    patch.setattr(StopOrder, "take_over", lambda _self, _stops, _unkillable: None)


def forgets_the_starts_under_way_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """More workers start at a time than may."""
    edit(patch, StartGate.known, "return tuple(sorted(self._starting))", "return ()")


def forgets_lasting_health_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A worker that is healthy when its supervisor is upgraded keeps its streak."""
    edit(patch, WorkerTimers.sustained_at, "return dict(self._sustained)", "return {}")


def awaits_heartbeats_of_a_pause_after_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A worker that idles is ended for its silence."""
    edit(patch, known_health.restore, "worker.paused = known.paused", "pass")


def awaits_no_keep_alives_after_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """The time of the last keep-alive is not handed over."""
    edit(patch, known_health.restore, "fed=known.fed, ", "")


def forgets_readiness_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A death is taken for one before the worker was ready."""
    edit(patch, known_health.restore, "worker.was_ready = known.was_ready", "pass")


def leaves_a_stop_at_its_step_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """The next step of a stop in progress never comes."""
    wrong = "self._wait(left, LadderElapsed(self._state.generation, self._state.step))"
    edit(patch, WorkerProxy._take_over, wrong, "pass")


def forgets_the_timer_of_a_breaker_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A breaker that is half open stays so."""
    edit(patch, Breakers.take_over, "self._schedule_check(policy, state)", "pass")


def forgets_schedules_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A worker that runs by the clock never runs again."""
    edit(patch, handed_over_worker.taken_over, "timetable=known.timetable,", "")


def counts_health_from_the_upgrade(patch: pytest.MonkeyPatch) -> None:
    """An alert ends late, because health lasts from the upgrade."""
    edit(
        patch,
        AlertDesk.on_start,
        "self._settle(id_, since)",
        "self._settle(id_, self._runtime.clock.monotonic())",
    )
