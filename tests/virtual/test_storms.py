"""Random storms over five workers: named by their seeds, repeated exactly, and never against the rules."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from math import inf

import pytest
from msgspec.structs import replace
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake
from tests.virtual.simulated_system import SimulatedSystem, ids, worker

from rekindle.actors.broker import Broker
from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.health_status import Status
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.messages import (
    PauseWorkers,
    Refused,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    StartWorkers,
    StopWorkers,
    WorkerDied,
    WorkerStatus,
)
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.runtime.resilient_actor import ResilientActor
from rekindle.actors.simulation import Behaviour, Script, dies_after, runs
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.actors.worker_proxy import WorkerProxy

IDS = ids(5)
STEPS = 60


def mixed_specs() -> tuple[WorkerSpec, ...]:
    """Five workers, one for each way of being supervised."""
    notify = {"enabled": True, "max_in_window": 20}
    return (
        worker(IDS[0]),
        worker(IDS[1], "patient"),
        worker(IDS[2], "notify", restart=notify, pause_mode=PauseMode.STOP),
        worker(IDS[3], "plugin"),
        worker(IDS[4], pause_mode=PauseMode.IDLE, restart={"jitter": 0.5}),
    )


def fate(chance: random.Random) -> Script:
    """Lives as bad as they come."""

    def script(_generation: int) -> Behaviour:
        life = Behaviour(
            dies_after=chance.choice([None, None, 0.0, 1.0, 7.5, 60.0, 301.0]),
            healthy_after=chance.choice([0.0, 0.0, 1.5, None]),
            heartbeat=chance.choice([2.0, 2.0, 2.0, inf]),
            cannot_be_spawned=chance.choice([None] * 9 + ["Permission denied"]),
        )
        stops = chance.choice([runs(), Behaviour(stops_after=3.0), Behaviour(ignores_request=True)])
        return life | stops | Behaviour(ignores_term=chance.random() < 0.2)

    return script


class Storm:
    """Does something to a system, again and again, and looks whether the rules hold."""

    def __init__(self, system: SimulatedSystem, chance: random.Random) -> None:
        self.system = system
        self.chance = chance
        self.decided: Counter[str] = Counter()
        self._heard = 0

    def rage(self, steps: int = STEPS) -> None:
        """Let it happen."""
        for _ in range(steps):
            self.chance.choice(self.doings())()
            self.count_decisions()
            self.let_time_pass(self.chance.choice([0.0, 0.4, 1.0, 5.0, 17.0, 61.0]))

    def calm_down(self) -> None:
        """Give the store back, and the time to catch up."""
        self.system.memory.fault = None
        self.let_time_pass(30.0)

    def doings(self) -> list[Callable[[], object]]:
        """What may happen to a worker, to all of them, or to the store."""
        id_, tell = self.chance.choice(IDS), self.system.tell
        return [
            lambda: self.system.processes.kill(id_),
            lambda: self.system.processes.kill(id_),
            lambda: self.system.processes.freeze(id_),
            lambda: tell(PauseWorkers((id_,))),
            lambda: tell(ResumeWorkers((id_,))),
            lambda: tell(PauseWorkers()),
            lambda: tell(ResumeWorkers()),
            lambda: tell(StopWorkers((id_,))),
            lambda: tell(StartWorkers((id_,))),
            lambda: tell(StartWorkers()),
            lambda: self.forget(id_, RestartWorker(id_)),
            lambda: self.forget(id_, ResetWorker(id_)),
            lambda: setattr(self.system.memory, "fault", StoreUnavailableError("database is locked")),
            lambda: setattr(self.system.memory, "fault", None),
            lambda: self.system.runtime.virtual_clock.set_wall(self.chance.randrange(-10_000, 10_000)),
        ]

    def forget(self, id_: str, command: RestartWorker | ResetWorker) -> None:
        """Have the counters of a worker cleared."""
        self.count_decisions()
        answer = self.system.ask(lambda reply: replace(command, reply_to=reply))
        if not isinstance(answer, Refused):  # a restart is refused while the worker is paused
            self.decided[id_] = 0

    def count_decisions(self) -> None:
        """Take note of the restarts that were decided since."""
        heard = self.system.listener.received
        for _, event in heard[self._heard :]:
            if isinstance(event, WorkerDied):
                self.decided[event.component_id] += event.action == Action.RESTART
        self._heard = len(heard)

    def let_time_pass(self, seconds: float) -> None:
        """Wait without commands; a worker that must stay down stays down."""
        system = self.system
        down = {each.component_id for each in system.report().workers if held(each)}
        started = len(system.processes.starts)
        system.run(seconds)
        self.count_decisions()
        assert down.isdisjoint(id_ for _, id_, _ in system.processes.starts[started:])
        assert all(len(system.restart_timers(id_)) <= 1 for id_ in IDS)
        assert system.processes.overlaps == []


def held(status: WorkerStatus) -> bool:
    """Whether nothing may start this worker but a command."""
    at_rest = status.shown in ("stopped", "failed") or (status.shown == "crashed" and not waits(status))
    return at_rest or (status.paused and status.status in (None, Status.DEAD))


def waits(status: WorkerStatus) -> bool:
    return status.next_attempt_in_s is not None


@pytest.mark.parametrize("decade", range(20))
def test_two_hundred_storms_break_no_rule(new_system: SystemFactory, decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        chance = random.Random(seed)
        system = new_system(
            *mixed_specs(), scripts=fate(chance), seed=seed, max_concurrent_starts=chance.choice([None, 2])
        )
        storm = Storm(system.start(), chance)
        storm.rage()
        storm.calm_down()
        assert_books_are_right(system, storm)
        assert_all_can_be_started_and_stopped(system)


def assert_books_are_right(system: SimulatedSystem, storm: Storm) -> None:
    """Store, memory and events agree on every death and every restart."""
    told = Counter((death.component_id, death.death.generation) for _, death in system.events(WorkerDied))
    kept = [(death.component_id, death.generation) for death in system.memory.deaths(limit=10_000)]
    assert set(told.values()) <= {1}
    assert sorted(kept) == sorted(told)
    for status in system.report().workers:
        id_ = status.component_id
        assert system.stored(id_).restart_count == status.restart_count == storm.decided[id_]
        assert (system.stored(id_).failed_at_wall_ms is not None) == (status.shown == "failed")


def history(new_system: SystemFactory, seed: int) -> list[str]:
    """Everything that a storm led to, as text."""
    chance = random.Random(seed)
    system = new_system(*mixed_specs(), scripts=fate(chance), seed=seed).start()
    Storm(system, chance).rage(30)
    told = [repr(each) for each in system.listener.received]
    done = [
        repr(each) for each in (*system.processes.starts, *system.processes.ends, *system.processes.signals)
    ]
    return told + done + [repr(system.memory.load()), repr(system.memory.health)]


@pytest.mark.parametrize("seed", range(10))
def test_the_same_seed_gives_the_same_history(new_system: SystemFactory, seed: int) -> None:
    assert history(new_system, seed) == history(new_system, seed)


def test_another_seed_gives_another_history(new_system: SystemFactory) -> None:
    assert history(new_system, 1) != history(new_system, 2)


def test_another_seed_gives_another_order_of_the_same_events(new_system: SystemFactory) -> None:
    def run(seed: int) -> list[str]:
        system = new_system(*(worker(id_) for id_ in IDS), scripts=lambda _: dies_after(3.0), seed=seed)
        system.start().run(600)
        return [repr(each) for each in system.listener.messages]

    first, *others = (run(seed) for seed in range(5))
    assert any(first != other for other in others)
    # The numbers of processes are given out in the order of their starts.
    deaths = [
        sorted(re.sub(r"pid=\d+", "", each) for each in events if each.startswith("WorkerDied"))
        for events in others
    ]
    assert deaths[1:] == deaths[:-1]


@pytest.mark.parametrize("seed", range(30))
def test_restarts_of_the_application_in_the_middle_of_a_storm_lose_nothing(
    new_system: SystemFactory, seed: int
) -> None:
    chance = random.Random(seed)
    system = new_system(*mixed_specs(), scripts=fate(chance), seed=seed).start()
    for _ in range(4):
        storm = Storm(system, chance)
        storm.rage(15)
        storm.calm_down()
        before = [(each.restart_count, each.failure_reason) for each in system.report().workers]
        deaths = set(system.memory.deaths(limit=10_000))
        system.restart_application(away_s=chance.choice([0.0, 5.0, 4000.0]))
        assert [(each.restart_count, each.failure_reason) for each in system.report().workers] == before
        since = set(system.memory.deaths(limit=10_000)) - deaths
        assert {death.cause for death in since} <= {Cause.SUPERVISOR_LOST}
        system.start()


ACTORS: tuple[type[ResilientActor], ...] = (Supervisor, HealthMonitor, WorkerProxy, PersistenceActor, Broker)


@pytest.mark.parametrize("seed", range(40))
def test_storms_in_which_the_actors_raise_at_random_break_no_rule(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, slips = random.Random(seed), random.Random(seed)
    mistakes = [careless(actor, slips).put_in(monkeypatch) for actor in ACTORS]
    system = new_system(
        *mixed_specs(), scripts=fate(chance), seed=seed, max_concurrent_starts=chance.choice([None, 2])
    )
    storm = Storm(system.start(), chance)
    storm.rage(30)
    assert any(mistake.made for mistake in mistakes)
    for mistake in mistakes:
        mistake.left = 0
    storm.calm_down()
    for status in system.report().workers:
        assert system.stored(status.component_id).restart_count == status.restart_count
    assert_all_can_be_started_and_stopped(system)


def careless(actor: type[ResilientActor], slips: random.Random) -> Mistake:
    """An actor that raises now and then, before or after the deed."""
    error = slips.choice([RuntimeError("a mistake"), SystemExit(), KeyboardInterrupt()])
    return Mistake(actor, slip(slips, set()), error=error, times=1_000_000, after=slips.random() < 0.5)


def assert_all_can_be_started_and_stopped(system: SimulatedSystem) -> None:
    """Nothing that happened before keeps the workers from running, or from ending."""
    system.processes.scripts.clear()
    for command in (ResumeWorkers(), ResumeWorkers(IDS), *(RestartWorker(id_) for id_ in IDS)):
        system.tell(command)
    system.run(30)
    assert all(status.status is Status.HEALTHY for status in system.report().workers)
    assert all(result.gone for result in system.shut_down(within=60))
    assert not any(system.processes.alive(id_) for id_ in IDS)


def slip(slips: random.Random, seen: set[int]) -> Callable[[object], bool]:
    """Now and then, at one message in fifty, and never at the same one again."""

    def chosen(message: object) -> bool:
        if id(message) in seen:
            seen.discard(id(message))
            return False
        if slips.random() < 0.02:
            seen.add(id(message))
            return True
        return False

    return chosen
