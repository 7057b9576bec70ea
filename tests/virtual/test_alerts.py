"""Alerts over the real actors in virtual time: episodes from the first crash to lasting health."""

from __future__ import annotations

from tests.virtual.bench import Bench, Listener, W, dies_after, lives, worker

from rekindle.actors.facts.alert import Alert, Happening, Kind, Severity
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.usage import Usage
from rekindle.actors.messages import (
    AcknowledgeAlert,
    ActorReplaced,
    AlertChanged,
    AlertReport,
    Done,
    Refused,
    RemoveWorker,
    ReportAlerts,
    WorkerRemoved,
)
from rekindle.actors.messages.internal import QueuesTouched
from rekindle.actors.simulation import Life
from rekindle.actors.spec.alert_policy import AlertPolicy
from rekindle.actors.spec.resource_limits import ResourceLimits

POLICY = AlertPolicy()


def changes(bench: Bench) -> list[tuple[float, str, int]]:
    """When what happened to which alert."""
    return [(at, event.happening.value, event.alert.id) for at, event in bench.events(AlertChanged)]


def asked(bench: Bench, message: object) -> object:
    listener = Listener(bench.runtime.clock.monotonic)
    assert bench.actors.alerts is not None
    bench.actors.alerts.tell(message(listener))  # type: ignore[operator]
    bench.runtime.settle()
    return listener.messages[0]


def report(bench: Bench) -> AlertReport:
    answer = asked(bench, ReportAlerts)
    assert isinstance(answer, AlertReport)
    return answer


def test_nt_02_a_crash_loop_is_one_alert_from_its_first_death_until_it_is_given_up() -> None:
    bench = Bench(worker(), scripts=lives(Life(dies_after_s=3.0)), alerts=POLICY).start()
    bench.run(600)
    told = [happening for _, happening, _ in changes(bench)]
    assert told == ["opened", *["repeated"] * 5, "escalated"]
    (alert,) = report(bench).alerts
    assert (alert.occurrences, alert.severity, alert.restart_available) == (6, Severity.CRITICAL, True)
    assert alert.message == "auto-restart disabled: it was given up"


def test_nt_04_only_health_that_lasts_ends_an_episode() -> None:
    bench = Bench(worker(), scripts=dies_after(10.0, 20.0), alerts=POLICY).start()
    bench.run(200)
    # It was well for 20 s between its two deaths: not for long enough.
    assert changes(bench) == [(10.0, "opened", 1), (31.0, "repeated", 1), (63.0, "resolved", 1)]


def test_an_alert_that_nobody_noted_is_escalated_once() -> None:
    spec = worker(restart={"enabled": False})
    bench = Bench(spec, scripts=dies_after(10.0), alerts=AlertPolicy(escalate_after_s=60)).start()
    bench.run(600)
    assert changes(bench) == [(10.0, "opened", 1), (70.0, "escalated", 1)]


def test_nt_05_a_noted_alert_is_not_escalated_and_stays() -> None:
    spec = worker(restart={"enabled": False})
    bench = Bench(spec, scripts=dies_after(10.0), alerts=AlertPolicy(escalate_after_s=60)).start()
    bench.run(20)
    assert asked(bench, lambda reply: AcknowledgeAlert(1, "root", reply)) == Done()
    bench.run(600)
    assert [happening for _, happening, _ in changes(bench)] == ["opened", "acknowledged"]
    (alert,) = report(bench).alerts
    assert (alert.is_active, alert.acknowledged_by) == (True, "root")


def test_an_alert_that_is_not_there_cannot_be_noted() -> None:
    bench = Bench(alerts=POLICY).start()
    answer = asked(bench, lambda reply: AcknowledgeAlert(7, "root", reply))
    assert answer == Refused("there is no alert 7")


def test_alerts_survive_a_restart_of_the_application_and_are_resolved_by_the_next_run() -> None:
    bench = Bench(worker(), scripts=dies_after(10.0), alerts=POLICY).start()
    bench.run(15)
    bench.restart_application()
    bench.start()
    bench.run(60)
    assert [(happening, number) for _, happening, number in changes(bench)] == [("resolved", 1)]
    assert [alert.is_active for alert in bench.memory.alerts()] == [False]


def test_nt_13_without_alerts_nobody_is_told_and_recovery_runs() -> None:
    for policy in (None, AlertPolicy(enabled=False)):
        bench = Bench(worker(), scripts=dies_after(10.0), alerts=policy).start()
        bench.run(60)
        assert changes(bench) == []
        assert len(bench.starts()) == 2


def test_what_was_told_of_an_alert_is_what_was_kept_of_it() -> None:
    bench = Bench(worker(), scripts=dies_after(10.0, 5.0), alerts=POLICY).start()
    for _ in range(100):
        bench.run(1)
        told = {event.alert.id: event.alert for _, event in bench.events(AlertChanged)}
        assert bench.memory.alerts() == tuple(told.values())


def test_an_alert_of_a_store_that_is_away_is_told_from_memory_and_kept_later() -> None:
    from rekindle.actors import StoreUnavailableError

    bench = Bench(worker(), scripts=dies_after(10.0), alerts=POLICY).start()
    bench.run(5)
    bench.memory.fault = StoreUnavailableError("locked")
    bench.run(20)
    assert {event.alert.kind.value for _, event in bench.events(AlertChanged)} == {"crashed", "store"}
    bench.memory.fault = None
    bench.run(120)
    assert [alert.is_active for alert in bench.memory.alerts()] == [False, False]


def test_every_alert_is_opened_before_anything_else_happens_to_it() -> None:
    for seed in range(20):
        bench = Bench(
            *(worker(f"w:{number}") for number in range(5)),
            scripts=lives(Life(dies_after_s=7.0)),
            alerts=POLICY,
            seed=seed,
        ).start()
        bench.run(900)
        seen: dict[int, list[Happening]] = {}
        for _, event in bench.events(AlertChanged):
            seen.setdefault(event.alert.id, []).append(event.happening)
        assert sorted(seen) == [1, 2, 3, 4, 5]
        for told in seen.values():
            assert (told[0], told.count(Happening.OPENED)) == (Happening.OPENED, 1)
            assert told.count(Happening.ESCALATED) == 1
    assert W not in {event.alert.component_id for _, event in bench.events(AlertChanged)}


def test_a_toxic_job_is_an_alert_until_somebody_retries_or_drops_it() -> None:
    spec = worker(jobs={"queues": ("tag",), "crash_retries": 0})
    bench = Bench(spec, scripts=dies_after(10.0), alerts=POLICY)
    (job,) = bench.memory.jobs.add("tag", [NewJob(payload="{}")])
    bench.start()
    assert bench.memory.jobs.claim("tag", W, 1, "") is not None
    bench.run(100)
    (alert,) = (each for each in report(bench).alerts if each.kind is Kind.TOXIC)
    assert (alert.is_active, alert.queue, alert.work_item) == (True, "tag", job)
    bench.memory.jobs.retry([job])
    bench.actors.watch.tell(QueuesTouched((job,)))
    bench.run(2)
    (alert,) = (each for each in report(bench).alerts if each.kind is Kind.TOXIC)
    assert not alert.is_active


def active(bench: Bench) -> list[Alert]:
    return [alert for alert in report(bench).alerts if alert.is_active]


def given_up() -> Bench:
    """Of two workers one was given up, and there is an alert about it."""
    scripts = {W: lives(Life(dies_after_s=3.0))}
    bench = Bench(worker(), worker("other"), scripts=scripts, alerts=POLICY).start()
    bench.run(600)
    assert [alert.component_id for alert in active(bench)] == [W]
    return bench


def test_the_alert_about_a_worker_that_is_removed_is_over() -> None:
    bench = given_up()
    bench.tell(RemoveWorker(W))
    bench.run(1)
    assert [event.component_id for _, event in bench.events(WorkerRemoved)] == [W]
    assert active(bench) == []


def test_the_alert_about_a_worker_that_the_next_run_does_not_have_is_over() -> None:
    bench = given_up()
    bench.specs = (worker("other"),)
    bench.restart_application()
    bench.start().run(1)
    assert active(bench) == []


def test_the_alert_about_a_worker_that_is_failed_still_outlasts_a_restart() -> None:
    bench = given_up()
    bench.restart_application()
    bench.start().run(100)
    assert [alert.component_id for alert in active(bench)] == [W]


def test_what_was_wrong_with_a_former_run_itself_is_over_with_it() -> None:
    bench = Bench(alerts=POLICY).start()
    bench.actors.broker.tell(ActorReplaced("Broker", "ValueError()"))
    bench.run(1)
    assert [alert.kind for alert in active(bench)] == [Kind.INTERNAL]
    bench.restart_application()
    bench.start().run(1)
    assert active(bench) == []


def test_a_death_counts_though_no_time_is_recent() -> None:
    bench = Bench(scripts=dies_after(3.0), alerts=AlertPolicy(recent_s=0)).start()
    bench.run(3)
    assert [alert.recent_count for alert in active(bench)] == [1]
    assert bench.events(ActorReplaced) == []


def test_a_violation_that_did_not_last_is_over() -> None:
    usage = Life(usage=lambda age: Usage(memory_mb=1, cpu_percent=60 if age < 12 else 10))
    limits = ResourceLimits(kill_cpu_percent=50, violations=3, interval_s=10)
    bench = Bench(worker(limits=limits), scripts=lives(usage), alerts=POLICY).start()
    bench.run(60)
    assert changes(bench) == [(10.0, "opened", 1), (20.0, "resolved", 1)]


def test_an_alert_about_two_resources_is_over_when_both_are_well() -> None:
    def used(age: float) -> Usage:
        return Usage(memory_mb=100 if age < 55 else 1, cpu_percent=60 if age < 35 else 10)

    limits = ResourceLimits(warn_cpu_percent=50, warn_memory_mb=50, interval_s=10)
    bench = Bench(worker(limits=limits), scripts=lives(Life(usage=used)), alerts=POLICY).start()
    bench.run(100)
    assert changes(bench) == [(10.0, "opened", 1), (10.0, "repeated", 1), (60.0, "resolved", 1)]
