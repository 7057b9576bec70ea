"""A scheduled worker that does not succeed for two periods raises an alert."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.facts.alert import AlertKind
from rekindle.actors.messages import (
    AddWorker,
    ChangeWorkers,
    PauseWorkers,
    RemoveWorker,
    RunOverdue,
    ScheduleChanged,
)
from rekindle.actors.simulation import exits, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.views.health_summary import health_summary

NEVER = {"restart_on": "never"}
GOOD, BAD = exits(after_s=1), exits(1, after_s=1)


def overdue(system: SimulatedSystem) -> list[bool]:
    """Whether each alert about it is still open."""
    return [alert.is_active for alert in system.memory.alerts() if alert.kind is AlertKind.OVERDUE]


def test_the_second_failure_in_a_row_raises_an_alert_which_a_success_resolves(
    new_system: SystemFactory,
) -> None:
    script = lives(GOOD, BAD, BAD, BAD, GOOD)
    system = new_system(by_clock(restart=NEVER), alerts=AlertPolicy(), scripts=script).start()
    system.run_to(250)  # 100 good, 200 bad
    assert overdue(system) == []
    system.run_to(350)
    assert overdue(system) == [True]
    schedule = system.status().schedule
    assert schedule is not None
    assert schedule.overdue
    assert health_summary(system.report()).problems == (
        f"{W} has not succeeded for two periods of its schedule",
    )
    system.run_to(450)
    assert len(system.events(RunOverdue)) == 1
    system.run_to(550)
    assert overdue(system) == [False]


def test_a_run_that_never_ends_is_overdue_however_healthy_it_is(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), alerts=AlertPolicy(), scripts=lives(runs())).start()
    system.run_to(450)
    assert overdue(system) == [True]


def test_what_an_operator_paused_is_not_overdue(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), alerts=AlertPolicy(), scripts=lives(GOOD)).start()
    system.tell(PauseWorkers((W,)))
    system.run_to(1000)
    assert overdue(system) == []


def test_the_alert_is_told_once_across_supervisors(new_system: SystemFactory) -> None:
    system = new_system(by_clock(restart=NEVER), alerts=AlertPolicy(), scripts=lives(BAD)).start()
    system.run_to(350)
    system.restart_application()
    system.start().run(500)
    assert system.events(RunOverdue) == []
    assert overdue(system) == [True]


def test_a_pause_in_the_middle_of_a_run_leaves_the_alert_open(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), alerts=AlertPolicy(), scripts=lives(runs())).start()
    system.run_to(450)
    system.tell(PauseWorkers((W,)))
    system.run_to(460)
    assert (len(system.ends()), overdue(system)) == (1, [True])


# ── the schedule goes ────────────────────────────────────────────────────────────────────

OTHER = worker("other")
LATE = by_clock(restart=NEVER)


@pytest.fixture
def late(new_system: SystemFactory) -> SimulatedSystem:
    """A system in which a scheduled worker is overdue."""
    scripts = {W: lives(BAD, BAD, BAD, runs())}
    system = new_system(LATE, OTHER, alerts=AlertPolicy(), scripts=scripts).start()
    system.run_to(350)
    assert overdue(system) == [True]
    return system


@pytest.mark.parametrize(
    ("specs", "plan"), [((worker(), OTHER), ""), ((by_clock(every="1000s"), OTHER), "every 16m40s")]
)
def test_a_reload_with_another_schedule_or_none_resolves_the_alert(
    late: SimulatedSystem, specs: tuple[WorkerSpec, ...], plan: str
) -> None:
    late.tell(ChangeWorkers(specs))
    late.run_to(360)
    assert overdue(late) == [False]
    assert [event for _, event in late.events(ScheduleChanged)] == [ScheduleChanged(W, plan)]


def test_a_reload_without_a_change_of_the_schedule_leaves_the_alert_open(late: SimulatedSystem) -> None:
    late.tell(ChangeWorkers((by_clock(restart=NEVER, missed="skip"), OTHER)))
    late.run_to(360)
    assert (overdue(late), late.events(ScheduleChanged)) == ([True], [])


def test_a_reload_without_the_worker_resolves_the_alert(late: SimulatedSystem) -> None:
    late.tell(ChangeWorkers((OTHER,)))
    late.run_to(360)
    assert overdue(late) == [False]


@pytest.mark.parametrize("specs", [(worker(), OTHER), (by_clock(every="1000s"), OTHER), (OTHER,)])
def test_a_schedule_that_is_gone_at_the_next_start_leaves_no_alert_open(
    late: SimulatedSystem, specs: tuple[WorkerSpec, ...]
) -> None:
    late.specs = specs
    late.restart_application()
    late.start().run(10)
    assert overdue(late) == [False]


def test_a_worker_that_is_removed_and_added_again_may_be_overdue_again(late: SimulatedSystem) -> None:
    late.tell(RemoveWorker(W))
    late.run_to(360)
    assert overdue(late) == [False]
    late.tell(AddWorker(LATE))
    late.run_to(450)
    assert overdue(late) == [False]  # its next two periods are not over
    late.run_to(750)
    assert overdue(late) == [False, True]
