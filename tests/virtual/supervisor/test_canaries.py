"""However a canary or its breaker ends, no worker is held back without end."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from tests.virtual.simulated_system import SimulatedSystem, ids, lives, uptimes, worker, workers

from rekindle.actors import (
    BreakerClosed,
    BreakerPolicy,
    CanaryStarted,
    Status,
    WorkerDied,
    WorkerSpec,
    WorkerStarted,
)
from rekindle.actors.messages import (
    AddWorker,
    ChangeWorkers,
    PauseWorkers,
    RemoveWorker,
    RestartWorker,
    StartWorkers,
    StopWorkers,
)
from rekindle.actors.messages.internal.to_prober import ProbeAnswered
from rekindle.actors.simulation import Behaviour, Script, dies_after, runs
from rekindle.actors.spec.policies.resource_limits import RecyclePolicy
from rekindle.persistence import MemoryStore

DB = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=10, hold_s=10)
SLOW = lives(dies_after(20), Behaviour(healthy_after=30.0))
"""Dies with all the others at 20 s; the next one takes its time."""


def three() -> tuple[WorkerSpec, ...]:
    return tuple(workers(3, breaker=DB))


def healthy(system: SimulatedSystem) -> list[str]:
    return [each.component_id for each in system.report().workers if each.status is Status.HEALTHY]


def canaries(system: SimulatedSystem) -> list[str]:
    return [event.component_id for _, event in system.events(CanaryStarted)]


def test_a_worker_that_waits_for_a_held_worker_is_not_chosen_as_canary() -> None:
    first, second = worker("a", breaker=DB, after=("b",)), worker("b", breaker=DB)
    system = SimulatedSystem(first, second, scripts=uptimes(20)).start()
    system.run(600)
    assert canaries(system) == ["b"]
    assert healthy(system) == ["a", "b"]


def test_a_canary_that_is_removed_leaves_the_trial_to_the_next() -> None:
    system = SimulatedSystem(*three(), scripts=SLOW).start()
    system.run_to(32)
    system.tell(RemoveWorker(canaries(system)[0]))
    system.run(600)
    assert canaries(system) == list(ids(3)[:2])
    assert healthy(system) == list(ids(3)[1:])


def test_a_canary_that_an_operator_stops_after_its_end_leaves_the_trial_to_the_next() -> None:
    canary = lives(dies_after(20), dies_after(1, exit=0), then=runs())
    scripts = {ids(3)[0]: canary, ids(3)[1]: uptimes(20), ids(3)[2]: uptimes(20)}
    system = SimulatedSystem(*three(), scripts=scripts).start()
    system.run_to(31.5)
    system.tell(StopWorkers(ids(1)))
    system.run(600)
    assert canaries(system) == [ids(3)[0], ids(3)[2]]
    assert healthy(system) == list(ids(3)[1:])


def test_a_canary_that_ends_cleanly_uses_no_restart_and_gives_its_turn_to_the_next() -> None:
    canary = lives(dies_after(20), dies_after(3, exit=0), then=runs())
    specs = workers(3, breaker=DB, restart={"max_in_window": 1})
    system = SimulatedSystem(*specs, scripts={ids(3)[0]: canary, **dict.fromkeys(ids(3)[1:], SLOW)}).start()
    system.run_to(34)
    [first] = [death for _, death in system.events(WorkerDied) if death.death.ended_well]
    assert (first.component_id, first.action) == (ids(3)[0], "held")
    system.run(600)
    assert canaries(system)[:2] == list(ids(3)[:2])
    assert healthy(system) == list(ids(3))


@pytest.mark.parametrize("kind", ["once", "on_failure"])
def test_canaries_that_are_meant_to_end_take_turns_without_a_longer_delay(kind: str) -> None:
    """Each success made the next one wait twice as long: the last of six began after four minutes."""
    changes: dict[str, Any] = {"kind": kind} if kind == "once" else {"restart": {"restart_on": kind}}
    script = lives(dies_after(1), dies_after(1, exit=0), then=runs())
    system = SimulatedSystem(
        *workers(6, breaker=DB, **changes), scripts=dict.fromkeys(ids(6), script)
    ).start()
    system.run(60)
    tried = [at for at, _ in system.events(CanaryStarted)]
    assert [round(later - tried[0]) for later in tried] == [0, 1, 2, 3, 4, 5]
    assert len(system.events(BreakerClosed)) == 1


def test_workers_that_are_held_back_come_back_when_their_breaker_is_taken_away() -> None:
    store = MemoryStore()
    system = SimulatedSystem(*three(), scripts=uptimes(20), store=store).start()
    system.run_to(25)
    assert healthy(system) == []
    system.tell(ChangeWorkers(tuple(workers(3))))
    system.run(5)
    assert healthy(system) == list(ids(3))
    assert [event.workers for _, event in system.events(BreakerClosed)] == [()]
    assert "breaker:db" not in store.load().meta


def test_a_breaker_that_was_taken_away_open_comes_back_closed() -> None:
    system = SimulatedSystem(*three(), scripts=lives(dies_after(20), dies_after(200), then=runs())).start()
    system.run_to(25)
    system.tell(ChangeWorkers(tuple(workers(3))))
    system.run_to(100)
    system.tell(ChangeWorkers(three()))
    system.run_to(600)
    assert healthy(system) == list(ids(3))


def test_a_canary_that_is_paused_leaves_the_trial_to_the_next() -> None:
    system = SimulatedSystem(*three(), scripts=SLOW).start()
    system.run_to(32)
    system.tell(PauseWorkers(ids(1)))
    system.run(600)
    assert healthy(system) == list(ids(3)[1:])


def test_a_canary_that_comes_to_wait_for_one_who_is_held_back_leaves_the_trial_to_that_one() -> None:
    """The one that it waited for was pending when it was chosen, died, and was held: no worker tried."""
    breaker = BreakerPolicy(name="x", deaths=2, window_s=30, canary_delay_s=2, hold_s=3)
    scripts = {
        "db": lives(dies_after(4), Behaviour(healthy_after=10, dies_after=5), then=runs()),
        "app": lives(dies_after(5.5), then=runs()),
    }
    system = SimulatedSystem(
        worker("db", breaker=breaker), worker("app", after=("db",), breaker=breaker), scripts=scripts
    ).start()
    system.run_to(12)
    assert canaries(system) == ["app", "db"]
    assert system.status("app").why.endswith("open for 6 s, canary db is being tried")
    system.run(600)
    [(closed, event)] = system.events(BreakerClosed)
    assert event.workers == ("app",)
    started = [(at, e.component_id) for at, e in system.events(WorkerStarted)]
    assert started[-2:] == [(10.0, "db"), (closed, "app")]
    assert healthy(system) == ["db", "app"]


def test_a_worker_that_waits_indirectly_for_a_held_worker_is_not_chosen_as_canary() -> None:
    chain = (worker("a", breaker=DB, after=("b",)), worker("b", after=("c",)), worker("c", breaker=DB))
    scripts = {
        "a": lives(dies_after(20), then=runs()),
        "c": lives(dies_after(20), then=runs()),
        "b": lives(dies_after(19), then=runs()),
    }
    system = SimulatedSystem(*chain, scripts=scripts).start()
    system.run(600)
    assert canaries(system)[0] == "c"
    assert healthy(system) == ["a", "b", "c"]


def test_a_canary_that_waits_for_one_who_was_given_up_leaves_the_trial_to_one_who_can_start() -> None:
    specs = (
        worker("cache1", restart={"max_in_window": 1}),
        worker("cache2"),
        worker("app1", after=("cache1",), breaker=DB),
        worker("app2", after=("cache2",), breaker=DB),
    )
    scripts = {
        "cache1": lives(dies_after(20), then=Behaviour(healthy_after=None, dies_after=5)),
        "cache2": lives(dies_after(20), then=Behaviour(healthy_after=30)),
        "app1": lives(dies_after(20.5), then=runs()),
        "app2": lives(dies_after(20.6), then=runs()),
    }
    system = SimulatedSystem(*specs, scripts=scripts).start()
    system.run(600)
    assert canaries(system) == ["app1", "app2"]
    assert healthy(system) == ["cache2", "app2"]
    assert system.report().breakers == ()
    assert system.status("app1").why == "waits for cache1"


def test_a_breaker_goes_with_the_last_of_those_whom_it_held() -> None:
    system = SimulatedSystem(*workers(2, breaker=DB), scripts={id_: uptimes(5) for id_ in ids(2)}).start()
    system.run_to(7)
    for id_ in ids(2):
        system.tell(RemoveWorker(id_))
    system.run(1)
    assert system.report().breakers == ()
    assert "breaker:db" not in system.memory.load().meta
    system.tell(AddWorker(worker("new", breaker=DB)))
    system.run(60)
    assert healthy(system) == ["new"]


BROKEN = lives(dies_after(5), then=dies_after(2))
FLAPS = lives(dies_after(5), then=Behaviour(heartbeat=6.0))
ENDS_WELL = lives(dies_after(5), then=dies_after(3, exit=0))
DEAF = lives(Behaviour(heartbeat=inf, ignores_term=True, ignores_kill=True, ignores_request=True))


@pytest.mark.parametrize(
    ("broken", "others_s"),
    [(BROKEN, 5.5), (FLAPS, 5.5), (ENDS_WELL, 5.5), (DEAF, 14)],
    ids=["dies", "flaps", "ends", "deaf"],
)
def test_a_canary_that_is_broken_itself_leaves_the_trial_to_the_next(broken: Script, others_s: float) -> None:
    """It was the first again and again, and the others were held back for as long as it was broken."""
    unlimited = {"max_in_window": None, "max_lifetime": None}
    specs = [worker(id_, breaker=DB, restart=unlimited) for id_ in ("a", "b", "c")]
    scripts = {"a": broken, "b": uptimes(others_s), "c": uptimes(others_s + 0.5)}
    system = SimulatedSystem(*specs, scripts=scripts).start()
    system.run(600)
    assert {"b", "c"} <= set(healthy(system))
    assert system.report().breakers == ()


def test_one_whose_former_process_does_not_end_is_the_last_to_try() -> None:
    scripts = {"a": DEAF, "b": uptimes(14), "c": uptimes(15)}
    system = SimulatedSystem(*(worker(id_, breaker=DB) for id_ in ("a", "b", "c")), scripts=scripts).start()
    system.run(600)
    assert canaries(system) == ["b"]


def test_one_that_was_never_started_keeps_no_breaker_open() -> None:
    policy = BreakerPolicy(name="db", deaths=1, canary_delay_s=10, hold_s=10)
    specs = [worker(id_, breaker=policy) for id_ in ("a", "never", "c")]
    system = SimulatedSystem(*specs, scripts={"a": uptimes(5), "c": uptimes(3000)})
    system.start("a", "c").run(600)
    assert system.report().breakers == ()
    system.run(3000)
    assert healthy(system) == ["a", "c"]


def test_a_probe_that_passes_again_closes_the_breaker_of_one_that_was_never_started() -> None:
    policy = BreakerPolicy(name="db", deaths=3, probe_tcp="db:5432", probe_interval_s=5)
    specs = [worker(id_, breaker=policy) for id_ in ("a", "never")]
    system = SimulatedSystem(*specs, scripts={"a": uptimes(300)})
    answers = iter(("refused", "refused"))
    system.prober.answer = lambda: system.actors.supervisor.tell(ProbeAnswered("db", next(answers, None)))
    system.start("a").run(600)
    assert system.report().breakers == ()
    assert healthy(system) == ["a"]


def test_a_supervisor_that_restarts_begins_with_a_canary_also_where_one_was_given_up() -> None:
    """It closed at once, since not all of them were yet to start, and all were started into the outage."""
    specs = [worker("given-up", restart={"max_in_window": 1}, breaker=DB), *workers(3, breaker=DB)]
    scripts = {"given-up": lives(then=dies_after(1)), **{id_: uptimes(50) for id_ in ids(3)}}
    system = SimulatedSystem(*specs, scripts=scripts).start()
    system.run_to(52)
    assert system.status("given-up").status is Status.FAILED
    assert len(system.report().breakers) == 1
    system.restart_application()
    system.run(1)  # as after `System.open`: subscribers come first, then the start
    system.start()
    system.run(1)
    assert (
        [event.component_id for _, event in system.events(WorkerStarted)] == canaries(system) == [ids(3)[0]]
    )


@pytest.mark.parametrize("order", [RestartWorker("a"), StartWorkers(("a",))], ids=["restart", "start"])
def test_whom_an_operator_wants_comes_back_in_spite_of_the_breaker_once_its_process_has_ended(
    order: RestartWorker | StartWorkers,
) -> None:
    hangs = lives(Behaviour(heartbeat=inf, ignores_term=True, ignores_request=True), then=runs())
    patient = BreakerPolicy(name="db", deaths=2, canary_delay_s=60, hold_s=10)
    specs = [worker(id_, breaker=patient, stop={"term_s": 8.0}) for id_ in ("a", "b", "c")]
    system = SimulatedSystem(*specs, scripts={"a": hangs, "b": uptimes(14), "c": uptimes(14.5)}).start()
    system.run_to(18)
    assert system.status("a").status is not Status.HEALTHY
    system.tell(order)
    system.run_to(40)
    assert healthy(system) == ["a"]
    assert canaries(system) == []


def test_a_recycling_that_was_put_off_by_a_breaker_follows_when_that_closes() -> None:
    policy = BreakerPolicy(name="db", deaths=3, probe_tcp="db:5432", probe_interval_s=5, canary_delay_s=10)
    system = SimulatedSystem(worker("a", breaker=policy, recycle=RecyclePolicy(after_s=102.0, jitter=0.0)))
    system.prober.answer = lambda: system.actors.supervisor.tell(
        ProbeAnswered("db", "refused" if 99 < system.now < 102 else None)
    )
    system.start().run_to(200)
    assert [event.generation for _, event in system.events(WorkerStarted)] == [1, 2]
