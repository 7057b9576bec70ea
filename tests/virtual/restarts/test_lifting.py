"""A failed worker that comes back as another version, with all of the actors around it."""

from __future__ import annotations

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, SimulatedSystem, W, lives, worker

from rekindle.actors.messages import (
    AlertReport,
    ChangeWorkers,
    Done,
    FailureLifted,
    PauseWorkers,
    Refused,
    ReportAlerts,
    StartWorkers,
    WorkersChanged,
)
from rekindle.actors.simulation import crashes_after, dies_after, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.worker_spec import WorkerSpec

FAILS_THEN_LIVES = lives(dies_after(3), dies_after(3), then=runs())


def once(setting: bool = True, **others: object) -> WorkerSpec:
    """A worker that is given up at its second death."""
    return worker(restart={"max_lifetime": 1, "clear_failed_on_change": setting}, **others)  # type: ignore[arg-type]


def begin(system: SimulatedSystem, version: str) -> None:
    """Start everything, as this version of the worker."""
    system.tell(StartWorkers(None, None, {W: version}))
    system.run(60)


def given_up(new_system: SystemFactory, setting: bool = True, **settings: object) -> SimulatedSystem:
    """A system whose worker was given up as version a-1."""
    system = new_system(once(setting), scripts=FAILS_THEN_LIVES, **settings)
    begin(system, "a-1")
    assert (system.status().shown, system.stored().failed_fingerprint) == ("failed", "a-1")
    return system


def test_ps_10_the_same_version_stays_failed_when_the_application_comes_back(
    new_system: SystemFactory,
) -> None:
    system = given_up(new_system)
    system.restart_application()
    begin(system, "a-1")
    assert (system.status().shown, system.starts()) == ("failed", [])


def test_another_version_is_tried_when_the_application_comes_back(new_system: SystemFactory) -> None:
    system = given_up(new_system)
    system.restart_application()
    begin(system, "b-1")
    assert (system.status().shown, system.status().restart_count) == ("healthy", 0)
    [(_, event)] = system.events(FailureLifted)
    assert event == FailureLifted(W, "a-1", "b-1", "its code changed")
    stored = system.stored()
    assert (stored.restart_count, stored.failed_at_wall_ms, stored.failed_fingerprint) == (0, None, None)
    assert "failure_lifted" in [record.type for record in system.memory.events().events]


def test_a_start_by_hand_lifts_the_failure_of_another_version_even_beside_others(
    new_system: SystemFactory,
) -> None:
    system = given_up(new_system)
    answers = Listener(lambda: system.now)
    system.tell(StartWorkers((W,), answers, {W: "a-1"}))
    system.tell(StartWorkers((W,), answers, {W: "a-2"}))
    system.run(60)
    refused, done = answers.messages
    assert isinstance(refused, Refused)
    assert refused.reason.endswith(
        "and it is still the version that failed: restart clears that and starts it, reset clears it"
    )
    assert isinstance(done, Done)
    assert system.status().shown == "healthy"
    [(_, event)] = system.events(FailureLifted)
    assert event.reason == "its configuration changed"


def test_without_the_setting_another_version_stays_failed(new_system: SystemFactory) -> None:
    system = given_up(new_system, setting=False)
    system.restart_application()
    begin(system, "b-1")
    assert (system.status().shown, system.starts()) == ("failed", [])


def test_another_version_that_fails_is_given_up_as_that_version(new_system: SystemFactory) -> None:
    system = new_system(once(), scripts=crashes_after(3))
    begin(system, "a-1")
    system.restart_application()
    begin(system, "b-1")
    assert (system.status().shown, len(system.starts())) == ("failed", 2)
    assert system.stored().failed_fingerprint == "b-1"


def test_a_reload_lifts_what_is_another_version_even_if_its_spec_is_the_same(
    new_system: SystemFactory,
) -> None:
    system = given_up(new_system)
    same = system.ask(lambda reply: ChangeWorkers((once(),), reply, {W: "a-1"}))
    assert isinstance(same, WorkersChanged)
    assert (same.changes.lifted, system.status().shown) == ((), "failed")
    other = system.ask(lambda reply: ChangeWorkers((once(),), reply, {W: "b-1"}))
    assert isinstance(other, WorkersChanged)
    assert (other.changes.lifted, other.changes.unchanged) == ((W,), (W,))
    system.run(5)
    assert system.status().shown == "healthy"


def test_a_reload_lifts_what_has_another_configuration(new_system: SystemFactory) -> None:
    system = given_up(new_system)
    changed = system.ask(lambda reply: ChangeWorkers((once(env={"A": "1"}),), reply, {W: "a-2"}))
    assert isinstance(changed, WorkersChanged)
    assert (changed.changes.restarted, changed.changes.lifted) == ((W,), (W,))
    system.run(5)
    assert (system.status().shown, len(system.starts())) == ("healthy", 3)


def test_a_lifted_worker_that_is_paused_waits_for_the_end_of_the_pause(new_system: SystemFactory) -> None:
    system = given_up(new_system)
    system.tell(PauseWorkers())
    system.tell(ChangeWorkers((once(),), None, {W: "b-1"}))
    system.run(5)
    assert (system.status().shown, len(system.starts())) == ("stopped", 2)


def test_the_alert_of_a_lifted_worker_is_over(new_system: SystemFactory) -> None:
    system = given_up(new_system, alerts=AlertPolicy())
    system.tell(ChangeWorkers((once(),), None, {W: "b-1"}))
    replies: list[AlertReport] = []

    class Reply:
        def tell(self, message: AlertReport) -> None:
            replies.append(message)

    assert system.actors.alerts is not None
    system.actors.alerts.tell(ReportAlerts(Reply()))
    system.runtime.settle()
    assert [alert.is_active for alert in replies[0].alerts] == [False]
