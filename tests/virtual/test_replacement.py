"""Our own actors raise in the middle of things: each is replaced in place, and no worker is affected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from signal import SIGTERM
from typing import Any

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Chosen, Mistake, at
from tests.virtual.simulated_system import SimulatedSystem, W, ids, lives, uptimes, worker, workers

from rekindle.actors.broker import Broker
from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import DeathRecord, HealthMirrored, MirrorWiped, Record
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.messages import (
    ActorReplaced,
    Done,
    PauseWorkers,
    ReportStatus,
    StartWorkers,
    StatusChanged,
    StopResult,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from rekindle.actors.messages.internal.to_broker import Publish, Subscribe
from rekindle.actors.messages.internal.to_monitor import (
    Attend,
    DeadlineReached,
    FrameReceived,
    MarkFailed,
    MirrorDue,
    Register,
    Unregister,
)
from rekindle.actors.messages.internal.to_persistence import (
    Commit,
    CommitBatch,
    Committed,
    Flush,
    Persist,
    RetryCommit,
)
from rekindle.actors.messages.internal.to_proxy import (
    LadderElapsed,
    PauseProcess,
    ProcessExited,
    ProcessFound,
    ProcessStarted,
    StartProcess,
    StopProcess,
)
from rekindle.actors.messages.internal.to_supervisor import (
    BackoffElapsed,
    BatchKept,
    Declare,
    HealthSustained,
    ProcessGone,
    ProcessReported,
)
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.ports import Control
from rekindle.actors.runtime.resilient_actor import ResilientActor
from rekindle.actors.simulation import Behaviour, cannot_be_spawned, crashes_after, dies_after, runs
from rekindle.actors.spec.worker_spec import PauseMode, command
from rekindle.actors.store_writer import StoreWriter
from rekindle.actors.supervision.worker import Announce, CancelTimers, Effect, KeepRecord, Schedule, Worker
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.actors.supervisor.crew import Crew
from rekindle.actors.worker_proxy import WorkerProxy
from rekindle.persistence import MemoryStore

ERRORS = [RuntimeError("a mistake"), SystemExit(1), KeyboardInterrupt()]

healthy = at(StatusChanged, where=lambda message: message.new is Status.HEALTHY)
death = at(StatusChanged, where=lambda message: message.death is not None)
keep_death = at(Persist, where=lambda message: any(isinstance(each, DeathRecord) for each in message.items))
keep_stop = at(Persist, where=lambda message: any(isinstance(each, WorkerStopped) for each in message.items))
keep_wipe = at(Persist, where=lambda message: any(isinstance(each, MirrorWiped) for each in message.items))
keep_mirror = at(
    Persist, where=lambda message: any(isinstance(each, HealthMirrored) for each in message.items)
)

MOMENTS: list[tuple[type[ResilientActor], str, Chosen]] = [
    (Supervisor, "Declare", at(Declare)),
    (Supervisor, "StartWorkers", at(StartWorkers)),
    (Supervisor, "ProcessStarted", at(ProcessStarted)),
    (Supervisor, "healthy", healthy),
    (Supervisor, "death", death),
    (Supervisor, "ProcessGone", at(ProcessGone)),
    (Supervisor, "BatchKept", at(BatchKept)),
    (Supervisor, "BackoffElapsed", at(BackoffElapsed)),
    (Supervisor, "ReportStatus", at(ReportStatus)),
    (Supervisor, "StopWorkers", at(StopWorkers)),
    (HealthMonitor, "Attend", at(Attend)),
    (HealthMonitor, "Register", at(Register)),
    (HealthMonitor, "ProcessStarted", at(ProcessStarted)),
    (HealthMonitor, "FrameReceived", at(FrameReceived)),
    (HealthMonitor, "DeadlineReached", at(DeadlineReached)),
    (HealthMonitor, "MirrorDue", at(MirrorDue)),
    (HealthMonitor, "ProcessExited", at(ProcessExited)),
    (HealthMonitor, "Unregister", at(Unregister)),
    (WorkerProxy, "StartProcess", at(StartProcess)),
    (WorkerProxy, "ProcessStarted", at(ProcessStarted)),
    (WorkerProxy, "ProcessExited", at(ProcessExited)),
    (WorkerProxy, "StopProcess", at(StopProcess)),
    (WorkerProxy, "LadderElapsed", at(LadderElapsed)),
    (PersistenceActor, "Attend", at(Attend)),
    (PersistenceActor, "wipe", keep_wipe),
    (PersistenceActor, "death", keep_death),
    (PersistenceActor, "CommitBatch", at(CommitBatch)),
    (PersistenceActor, "Committed", at(Committed)),
    (PersistenceActor, "mirror", keep_mirror),
    (StoreWriter, "Commit", at(Commit)),
    (Broker, "Subscribe", at(Subscribe)),
    (Broker, "Publish", at(Publish)),
    (PersistenceActor, "healthy", healthy),
    (PersistenceActor, "WorkerStarted", at(WorkerStarted)),
    (PersistenceActor, "WorkerStopping", at(WorkerStopping)),
    (PersistenceActor, "WorkerStopped", keep_stop),
]

moments = pytest.mark.parametrize(
    ("actor", "chosen"),
    [pytest.param(actor, chosen, id=f"{actor.__name__}-{name}") for actor, name, chosen in MOMENTS],
)


def life_of_a_worker(system: SimulatedSystem) -> tuple[StopResult, ...]:
    """Start it, let it die once and come back, stop it, start it again."""
    system.start().run_to(60)
    assert system.starts() == [0, 4]
    assert system.status().status is Status.HEALTHY
    stopped = system.stop(within=40)
    system.start().run(30)
    return stopped


@moments
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_actor_that_raises_once_goes_on_as_if_nothing_had_happened(
    new_system: SystemFactory,
    monkeypatch: pytest.MonkeyPatch,
    actor: type[ResilientActor],
    chosen: Chosen,
    error: BaseException,
    after: bool,
) -> None:
    mistake = Mistake(actor, chosen, error=error, after=after).put_in(monkeypatch)
    deaf = Behaviour(ignores_request=True)
    system = new_system(scripts=lives(dies_after(3), then=deaf), seed=3)
    (stopped,) = life_of_a_worker(system)
    assert mistake.made == 1
    assert (stopped.gone, stopped.killed) == (True, False)
    assert system.status().status is Status.HEALTHY
    assert system.status().restart_count == system.stored().restart_count == 1
    assert [each.exit_code for each in system.memory.deaths(W)] == [1]
    assert [event.actor for _, event in system.events(ActorReplaced)] == [actor.__name__]


LOST_FOR_GOOD = {"Declare", "StartWorkers", "ReportStatus", "StopWorkers", "Attend", "Subscribe", "wipe"}
"""Messages that are not repeated: commands of a host, and what is sent once at the beginning."""


@pytest.mark.parametrize(
    ("actor", "chosen"),
    [
        pytest.param(actor, chosen, id=f"{actor.__name__}-{name}")
        for actor, name, chosen in MOMENTS
        if name not in LOST_FOR_GOOD
    ],
)
def test_a_message_that_always_raises_is_dropped_and_its_content_is_found_out(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, actor: type[ResilientActor], chosen: Chosen
) -> None:
    Mistake(actor, chosen, times=2).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(200)
    assert system.status().status is Status.HEALTHY
    assert system.processes.alive(W)
    assert system.stored().restart_count == system.status().restart_count == system.status().generation - 1
    (stopped,) = system.stop(within=40)
    assert stopped.gone
    assert not system.processes.alive(W)


def test_a_supervisor_that_raises_while_all_are_healthy_leaves_them_alone(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(*workers(5)).start()
    system.run(100)
    assert len(system.report().workers) == 5
    system.run(100)
    assert len(system.processes.starts) == 5
    assert system.deaths() == []


def test_a_supervisor_that_raises_in_the_backoff_keeps_the_moment_of_the_restart(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(worker(restart={"initial_delay_s": 16.0}), scripts=uptimes(3)).start()
    system.run_to(10)
    system.report()
    assert system.restart_timers() == [19]
    system.run(60)
    assert system.starts() == [0, 19]
    assert system.stored().restart_count == 1


def test_a_supervisor_that_raises_at_the_death_of_a_process_that_still_runs_ends_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It forgot the worker once: it was dead for the monitor and alive for the process table.
    Mistake(Supervisor, death, times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert (system.ends(), system.starts()) == ([15], [0, 16])
    assert system.memory.deaths(W)[0].cause is Cause.HEARTBEAT_LOST


def test_a_supervisor_that_raises_keeps_sustained_health_on_its_way(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=uptimes(3)).start()
    system.run_to(40)
    system.report()
    system.run_to(62.9)
    assert system.status().streak_count == 1
    system.run_to(63)
    assert system.status().streak_count == 0


def test_sustained_health_is_noted_although_the_supervisor_raises_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(HealthSustained)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=uptimes(3)).start()
    system.run(100)
    assert system.stored().streak_count == 0


@pytest.mark.parametrize("seed", range(20))
def test_starts_on_their_way_are_not_taken_for_deaths(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    Mistake(Supervisor, at(ProcessStarted)).put_in(monkeypatch)
    system = new_system(*workers(5), seed=seed).start()
    system.run(60)
    assert system.deaths() == []
    assert len(system.processes.starts) == 5


def test_starts_that_wait_for_others_are_not_taken_for_deaths(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ProcessStarted)).put_in(monkeypatch)
    slow = lives(Behaviour(healthy_after=5))
    system = new_system(*workers(3), scripts=slow, max_concurrent_starts=1).start()
    system.run(60)
    assert system.deaths() == []
    assert [system.starts(id_) for id_ in ids(3)] == [[0], [5], [10]]


def test_a_monitor_that_raises_does_not_ask_for_a_second_first_frame(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The plugin preset gives 2 s to the first frame, and asks for no other one.
    Mistake(HealthMonitor, at(MirrorDue)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=lives(Behaviour(heartbeat=inf))).start()
    system.run(60)
    assert system.changes() == [(0, Status.HEALTHY)]


def test_a_monitor_that_raises_remembers_who_is_paused(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.processes.freeze(W)
    Mistake(HealthMonitor, at(Unregister)).put_in(monkeypatch)
    system.actors.monitor.tell(Unregister("nobody"))
    system.run(100)
    assert system.deaths() == []


def test_a_monitor_that_raises_still_finds_who_hangs(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(DeadlineReached)).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert system.changes()[:3] == [(0, Status.HEALTHY), (10, Status.UNHEALTHY), (20, Status.DEAD)]
    assert system.starts() == [0, 21]


def test_a_monitor_that_raises_again_and_again_still_finds_who_hangs(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, lively = ids(2)
    of_the_lively = at(FrameReceived, where=lambda message: message.component_id == lively)
    Mistake(HealthMonitor, of_the_lively, times=1000).put_in(monkeypatch)
    script = lives(Behaviour(heartbeat=inf), then=runs())
    system = new_system(*workers(2), scripts={hanging: script}).start()
    system.run(60)
    assert Status.DEAD in [new for _, new in system.changes(hanging)]
    assert len(system.starts(hanging)) == 2


def test_a_monitor_that_raises_at_every_check_does_nothing_else_only_once_a_second(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = Mistake(HealthMonitor, at(DeadlineReached), times=1000).put_in(monkeypatch)
    system = new_system(*workers(2), scripts={ids(2)[0]: lives(Behaviour(heartbeat=inf))}).start()
    system.run(60)
    assert mistake.made <= 2 * 60
    assert system.status(ids(2)[1]).status is Status.HEALTHY


def test_a_monitor_that_raises_keeps_the_failed_failed(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run(20)
    Mistake(HealthMonitor, at(Unregister)).put_in(monkeypatch)
    system.actors.monitor.tell(Unregister("nobody"))
    before = system.changes()
    system.run(60)
    assert system.changes() == before
    assert system.status().shown == "failed"


def test_a_proxy_that_raises_on_the_stop_ladder_starts_the_ladder_again(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(LadderElapsed), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(ignores_request=True, ignores_term=True))).start()
    (stopped,) = system.stop(within=40)
    assert stopped.killed
    assert system.now <= 24


def test_a_proxy_that_raises_tells_an_idle_worker_again(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(PauseProcess), times=2).put_in(monkeypatch)
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.run(10)
    assert set(system.processes.controls) == {(10, W, Control.PAUSE)}


def test_a_supervisor_that_raises_in_the_middle_of_a_stop_does_not_prolong_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(stops_after=30))).start()
    system.tell(StopWorkers())
    system.run(5)
    system.report()
    assert system.stop() == (StopResult(W, Exit(signal=SIGTERM), SIGTERM),)
    assert system.now == 10


def test_the_broker_keeps_its_listeners(new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_healthy = at(
        Publish, where=lambda message: any(healthy(getattr(each, "event", None)) for each in message.items)
    )
    Mistake(Broker, publish_healthy).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert [event.actor for _, event in system.events(ActorReplaced)] == ["Broker"]
    assert [new for _, new in system.changes()] == [Status.HEALTHY, Status.DEAD, Status.HEALTHY]


def test_a_broker_that_always_raises_does_not_keep_itself_busy(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = Mistake(Broker, lambda message: True, times=10_000).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert system.starts() == [0, 4]
    assert mistake.made < 100


def test_a_persistence_actor_that_raises_loses_nothing(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(PersistenceActor, at(Persist, CommitBatch, RetryCommit), times=1).put_in(monkeypatch)
    system = new_system(*workers(5), scripts=crashes_after(3)).start()
    system.run(600)
    assert [system.stored(id_).restart_count for id_ in ids(5)] == [5] * 5
    assert [len(system.memory.deaths(id_)) for id_ in ids(5)] == [6] * 5


class Careless(MemoryStore):
    """A store that raises an error of its own now and then, which is not an outage."""

    def __init__(self, *mistakes: int) -> None:
        super().__init__()
        self.mistakes = mistakes
        self.commits = 0

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Keep them, unless this is the turn for a mistake."""
        self.commits += 1
        if self.commits in self.mistakes:
            raise TypeError("a mistake in the store")
        return super().commit(records)


def test_a_mistake_in_the_store_loses_nothing(new_system: SystemFactory) -> None:
    system = new_system(*workers(3), scripts=crashes_after(3), store=Careless(2, 3, 5, 7, 8, 9, 12)).start()
    system.run(600)
    assert [system.stored(id_).restart_count for id_ in ids(3)] == [5] * 3
    assert system.report().unsaved == 0


def test_a_mistake_in_the_store_is_shown_as_unsaved(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3), store=Careless(*range(3, 100))).start()
    system.run(10)
    assert system.report().unsaved == 1
    assert system.events(StoreDegraded) != []
    assert system.starts() == [0, 5]


def test_a_persistence_actor_that_raises_with_nothing_to_write_writes_what_comes_later(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It took the store for degraded once, found nothing to write, and never wrote again.
    Mistake(PersistenceActor, at(Flush)).put_in(monkeypatch)
    system = new_system(scripts=uptimes(30)).start()
    system.run(10)
    system.actors.persistence.tell(Flush(system.listener))
    system.run(50)
    assert system.stored().restart_count == 1
    assert system.events(StoreRecovered) != []


@pytest.mark.parametrize(
    "kind", [CancelTimers, KeepRecord, Announce, Schedule], ids=lambda kind: kind.__name__
)
def test_an_effect_that_raises_does_not_keep_the_others_from_happening(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, kind: type[Effect]
) -> None:
    perform, armed = Crew._perform, [True]

    def perform_badly(self: Crew, worker: Worker, effect: Effect) -> None:
        if armed and isinstance(effect, kind) and self._runtime.clock.monotonic() > 0:
            armed.clear()
            raise RuntimeError("a mistake")
        perform(self, worker, effect)

    monkeypatch.setattr(Crew, "_perform", perform_badly)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert system.starts() == [0, 4]
    assert system.stored().restart_count == system.status().restart_count == 1


def test_a_process_table_that_cannot_even_be_asked_to_spawn_is_a_death(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system()
    spawn: Callable[[Any], None] = system.processes.spawn
    refusals = [OSError("out of everything")]

    def spawn_badly(request: Any) -> None:
        if refusals:
            raise refusals.pop()
        spawn(request)

    monkeypatch.setattr(system.processes, "spawn", spawn_badly)
    system.start().run(60)
    assert system.status().status is Status.HEALTHY
    assert system.status().restart_count == system.stored().restart_count == 1


def test_a_command_is_answered_although_the_supervisor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(StartWorkers)).put_in(monkeypatch)
    system = new_system()
    assert system.ask(lambda reply: StartWorkers(None, reply)) == Done()
    assert system.starts() == [0]


def test_the_exit_of_a_worker_is_known_although_the_monitor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(ProcessExited)).put_in(monkeypatch)
    script = lives(dies_after(3, exit=0), then=runs())
    system = new_system(worker(restart={"restart_on": "on_failure"}), scripts=script).start()
    system.run(60)
    assert system.starts() == [0]
    assert system.memory.deaths(W)[0].exit_code == 0


def test_a_report_from_before_a_start_says_nothing_about_it(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    system.tell(ProcessReported(W, None, told=1))
    system.run(60)
    assert len(system.deaths()) == 1
    assert system.starts() == [0, 4]


def test_a_failure_is_persisted_although_an_effect_before_it_raised(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform, armed = Crew._perform, [True]

    def perform_badly(self: Crew, worker: Worker, effect: Effect) -> None:
        if armed and isinstance(effect, CancelTimers) and self._runtime.clock.monotonic() > 0:
            armed.clear()
            raise RuntimeError("a mistake")
        perform(self, worker, effect)

    monkeypatch.setattr(Crew, "_perform", perform_badly)
    system = new_system(worker(restart={"give_up_exit_codes": (1,)}), scripts=crashes_after(3)).start()
    system.run(60)
    assert system.status().shown == "failed"
    assert system.stored().failed_at_wall_ms is not None


def test_a_stop_that_waits_for_the_end_of_a_failed_worker_is_answered_although_the_end_was_missed(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(ProcessExited), times=2).put_in(monkeypatch)
    stubborn = Behaviour(heartbeat=inf, ignores_term=True)
    system = new_system(
        worker(restart={"max_lifetime": 1}), scripts=lives(cannot_be_spawned("no"), stubborn)
    ).start()
    system.run_to(16.5)  # given up at 16, killed at 18
    assert system.status().shown == "failed"
    (stopped,) = system.stop()
    assert stopped.gone
    assert system.now == 18


def test_a_stale_process_is_ended_although_the_proxy_missed_the_order(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(StopProcess), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert (system.ends(), system.starts()) == ([15], [0, 16])


def test_a_plain_program_is_healthy_although_the_monitor_missed_its_start(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(ProcessStarted), times=2).put_in(monkeypatch)
    system = new_system(worker(run=command("app"))).start()
    system.run(300)
    assert system.changes() == [(0, Status.HEALTHY)]


def test_a_failure_is_published_although_the_monitor_missed_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(MarkFailed), times=2).put_in(monkeypatch)
    system = new_system(worker(restart={"give_up_exit_codes": (1,)}), scripts=crashes_after(3)).start()
    system.run(60)
    assert system.changes()[-1] == (3, Status.FAILED)


def test_a_stop_is_not_a_death_although_the_monitor_missed_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(Unregister), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.run(1)
    system.stop()
    assert system.changes() == [(0, Status.HEALTHY)]


def test_the_mirror_is_written_although_the_monitor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(MirrorDue), times=2).put_in(monkeypatch)
    system = new_system().start()
    system.run(10)
    assert system.memory.health[W].status == "healthy"


def test_the_place_of_a_stopped_start_is_free_although_the_supervisor_missed_its_end(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ProcessGone), times=2).put_in(monkeypatch)
    slow = lives(Behaviour(healthy_after=30))
    system = new_system(*workers(2), scripts=slow, max_concurrent_starts=1).start()
    system.stop(ids(2)[0])
    system.run(1)
    assert system.starts(ids(2)[1]) == [0]


def test_an_answer_from_before_a_start_is_not_believed_after_a_second_mistake(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by hypothesis: `nothing runs`, asked before the start, outlived it and left an orphan."""
    Mistake(WorkerProxy, at(StartProcess)).put_in(monkeypatch)
    Mistake(WorkerProxy, at(ProcessFound)).put_in(monkeypatch)
    system = new_system(worker(restart={"min_delay_s": 0, "initial_delay_s": 0})).start()
    system.run(5)
    assert system.starts() == [0]
    assert system.deaths() == []
    assert system.status().status is Status.HEALTHY
    system.shut_down()
    assert not system.processes.alive(W)
