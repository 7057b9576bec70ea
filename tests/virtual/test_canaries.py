"""Whatever becomes of a canary, or of its breaker, nobody is held back for ever."""

from __future__ import annotations

import pytest
from tests.virtual.bench import Bench, dies_after, ids, lives, worker, workers

from rekindle.actors import BreakerClosed, BreakerPolicy, CanaryStarted, Status, WorkerSpec, WorkerStarted
from rekindle.actors.deaths.death import Exit
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
from rekindle.actors.simulation import Life, Script
from rekindle.actors.spec.resource_limits import RecyclePolicy
from rekindle.persistence import MemoryStore

DB = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=10, hold_s=10)
SLOW = lives(Life(dies_after_s=20), Life(healthy_after_s=30.0))
"""Dies with all the others at 20 s; the next one takes its time."""


def three() -> tuple[WorkerSpec, ...]:
    return tuple(workers(3, breaker=DB))


def healthy(bench: Bench) -> list[str]:
    return [each.component_id for each in bench.report().workers if each.status is Status.HEALTHY]


def canaries(bench: Bench) -> list[str]:
    return [event.component_id for _, event in bench.events(CanaryStarted)]


def test_a_canary_is_none_that_waits_for_another_who_is_held_back() -> None:
    first, second = worker("a", breaker=DB, after=("b",)), worker("b", breaker=DB)
    bench = Bench(first, second, scripts=dies_after(20)).start()
    bench.run(600)
    assert canaries(bench) == ["b"]
    assert healthy(bench) == ["a", "b"]


def test_a_canary_that_is_removed_leaves_the_trial_to_the_next() -> None:
    bench = Bench(*three(), scripts=SLOW).start()
    bench.run_to(32)
    bench.tell(RemoveWorker(canaries(bench)[0]))
    bench.run(600)
    assert canaries(bench) == list(ids(3)[:2])
    assert healthy(bench) == list(ids(3)[1:])


def test_a_canary_that_an_operator_stops_while_it_backs_off_leaves_the_trial_to_the_next() -> None:
    canary = lives(Life(dies_after_s=20), Life(dies_after_s=1, exit=Exit(code=0)), then=Life())
    scripts = {ids(3)[0]: canary, ids(3)[1]: dies_after(20), ids(3)[2]: dies_after(20)}
    bench = Bench(*three(), scripts=scripts).start()
    bench.run_to(31.5)
    bench.tell(StopWorkers(ids(1)))
    bench.run(600)
    assert canaries(bench) == list(ids(3)[:2])
    assert healthy(bench) == list(ids(3)[1:])


def test_a_canary_that_ends_cleanly_must_hold_anew_after_its_restart() -> None:
    canary = lives(Life(dies_after_s=20), Life(dies_after_s=3, exit=Exit(code=0)), then=Life())
    specs = workers(3, breaker=DB, restart={"initial_delay_s": 60.0})
    bench = Bench(*specs, scripts=canary).start()
    bench.run(600)
    [(closed, _)] = bench.events(BreakerClosed)
    assert closed >= 33 + 60 + DB.hold_s, "it backed off for a minute when its first health would have held"


def test_workers_that_are_held_back_come_back_when_their_breaker_is_taken_away() -> None:
    store = MemoryStore()
    bench = Bench(*three(), scripts=dies_after(20), store=store).start()
    bench.run_to(25)
    assert healthy(bench) == []
    bench.tell(ChangeWorkers(tuple(workers(3))))
    bench.run(5)
    assert healthy(bench) == list(ids(3))
    assert [event.workers for _, event in bench.events(BreakerClosed)] == [()]
    assert "breaker:db" not in store.load().meta


def test_a_breaker_that_was_taken_away_open_comes_back_closed() -> None:
    bench = Bench(*three(), scripts=lives(Life(dies_after_s=20), Life(dies_after_s=200), then=Life())).start()
    bench.run_to(25)
    bench.tell(ChangeWorkers(tuple(workers(3))))
    bench.run_to(100)
    bench.tell(ChangeWorkers(three()))
    bench.run_to(600)
    assert healthy(bench) == list(ids(3))


def test_a_canary_that_is_paused_leaves_the_trial_to_the_next() -> None:
    bench = Bench(*three(), scripts=SLOW).start()
    bench.run_to(32)
    bench.tell(PauseWorkers(ids(1)))
    bench.run(600)
    assert healthy(bench) == list(ids(3)[1:])


def test_a_canary_that_comes_to_wait_for_one_who_is_held_back_leaves_the_trial_to_that_one() -> None:
    """The one that it waited for was pending when it was chosen, died, and was held: nobody tried."""
    breaker = BreakerPolicy(name="x", deaths=2, window_s=30, canary_delay_s=2, hold_s=3)
    scripts = {
        "db": lives(Life(dies_after_s=4), Life(healthy_after_s=10, dies_after_s=5), then=Life()),
        "app": lives(Life(dies_after_s=5.5), then=Life()),
    }
    bench = Bench(
        worker("db", breaker=breaker), worker("app", after=("db",), breaker=breaker), scripts=scripts
    ).start()
    bench.run_to(12)
    assert canaries(bench) == ["app", "db"]
    assert bench.status("app").why.endswith("open for 6 s, db tries for all")
    bench.run(600)
    [(closed, event)] = bench.events(BreakerClosed)
    assert event.workers == ("app",)
    started = [(at, e.component_id) for at, e in bench.events(WorkerStarted)]
    assert started[-2:] == [(10.0, "db"), (closed, "app")]
    assert healthy(bench) == ["db", "app"]


def test_a_canary_is_none_that_waits_for_one_who_waits_for_another_who_is_held_back() -> None:
    chain = (worker("a", breaker=DB, after=("b",)), worker("b", after=("c",)), worker("c", breaker=DB))
    scripts = {
        "a": lives(Life(dies_after_s=20), then=Life()),
        "c": lives(Life(dies_after_s=20), then=Life()),
        "b": lives(Life(dies_after_s=19), then=Life()),
    }
    bench = Bench(*chain, scripts=scripts).start()
    bench.run(600)
    assert canaries(bench)[0] == "c"
    assert healthy(bench) == ["a", "b", "c"]


def test_a_canary_that_waits_for_one_who_was_given_up_leaves_the_trial_to_one_who_can_start() -> None:
    specs = (
        worker("cache1", restart={"max_in_window": 1}),
        worker("cache2"),
        worker("app1", after=("cache1",), breaker=DB),
        worker("app2", after=("cache2",), breaker=DB),
    )
    scripts = {
        "cache1": lives(Life(dies_after_s=20), then=Life(healthy_after_s=None, dies_after_s=5)),
        "cache2": lives(Life(dies_after_s=20), then=Life(healthy_after_s=30)),
        "app1": lives(Life(dies_after_s=20.5), then=Life()),
        "app2": lives(Life(dies_after_s=20.6), then=Life()),
    }
    bench = Bench(*specs, scripts=scripts).start()
    bench.run(600)
    assert canaries(bench) == ["app1", "app2"]
    assert healthy(bench) == ["cache2", "app2"]
    assert bench.report().breakers == ()
    assert bench.status("app1").why == "waits for cache1"


def test_a_breaker_goes_with_the_last_of_those_whom_it_held() -> None:
    bench = Bench(*workers(2, breaker=DB), scripts={id_: dies_after(5) for id_ in ids(2)}).start()
    bench.run_to(7)
    for id_ in ids(2):
        bench.tell(RemoveWorker(id_))
    bench.run(1)
    assert bench.report().breakers == ()
    assert "breaker:db" not in bench.memory.load().meta
    bench.tell(AddWorker(worker("new", breaker=DB)))
    bench.run(60)
    assert healthy(bench) == ["new"]


BROKEN = lives(Life(dies_after_s=5), then=Life(dies_after_s=2))
FLAPS = lives(Life(dies_after_s=5), then=Life(heartbeat_s=6.0))
ENDS_WELL = lives(Life(dies_after_s=5), then=Life(dies_after_s=3, exit=Exit(code=0)))
DEAF = lives(Life(heartbeat_s=None, ignores_term=True, ignores_kill=True, stops_after_s=None))


@pytest.mark.parametrize(
    ("broken", "others_s"),
    [(BROKEN, 5.5), (FLAPS, 5.5), (ENDS_WELL, 5.5), (DEAF, 14)],
    ids=["dies", "flaps", "ends", "deaf"],
)
def test_a_canary_that_is_broken_itself_leaves_the_trial_to_the_next(broken: Script, others_s: float) -> None:
    """It was the first again and again, and the others were held back for as long as it was broken."""
    unlimited = {"max_in_window": None, "max_lifetime": None}
    specs = [worker(id_, breaker=DB, restart=unlimited) for id_ in ("a", "b", "c")]
    scripts = {"a": broken, "b": dies_after(others_s), "c": dies_after(others_s + 0.5)}
    bench = Bench(*specs, scripts=scripts).start()
    bench.run(600)
    assert {"b", "c"} <= set(healthy(bench))
    assert bench.report().breakers == ()


def test_one_whose_former_process_does_not_end_is_the_last_to_try() -> None:
    scripts = {"a": DEAF, "b": dies_after(14), "c": dies_after(15)}
    bench = Bench(*(worker(id_, breaker=DB) for id_ in ("a", "b", "c")), scripts=scripts).start()
    bench.run(600)
    assert canaries(bench) == ["b"]


def test_one_that_was_never_started_keeps_no_breaker_open() -> None:
    policy = BreakerPolicy(name="db", deaths=1, canary_delay_s=10, hold_s=10)
    specs = [worker(id_, breaker=policy) for id_ in ("a", "never", "c")]
    bench = Bench(*specs, scripts={"a": dies_after(5), "c": dies_after(3000)})
    bench.start("a", "c").run(600)
    assert bench.report().breakers == ()
    bench.run(3000)
    assert healthy(bench) == ["a", "c"]


def test_a_probe_that_passes_again_closes_the_breaker_of_one_that_was_never_started() -> None:
    policy = BreakerPolicy(name="db", deaths=3, probe_tcp="db:5432", probe_interval_s=5)
    specs = [worker(id_, breaker=policy) for id_ in ("a", "never")]
    bench = Bench(*specs, scripts={"a": dies_after(300)})
    answers = iter(("refused", "refused"))
    bench.prober.answer = lambda: bench.actors.supervisor.tell(ProbeAnswered("db", next(answers, None)))
    bench.start("a").run(600)
    assert bench.report().breakers == ()
    assert healthy(bench) == ["a"]


def test_a_supervisor_that_restarts_begins_with_a_canary_also_where_one_was_given_up() -> None:
    """It closed at once, since not all of them were yet to start, and all were started into the outage."""
    specs = [worker("given-up", restart={"max_in_window": 1}, breaker=DB), *workers(3, breaker=DB)]
    scripts = {"given-up": lives(then=Life(dies_after_s=1)), **{id_: dies_after(50) for id_ in ids(3)}}
    bench = Bench(*specs, scripts=scripts).start()
    bench.run_to(52)
    assert bench.status("given-up").status is Status.FAILED
    assert len(bench.report().breakers) == 1
    bench.restart_application()
    bench.run(1)  # as after `System.open`: subscribers come first, then the start
    bench.start()
    bench.run(1)
    assert [event.component_id for _, event in bench.events(WorkerStarted)] == canaries(bench) == [ids(3)[0]]


@pytest.mark.parametrize("order", [RestartWorker("a"), StartWorkers(("a",))], ids=["restart", "start"])
def test_whom_an_operator_wants_comes_back_in_spite_of_the_breaker_once_its_process_has_ended(
    order: RestartWorker | StartWorkers,
) -> None:
    hangs = lives(Life(heartbeat_s=None, ignores_term=True, stops_after_s=None), then=Life())
    patient = BreakerPolicy(name="db", deaths=2, canary_delay_s=60, hold_s=10)
    specs = [worker(id_, breaker=patient, stop={"term_s": 8.0}) for id_ in ("a", "b", "c")]
    bench = Bench(*specs, scripts={"a": hangs, "b": dies_after(14), "c": dies_after(14.5)}).start()
    bench.run_to(18)
    assert bench.status("a").status is not Status.HEALTHY
    bench.tell(order)
    bench.run_to(40)
    assert healthy(bench) == ["a"]
    assert canaries(bench) == []


def test_a_recycling_that_was_put_off_by_a_breaker_follows_when_that_closes() -> None:
    policy = BreakerPolicy(name="db", deaths=3, probe_tcp="db:5432", probe_interval_s=5, canary_delay_s=10)
    bench = Bench(worker("a", breaker=policy, recycle=RecyclePolicy(after_s=102.0, jitter=0.0)))
    bench.prober.answer = lambda: bench.actors.supervisor.tell(
        ProbeAnswered("db", "refused" if 99 < bench.now < 102 else None)
    )
    bench.start().run_to(200)
    assert [event.generation for _, event in bench.events(WorkerStarted)] == [1, 2]
