"""Periodic jobs, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, worker

from rekindle.actors import Periodic
from rekindle.actors.messages import PeriodicEnqueued, PeriodicMissed, Published
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.messages.internal.to_desks import DeclarePeriodic

TAG: dict[str, Any] = {"jobs": {"queues": ("tag",)}}
HOUR_S = 3600.0


def started(new_system: SystemFactory, *jobs: Periodic) -> Any:
    system: Any = new_system(worker(**TAG)).start()
    system.memory.jobs.wall_ms = system.runtime.clock.wall_ms
    system.actors.periodic.tell(DeclarePeriodic(jobs))
    system.run(1.0)
    return system


def payloads(system: Any) -> list[str]:
    return [job.payload for job in reversed(system.memory.jobs.find(limit=1000))]


def listener(system: Any) -> Listener:
    heard = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(heard, ("event:*",)))
    system.runtime.settle()
    return heard


def test_a_periodic_job_is_enqueued_at_each_due_time(new_system: SystemFactory) -> None:
    system = started(new_system, Periodic("report", queue="tag", payload={"full": True}, every="1h"))
    system.run(10 * HOUR_S)
    assert payloads(system) == ['{"full":true}'] * 10
    dues = {job.created_at_wall_ms // 1000 % 3600 for job in system.memory.jobs.find()}
    assert dues <= {0, 1}


def test_a_cron_line_follows_its_time_zone(new_system: SystemFactory) -> None:
    system = started(
        new_system, Periodic("night", queue="tag", cron="0 3 * * *", timezone="Europe/Berlin", payload=1)
    )
    system.run(3 * 24 * HOUR_S)
    assert payloads(system) == ["1"] * 3


def test_an_event_names_the_job_and_the_queue_is_published(new_system: SystemFactory) -> None:
    system = started(new_system, Periodic("report", queue="tag", every="1h"))
    heard = listener(system)
    system.run(HOUR_S)
    told = [each.event for each in heard.messages if isinstance(each, Published)]
    (event,) = (event for event in told if isinstance(event, PeriodicEnqueued))
    assert (event.name, event.queue, event.job_id, event.missed) == ("report", "tag", 1, 0)


def test_due_times_that_pass_while_no_supervisor_runs_are_made_up_for_by_one(
    new_system: SystemFactory,
) -> None:
    system = started(new_system, Periodic("report", queue="tag", every="1h"))
    system.memory.jobs.wall_ms = lambda: system.runtime.clock.wall_ms() - 5 * 3_600_000
    heard = listener(system)
    declare_five_hours_ago(system)
    job = Periodic("late", queue="tag", every="1h")
    system.actors.periodic.tell(DeclarePeriodic((job,)))
    system.run(1.0)
    told = [each.event for each in heard.messages if isinstance(each, Published)]
    (event,) = (event for event in told if isinstance(event, PeriodicEnqueued))
    assert event.missed == 5
    (view,) = system.memory.jobs.periodic()
    assert view.missed == 5


def test_or_are_only_counted_if_the_policy_says_so(new_system: SystemFactory) -> None:
    system = started(new_system)
    system.memory.jobs.wall_ms = lambda: system.runtime.clock.wall_ms() - 5 * 3_600_000
    heard = listener(system)
    declare_five_hours_ago(system)
    job = Periodic("late", queue="tag", every="1h", missed="skip")  # type: ignore[arg-type]
    system.actors.periodic.tell(DeclarePeriodic((job,)))
    system.run(1.0)
    told = [each.event for each in heard.messages if isinstance(each, Published)]
    (event,) = (event for event in told if isinstance(event, PeriodicMissed))
    assert event.times == 5
    assert payloads(system) == []


def declare_five_hours_ago(system: Any) -> None:
    """Leave what a supervisor that ended five hours ago left behind."""
    from rekindle.actors.facts.queues import PeriodicPlan

    plan = PeriodicPlan(name="late", queue="tag", schedule="every 1h", next_due_wall_ms=0)
    system.memory.jobs.declare_periodic([plan])
    system.memory.jobs.wall_ms = system.runtime.clock.wall_ms


def test_a_store_that_is_away_delays_a_job_and_loses_none(new_system: SystemFactory) -> None:
    system = started(new_system, Periodic("report", queue="tag", every="1h"))
    find = system.memory.jobs.periodic
    from rekindle.actors.errors import StoreUnavailableError

    def away() -> Any:
        raise StoreUnavailableError("database is locked")

    system.memory.jobs.periodic = away
    system.run(HOUR_S)
    assert payloads(system) == []
    system.memory.jobs.periodic = find
    system.run(10.0)
    assert payloads(system) == ["null"]
