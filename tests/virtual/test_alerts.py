"""Alerts over the real actors in virtual time: episodes from the first crash to lasting health."""

from __future__ import annotations

from tests.virtual.simulated_system import Listener, SimulatedSystem, W, lives, uptimes, worker, workers

from rekindle.actors.facts.alert import Alert, AlertKind, Happening, Severity
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.usage import Usage
from rekindle.actors.messages import (
    AcknowledgeAlert,
    ActorReplaced,
    AlertChanged,
    AlertReport,
    Done,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ReportAlerts,
    WorkerRemoved,
)
from rekindle.actors.messages.internal.to_desks import QueuesTouched
from rekindle.actors.simulation import Behaviour, dies_after, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.resource_limits import ResourceLimits

POLICY = AlertPolicy()


def changes(system: SimulatedSystem) -> list[tuple[float, str, int]]:
    """When what happened to which alert."""
    return [(at, event.happening.value, event.alert.id) for at, event in system.events(AlertChanged)]


def asked(system: SimulatedSystem, message: object) -> object:
    listener = Listener(system.runtime.clock.monotonic)
    assert system.actors.alerts is not None
    system.actors.alerts.tell(message(listener))  # type: ignore[operator]
    system.runtime.settle()
    return listener.messages[0]


def report(system: SimulatedSystem) -> AlertReport:
    answer = asked(system, ReportAlerts)
    assert isinstance(answer, AlertReport)
    return answer


def test_nt_02_a_crash_loop_is_one_alert_from_its_first_death_until_it_is_given_up() -> None:
    system = SimulatedSystem(worker(), scripts=lives(dies_after(3.0)), alerts=POLICY).start()
    system.run(600)
    told = [happening for _, happening, _ in changes(system)]
    assert told == ["opened", *["repeated"] * 5, "escalated"]
    (alert,) = report(system).alerts
    assert (alert.occurrences, alert.severity, alert.restart_available) == (6, Severity.CRITICAL, True)
    assert alert.message == "auto-restart disabled: it was given up"


def test_nt_04_only_health_that_lasts_ends_an_episode() -> None:
    system = SimulatedSystem(worker(), scripts=uptimes(10.0, 20.0), alerts=POLICY).start()
    system.run(200)
    # It was well for 20 s between its two deaths: not for long enough.
    assert changes(system) == [(10.0, "opened", 1), (31.0, "repeated", 1), (63.0, "resolved", 1)]


def test_an_unacknowledged_alert_is_escalated_once() -> None:
    spec = worker(restart={"enabled": False})
    system = SimulatedSystem(spec, scripts=uptimes(10.0), alerts=AlertPolicy(escalate_after_s=60)).start()
    system.run(600)
    assert changes(system) == [(10.0, "opened", 1), (70.0, "escalated", 1)]


def test_nt_05_a_noted_alert_is_not_escalated_and_stays() -> None:
    spec = worker(restart={"enabled": False})
    system = SimulatedSystem(spec, scripts=uptimes(10.0), alerts=AlertPolicy(escalate_after_s=60)).start()
    system.run(20)
    assert asked(system, lambda reply: AcknowledgeAlert(1, "root", reply)) == Done()
    system.run(600)
    assert [happening for _, happening, _ in changes(system)] == ["opened", "acknowledged"]
    (alert,) = report(system).alerts
    assert (alert.is_active, alert.acknowledged_by) == (True, "root")


def test_an_alert_that_is_over_cannot_be_acknowledged() -> None:
    system = SimulatedSystem(worker(), scripts=uptimes(10.0), alerts=POLICY).start()
    system.run(200)
    answer = asked(system, lambda reply: AcknowledgeAlert(1, "root", reply))
    assert answer == Refused("alert 1 is already resolved: crashed: exited with code 1")


def test_pausing_a_crash_loop_keeps_its_alert_open() -> None:
    system = SimulatedSystem(worker(), scripts=lives(dies_after(3.0)), alerts=POLICY).start()
    system.run(5)
    system.tell(PauseWorkers())
    system.run(600)
    (alert,) = report(system).alerts
    assert (alert.is_active, alert.severity) == (True, Severity.WARNING)


def test_a_worker_that_is_slow_to_end_for_a_pause_does_not_settle_meanwhile() -> None:
    deaf = Behaviour(ignores_request=True, ignores_term=True)
    system = SimulatedSystem(worker(), scripts=lives(dies_after(3.0), deaf), alerts=POLICY).start()
    system.run(30)  # it has been healthy for 26 s, and takes 12 s to end
    system.tell(PauseWorkers())
    system.run(600)
    (alert,) = report(system).alerts
    assert (alert.is_active, alert.reason) == (True, "paused before it recovered")


def test_an_outage_of_ten_minutes_is_one_alert_until_it_ends() -> None:
    breaker = BreakerPolicy(name="db", deaths=3, window_s=30, canary_delay_s=10, hold_s=10)

    def life(_generation: int) -> Behaviour:
        return dies_after(5.0, exit=1) if system.now < 600 else runs()

    system = SimulatedSystem(*workers(10, breaker=breaker), scripts=life, alerts=POLICY)
    system.start()
    system.run(500)
    assert [(each.kind, each.message) for each in report(system).alerts if each.is_active] == [
        (AlertKind.BREAKER, "db is away, 10 workers held")
    ]
    opened = [event.alert for _, event in system.events(AlertChanged) if event.happening is Happening.OPENED]
    assert [each.kind for each in opened if each.kind is AlertKind.BREAKER] == [AlertKind.BREAKER]
    before = [each for each in opened if each.kind is AlertKind.CRASHED]
    assert all(each.severity is Severity.WARNING for each in before)
    system.run(600)
    assert [each.is_active for each in report(system).alerts if each.kind is AlertKind.BREAKER] == [False]


def test_an_alert_that_is_not_there_cannot_be_noted() -> None:
    system = SimulatedSystem(alerts=POLICY).start()
    answer = asked(system, lambda reply: AcknowledgeAlert(7, "root", reply))
    assert answer == Refused("there is no alert 7")


def test_alerts_survive_a_restart_of_the_application_and_are_resolved_by_the_next_run() -> None:
    system = SimulatedSystem(worker(), scripts=uptimes(10.0), alerts=POLICY).start()
    system.run(15)
    system.restart_application()
    system.start()
    system.run(60)
    assert [(happening, number) for _, happening, number in changes(system)] == [("resolved", 1)]
    assert [alert.is_active for alert in system.memory.alerts()] == [False]


def test_nt_13_without_alerts_no_notification_is_sent_and_recovery_runs() -> None:
    for policy in (None, AlertPolicy(enabled=False)):
        system = SimulatedSystem(worker(), scripts=uptimes(10.0), alerts=policy).start()
        system.run(60)
        assert changes(system) == []
        assert len(system.starts()) == 2


def test_an_alert_is_published_as_it_is_stored() -> None:
    system = SimulatedSystem(worker(), scripts=uptimes(10.0, 5.0), alerts=POLICY).start()
    for _ in range(100):
        system.run(1)
        told = {event.alert.id: event.alert for _, event in system.events(AlertChanged)}
        assert system.memory.alerts() == tuple(told.values())


def test_an_alert_during_a_store_outage_is_published_from_memory_and_stored_later() -> None:
    from rekindle.actors import StoreUnavailableError

    system = SimulatedSystem(worker(), scripts=uptimes(10.0), alerts=POLICY).start()
    system.run(5)
    system.memory.fault = StoreUnavailableError("locked")
    system.run(20)
    assert {event.alert.kind.value for _, event in system.events(AlertChanged)} == {"crashed", "store"}
    system.memory.fault = None
    system.run(120)
    assert [alert.is_active for alert in system.memory.alerts()] == [False, False]


def test_every_alert_is_opened_before_anything_else_happens_to_it() -> None:
    for seed in range(20):
        system = SimulatedSystem(
            *(worker(f"w:{number}") for number in range(5)),
            scripts=lives(dies_after(7.0)),
            alerts=POLICY,
            seed=seed,
        ).start()
        system.run(900)
        seen: dict[int, list[Happening]] = {}
        for _, event in system.events(AlertChanged):
            seen.setdefault(event.alert.id, []).append(event.happening)
        assert sorted(seen) == [1, 2, 3, 4, 5]
        for told in seen.values():
            assert (told[0], told.count(Happening.OPENED)) == (Happening.OPENED, 1)
            assert told.count(Happening.ESCALATED) == 1
    assert W not in {event.alert.component_id for _, event in system.events(AlertChanged)}


def test_a_toxic_job_is_an_alert_until_an_operator_retries_or_drops_it() -> None:
    spec = worker(jobs={"queues": ("tag",), "crash_retries": 0})
    system = SimulatedSystem(spec, scripts=uptimes(10.0), alerts=POLICY)
    (job,) = system.memory.jobs.add("tag", [NewJob(payload="{}")])
    system.start()
    assert system.memory.jobs.claim("tag", W, 1, "") is not None
    system.run(100)
    (alert,) = (each for each in report(system).alerts if each.kind is AlertKind.TOXIC)
    assert (alert.is_active, alert.queue, alert.work_item) == (True, "tag", job)
    system.memory.jobs.retry([job])
    system.actors.watch.tell(QueuesTouched((job,)))
    system.run(2)
    (alert,) = (each for each in report(system).alerts if each.kind is AlertKind.TOXIC)
    assert not alert.is_active


def active(system: SimulatedSystem) -> list[Alert]:
    return [alert for alert in report(system).alerts if alert.is_active]


def given_up() -> SimulatedSystem:
    """Of two workers one was given up, and there is an alert about it."""
    scripts = {W: lives(dies_after(3.0))}
    system = SimulatedSystem(worker(), worker("other"), scripts=scripts, alerts=POLICY).start()
    system.run(600)
    assert [alert.component_id for alert in active(system)] == [W]
    return system


def test_the_alert_about_a_worker_that_is_removed_is_over() -> None:
    system = given_up()
    system.tell(RemoveWorker(W))
    system.run(1)
    assert [event.component_id for _, event in system.events(WorkerRemoved)] == [W]
    assert active(system) == []


def test_the_alert_about_a_worker_that_the_next_run_does_not_have_is_over() -> None:
    system = given_up()
    system.specs = (worker("other"),)
    system.restart_application()
    system.start().run(1)
    assert active(system) == []


def test_the_alert_about_a_worker_that_is_failed_still_outlasts_a_restart() -> None:
    system = given_up()
    system.restart_application()
    system.start().run(100)
    assert [alert.component_id for alert in active(system)] == [W]


def test_what_was_wrong_with_a_former_run_itself_is_over_with_it() -> None:
    system = SimulatedSystem(alerts=POLICY).start()
    system.actors.persistence.tell(ActorReplaced("Broker", "ValueError()"))
    system.run(1)
    assert [alert.kind for alert in active(system)] == [AlertKind.INTERNAL]
    system.restart_application()
    system.start().run(1)
    assert active(system) == []


def test_a_death_counts_though_no_time_is_recent() -> None:
    system = SimulatedSystem(scripts=uptimes(3.0), alerts=AlertPolicy(recent_s=0)).start()
    system.run(3)
    assert [alert.recent_count for alert in active(system)] == [1]
    assert system.events(ActorReplaced) == []


def test_a_violation_that_did_not_last_is_over() -> None:
    usage = Behaviour(usage=lambda age: Usage(memory_mb=1, cpu_percent=60 if age < 12 else 10))
    limits = ResourceLimits(kill_cpu_percent=50, violations=3, interval_s=10)
    system = SimulatedSystem(worker(limits=limits), scripts=lives(usage), alerts=POLICY).start()
    system.run(60)
    assert changes(system) == [(10.0, "opened", 1), (20.0, "resolved", 1)]


def test_an_alert_about_two_resources_is_over_when_both_are_well() -> None:
    def used(age: float) -> Usage:
        return Usage(memory_mb=100 if age < 55 else 1, cpu_percent=60 if age < 35 else 10)

    limits = ResourceLimits(warn_cpu_percent=50, warn_memory_mb=50, interval_s=10)
    system = SimulatedSystem(
        worker(limits=limits), scripts=lives(Behaviour(usage=used)), alerts=POLICY
    ).start()
    system.run(100)
    assert changes(system) == [(10.0, "opened", 1), (10.0, "repeated", 1), (60.0, "resolved", 1)]
