"""Workers that use too much, and workers that are renewed before they do, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker, workers

from rekindle.actors import Cause, RecyclePolicy, ResourceLimits, Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import Record, UsageNoted
from rekindle.actors.facts.usage import Usage
from rekindle.actors.messages import (
    ChangeWorkers,
    Event,
    ResourceEased,
    ResourcesSampled,
    ResourceViolated,
    ResourceWarned,
    StatusChanged,
    WorkerDied,
    WorkerRecycled,
    WorkerStarted,
)
from rekindle.actors.messages.internal.to_supervisor import JobChanged
from rekindle.actors.simulation import Behaviour, dies_after, runs
from rekindle.actors.simulation.scripted.scripted_processes import unreadable_usage
from rekindle.actors.spec.program import command
from rekindle.actors.supervisor.breakers import Breakers
from rekindle.actors.supervisor.upkeep import Upkeep
from rekindle.persistence import MemoryStore

CPU = ResourceLimits(kill_cpu_percent=30, violations=2)


def uses(usage: Callable[[float], Usage]) -> Behaviour:
    return Behaviour(usage=usage)


def percent(value: float) -> Behaviour:
    return uses(lambda _age: Usage(memory_mb=1, cpu_percent=value))


def megabytes(value: float) -> Behaviour:
    return uses(lambda _age: Usage(memory_mb=value))


def kinds(system: SimulatedSystem, *wanted: type[Event]) -> list[type]:
    return [type(event) for event in system.listener.messages if isinstance(event, wanted)]


def test_rl_01_without_limits_usage_is_not_sampled() -> None:
    def asked(_age: float) -> Usage:
        raise AssertionError("the usage was read")

    system = SimulatedSystem(worker(), scripts=lives(uses(asked))).start()
    system.run(3600)
    assert system.events(ResourcesSampled) == []
    assert not [due for due, message in system.runtime.virtual_timers.pending() if "Look" in repr(message)]


def test_rl_02_rl_07_the_kill_is_a_death_by_resource_limit_restarted_and_counted_once() -> None:
    system = SimulatedSystem(worker(limits=CPU), scripts=lives(percent(80), then=percent(1))).start()
    system.run(30)
    (death,) = system.deaths()
    assert (death.death.cause, death.death.exit.signal) == (Cause.RESOURCE_LIMIT, 9)
    assert death.death.detail == "80 % CPU, the limit is 30 % CPU"
    assert [at for at, _ in system.events(WorkerDied)] == [10.0]
    assert system.starts() == [0.0, 11.0]
    assert system.status().restart_count == system.stored().restart_count == 1
    assert kinds(system, ResourceViolated, WorkerDied) == [ResourceViolated, ResourceViolated, WorkerDied]


def test_rl_06_peaks_are_reset_with_each_incarnation() -> None:
    limits = ResourceLimits(kill_memory_mb=1000)
    system = SimulatedSystem(worker(limits=limits), scripts=lives(megabytes(2000), then=megabytes(5))).start()
    system.run(600)
    peaks = [(event.generation, event.peak.memory_mb) for _, event in system.events(ResourcesSampled)]
    assert set(peaks) == {(1, 2000), (2, 5)}


class Counting(MemoryStore):
    """Counts the commits that keep what workers used."""

    commits = 0

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        self.commits += any(isinstance(record, UsageNoted) for record in records)
        return super().commit(records)


def test_usage_is_stored_once_a_minute_and_rarely_in_a_commit_of_its_own() -> None:
    store = Counting()
    limits = ResourceLimits(kill_memory_mb=1000, interval_s=5)
    # Programs that send no heartbeats: a heartbeat is persisted twice a minute.
    specs = [worker(f"worker:tag:{n}", run=command("serve"), limits=limits) for n in range(10)]
    system = SimulatedSystem(*specs, scripts=lives(then=megabytes(5)), store=store).start()
    system.run(3600)
    assert all(55 <= len(store.usages(each.id)) <= 62 for each in specs)
    assert store.commits <= 14


def test_rl_08_a_process_that_ends_before_the_kill_dies_once_of_its_own_cause() -> None:
    limits = ResourceLimits(kill_memory_mb=10, interval_s=5)
    dying = Behaviour(usage=lambda _age: Usage(memory_mb=50), dies_after=5.0)
    for seed in range(20):
        system = SimulatedSystem(
            worker(limits=limits), scripts=lives(dying, then=megabytes(1)), seed=seed
        ).start()
        system.run(4.9)
        system.processes.kill(W, 15)
        system.run(3)
        (death,) = system.deaths()
        assert (death.death.cause, death.death.exit.signal) == (Cause.SIGNALLED, 15)


def test_rl_09_failing_samples_are_reported_once_and_cost_nothing_else(logs: list[str]) -> None:
    unreadable = Behaviour(usage=unreadable_usage)
    system = SimulatedSystem(worker(limits=CPU), scripts=lives(unreadable)).start()
    system.run(300)
    assert sum("cannot be sampled" in line for line in logs) == 1
    assert system.status().status is Status.HEALTHY


def test_rl_10_twenty_restarts_leave_one_watch() -> None:
    system = SimulatedSystem(
        worker(limits=ResourceLimits(kill_memory_mb=10), restart={"max_in_window": None, "max_delay_s": 1}),
        scripts=lives(megabytes(50)),
    ).start()
    system.run(200)
    assert len(system.starts()) == 21  # 20 restarts, the lifetime's limit
    assert not [m for _, m in system.runtime.virtual_timers.pending() if type(m).__name__ == "LookDue"]


def test_rl_11_the_notify_preset_warns_at_5000_mb_and_kills_at_9000() -> None:
    grows = uses(lambda age: Usage(memory_mb=5000 if age < 60 else 9000))
    system = SimulatedSystem(worker(preset="notify"), scripts=lives(grows)).start()
    system.run(59)
    assert kinds(system, ResourceWarned, ResourceViolated, WorkerDied) == [ResourceWarned]
    system.run(10)
    (death,) = system.deaths()
    assert (death.death.cause, death.action) == (Cause.RESOURCE_LIMIT, "notify_only")


def test_rl_12_with_restarts_disabled_it_is_killed_and_stays_down() -> None:
    spec = worker(limits=CPU, restart={"enabled": False})
    system = SimulatedSystem(spec, scripts=lives(percent(80))).start()
    system.run(3600)
    assert len(system.starts()) == 1
    assert not system.processes.alive(W)


def test_nt_11_a_warning_alone_is_not_a_crash_and_is_taken_back() -> None:
    breathes = uses(lambda age: Usage(memory_mb=5000 if age < 20 else 10))
    system = SimulatedSystem(worker(preset="notify"), scripts=lives(breathes)).start()
    system.run(60)
    assert kinds(system, ResourceWarned, ResourceEased) == [ResourceWarned, ResourceEased]
    assert system.deaths() == []


def test_new_limits_hold_for_what_runs_already() -> None:
    system = SimulatedSystem(worker(), scripts=lives(percent(80))).start()
    system.run(60)
    system.tell(ChangeWorkers((worker(limits=CPU),)))
    system.run(10.5)
    assert [death.death.cause for death in system.deaths()] == [Cause.RESOURCE_LIMIT]


# ── Recycling ────────────────────────────────────────────────────────────────────────────


def recycled(system: SimulatedSystem) -> list[tuple[float, str]]:
    return [(at, event.component_id) for at, event in system.events(WorkerRecycled)]


def test_a_worker_is_renewed_at_its_age_and_nothing_is_counted() -> None:
    system = SimulatedSystem(worker(recycle=RecyclePolicy(after_s=100, jitter=0))).start()
    system.run(350)
    assert system.starts() == [0.0, 100.0, 200.0, 300.0]
    assert (system.deaths(), system.status().restart_count, system.stored().restart_count) == ([], 0, 0)


def test_chance_takes_a_share_off_the_age() -> None:
    ages = set()
    for seed in range(10):
        system = SimulatedSystem(worker(recycle=RecyclePolicy(after_s=100, jitter=0.5)), seed=seed).start()
        system.run(101)
        ((at, _),) = recycled(system)[:1]
        ages.add(at)
        assert 50 <= at <= 100
    assert len(ages) == 10


def test_a_worker_is_renewed_after_its_jobs() -> None:
    system = SimulatedSystem(worker(recycle=RecyclePolicy(after_jobs=3, jitter=0))).start()
    for job in (1, 2, 3, None):
        assert recycled(system) == []
        system.tell(JobChanged(W, 1, job))
    system.run(5)
    assert [id_ for _, id_ in recycled(system)] == [W]
    assert system.status().generation == 2


def test_a_worker_that_has_grown_is_renewed() -> None:
    policy = RecyclePolicy(above_memory_mb=100)
    grows = uses(lambda age: Usage(memory_mb=age))
    system = SimulatedSystem(worker(recycle=policy), scripts=lives(grows)).start()
    system.run(250)
    assert system.starts() == [0.0, 105.0, 210.0]
    assert system.deaths() == []


def test_a_group_is_renewed_one_after_the_other() -> None:
    group = workers(3, recycle=RecyclePolicy(after_s=100, jitter=0), group="tag")
    slow = Behaviour(healthy_after=7.0)
    system = SimulatedSystem(*group, scripts=lives(slow)).start()
    system.run(150)
    moments = [at for at, _ in recycled(system)]
    assert moments == [100.0, 107.0, 114.0]
    assert healthy_at_once(system) == 2


def test_the_policy_may_let_more_of_a_group_go_at_once() -> None:
    group = workers(3, recycle=RecyclePolicy(after_s=100, jitter=0, min_healthy=1), group="tag")
    system = SimulatedSystem(*group, scripts=lives(Behaviour(healthy_after=7.0))).start()
    system.run(150)
    assert [at for at, _ in recycled(system)] == [100.0, 100.0, 107.0]


def test_a_single_worker_waits_for_no_other_and_a_failed_one_does_not_count_as_up() -> None:
    policy = RecyclePolicy(after_s=100, jitter=0)
    group = workers(2, recycle=policy, group="tag", restart={"max_lifetime": 1})
    scripts = {group[0].id: lives(runs()), group[1].id: lives(dies_after(1.0))}  # type: ignore[index]
    system = SimulatedSystem(*group, scripts=scripts).start()
    system.run(101)
    assert [id_ for _, id_ in recycled(system)] == [group[0].id]  # type: ignore[index]


def healthy_at_once(system: SimulatedSystem) -> int:
    """The fewest workers that were healthy at any moment after all of them had been."""
    healthy: set[str] = set()
    complete, fewest = False, 99
    for event in system.listener.messages:
        match event:
            case StatusChanged(new=Status.HEALTHY):
                healthy.add(event.component_id)
            case WorkerRecycled() | WorkerStarted():
                healthy.discard(event.component_id)
            case _:
                pass
        complete = complete or len(healthy) == 3
        fewest = min(fewest, len(healthy)) if complete else fewest
    return fewest


def test_a_group_does_not_wait_for_one_that_is_given_up() -> None:
    policy = RecyclePolicy(after_s=100, jitter=0)
    due, other = worker("a", group="g", recycle=policy), worker("b", group="g", restart={"max_lifetime": 1})
    never_well = lives(dies_after(99.5), Behaviour(dies_after=10, healthy_after=None))
    system = SimulatedSystem(due, other, scripts={"b": never_well}).start()
    system.run(105)
    assert recycled(system) == [], "the other one may come back yet"
    system.run(10)
    assert [id_ for _, id_ in recycled(system)] == ["a"]


def test_a_status_report_starts_stops_and_recycles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SimulatedSystem(worker()).start()
    system.run(10)
    acted: list[str] = []
    monkeypatch.setattr(Upkeep, "recycle_due", lambda _self: acted.append("recycled"))
    monkeypatch.setattr(Breakers, "check_canaries", lambda _self: acted.append("tried a canary"))
    assert system.report().workers
    assert acted == []
