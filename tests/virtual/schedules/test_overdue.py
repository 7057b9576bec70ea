"""A scheduled worker that does not succeed for two periods raises an alert."""

from __future__ import annotations

from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock
from tests.virtual.simulated_system import SimulatedSystem, W, lives

from rekindle.actors.facts.alert import Kind
from rekindle.actors.messages import PauseWorkers, RunOverdue
from rekindle.actors.simulation import exits, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.views.health_summary import health_summary

NEVER = {"restart_on": "never"}
GOOD, BAD = exits(after_s=1), exits(1, after_s=1)


def overdue(system: SimulatedSystem) -> list[bool]:
    """Whether each alert about it is still open."""
    return [alert.is_active for alert in system.memory.alerts() if alert.kind is Kind.OVERDUE]


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
