"""Ten workers and a database that is away for ten minutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.virtual.simulated_system import SimulatedSystem, ids, lives, uptimes, workers

from rekindle.actors import (
    BreakerClosed,
    BreakerOpened,
    BreakerPolicy,
    CanaryStarted,
    Status,
    WorkerFailed,
    WorkerStarted,
)
from rekindle.actors.messages import ChangeWorkers, RestartWorker
from rekindle.actors.messages.internal.to_prober import ProbeAnswered
from rekindle.actors.simulation import Behaviour, Scenario, dies_after, reaches, run_virtual, runs
from rekindle.actors.spec.policies.resource_limits import RecyclePolicy
from rekindle.persistence import MemoryStore

AWAY, BACK = 100.0, 700.0
TWO = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=10, hold_s=10)
DB = BreakerPolicy(name="db", deaths=3, window_s=30, canary_delay_s=10, canary_max_delay_s=60, hold_s=10)
TEN = ids(10)


class Outage:
    """What every worker needs is away from 100 s to 700 s; a worker that starts meanwhile dies after 2 s."""

    def __init__(self) -> None:
        self.system: SimulatedSystem | None = None
        self.offset = 0.0

    def life(self, _generation: int) -> Behaviour:
        now = self.offset + (0.0 if self.system is None else self.system.now)
        if AWAY <= now < BACK:
            return dies_after(2.0, exit=1)
        return dies_after(AWAY - now + 0.5) if now < AWAY else runs()


def system_of(breaker: BreakerPolicy | None) -> tuple[SimulatedSystem, Outage]:
    outage = Outage()
    specs = workers(10, breaker=breaker)
    outage.system = system = SimulatedSystem(*specs, scripts=outage.life)
    return system.start(), outage


@pytest.fixture
def guarded() -> Iterator[tuple[SimulatedSystem, Outage]]:
    system, outage = system_of(DB)
    yield system, outage
    system.close()


def test_without_a_breaker_the_outage_fails_all_ten() -> None:
    """What the others prove is worth something only because of this."""
    system, _ = system_of(None)
    system.run_to(900)
    assert {worker.status for worker in system.report().workers} == {Status.FAILED}
    assert len(system.events(WorkerFailed)) == 10
    system.close()


def test_with_a_breaker_all_ten_survive_it_and_come_back_at_once(
    guarded: tuple[SimulatedSystem, Outage],
) -> None:
    system, _ = guarded
    system.run_to(900)
    assert {worker.status for worker in system.report().workers} == {Status.HEALTHY}
    assert system.events(WorkerFailed) == []
    [(opened, _)] = system.events(BreakerOpened)
    [(closed, event)] = system.events(BreakerClosed)
    assert opened == pytest.approx(100.5, abs=0.1)
    # The last canary of the outage dies at most a minute before its end, and the next one holds.
    assert BACK < closed <= BACK + 60 + 2 + 10
    assert len(event.workers) == 9
    back = [at for at, started in system.events(WorkerStarted) if at >= closed]
    assert len(back) == 9
    assert max(back) == pytest.approx(closed, abs=0.5), "no worker sits out a delay"


def test_while_it_is_open_only_the_canary_tries_and_no_budget_is_spent(
    guarded: tuple[SimulatedSystem, Outage],
) -> None:
    system, _ = guarded
    system.run_to(690)
    tries = [at for at, _ in system.events(CanaryStarted)]
    assert [round(later - earlier) for earlier, later in pairwise(tries)][:4] == [22, 42, 62, 62]
    meanwhile = [event for at, event in system.events(WorkerStarted) if AWAY + 1 < at < BACK]
    assert len(meanwhile) == len(tries), "only the canaries"
    # Two deaths came before the breaker could know; all later ones are held.
    assert sum(system.stored(id_).restart_count for id_ in TEN) == 2
    assert {died.action for id_ in TEN for died in system.deaths(id_)} == {"restart", "held"}
    system.run_to(900)
    assert sum(system.stored(id_).restart_count for id_ in TEN) == 2


def test_status_and_explain_say_what_is_going_on(guarded: tuple[SimulatedSystem, Outage]) -> None:
    system, _ = guarded
    system.run_to(105)
    worker = system.status(TEN[9])
    assert worker.shown == "crashed"
    assert worker.why == (
        "held back: breaker db is open: 3 workers died within 30 s; open for 4 s, canary in 6 s"
    )
    system.run_to(111.5)
    assert system.status(TEN[9]).why.endswith("is being tried")


def test_a_supervisor_that_restarts_during_the_outage_begins_with_a_canary(
    guarded: tuple[SimulatedSystem, Outage],
) -> None:
    system, outage = guarded
    system.run_to(300)
    outage.offset = 300
    outage.system = None
    system.restart_application()
    outage.system = system
    system.run(1)  # as after `System.open`: subscribers come first, then the start
    system.start()
    system.run(1)
    assert len(system.events(WorkerStarted)) == 1, "one, not ten"
    system.run_to(600)
    assert {worker.status for worker in system.report().workers} == {Status.HEALTHY}
    assert system.events(WorkerFailed) == []


def test_a_delay_of_a_former_run_does_not_outlast_the_breaker() -> None:
    """The first one waited for the rest of its 60 s when the breaker closed, or when it was the canary."""
    first, second = ids(2)
    delays = {"initial_delay_s": 60.0, "max_delay_s": 60.0}
    scripts = {first: uptimes(10), second: uptimes(11)}
    system = SimulatedSystem(*workers(2, breaker=TWO, restart=delays), scripts=scripts).start()
    system.run(12)
    system.restart_application()
    system.start()
    system.run(11)
    assert sorted((system.starts(first), system.starts(second))) == [[0], [10]]
    system.close()


def test_an_operator_may_try_one_by_hand(guarded: tuple[SimulatedSystem, Outage]) -> None:
    system, _ = guarded
    system.run_to(103)
    before = len(system.starts(TEN[5]))
    system.start(TEN[5])
    assert len(system.starts(TEN[5])) == before + 1
    system.run(5)
    assert system.deaths(TEN[5])[-1].action == "held"


def test_a_worker_that_is_stopped_while_it_is_held_stays_stopped(
    guarded: tuple[SimulatedSystem, Outage],
) -> None:
    system, _ = guarded
    system.run_to(105)
    system.stop(TEN[3])
    system.run_to(900)
    assert system.status(TEN[3]).shown == "stopped"
    assert sum(worker.status is Status.HEALTHY for worker in system.report().workers) == 9


def test_a_probe_that_fails_opens_it_and_holds_the_canary_back_until_it_passes() -> None:
    policy = BreakerPolicy(name="db", deaths=None, probe_tcp="db:5432", probe_interval_s=5, hold_s=10)
    outage = Outage()
    system = SimulatedSystem(*workers(10, breaker=policy), scripts=outage.life)
    outage.system = system
    supervisor = system.actors.supervisor

    def answer() -> None:
        wrong = "connection refused" if AWAY <= system.now < BACK else None
        supervisor.tell(ProbeAnswered("db", wrong))

    system.prober.answer = answer
    system.start()
    system.run_to(900)
    assert {worker.status for worker in system.report().workers} == {Status.HEALTHY}
    [(opened, event)] = system.events(BreakerOpened)
    assert event.reason == "the probe failed: connection refused"
    assert opened == pytest.approx(AWAY, abs=5.1)
    [(tried, _)] = system.events(CanaryStarted)
    assert BACK <= tried <= BACK + 10, "no worker died while the probe failed"
    assert sum(system.stored(id_).restart_count for id_ in TEN) == 0
    system.close()


def test_an_operator_restarts_one_that_runs_in_spite_of_the_breaker() -> None:
    system = SimulatedSystem(*workers(3, breaker=TWO), scripts={id_: uptimes(5) for id_ in TEN[:2]}).start()
    system.run_to(7)
    assert system.report().breakers[0].held == tuple(TEN[:2])
    system.tell(RestartWorker(TEN[2]))
    system.run(1)
    assert (system.status(TEN[2]).status, system.status(TEN[2]).generation) == (Status.HEALTHY, 2)
    system.close()


def test_one_that_is_changed_under_an_open_breaker_is_held_and_shown_so() -> None:
    system = SimulatedSystem(*workers(3, breaker=TWO), scripts={id_: uptimes(5) for id_ in TEN[:2]}).start()
    system.run_to(7)
    system.tell(ChangeWorkers(tuple(workers(3, breaker=TWO, env={"A": "1"}))))
    system.run(1)
    held = system.status(TEN[2])
    assert (held.shown, held.status, held.pid) == ("crashed", None, None)
    assert system.memory.health[TEN[2]].status == "stopped"
    system.close()


def test_no_worker_is_recycled_under_an_open_breaker() -> None:
    """It would be held back, the last one of its group that is well; and a canary would never hold."""
    recycle = RecyclePolicy(after_s=8.0, jitter=0.0)
    members = workers(3, breaker=TWO, group="tag", recycle=recycle)
    system = SimulatedSystem(
        *members, scripts={id_: lives(dies_after(3), then=runs()) for id_ in TEN[:2]}
    ).start()
    system.run_to(12)
    assert system.status(TEN[2]).generation == 1
    system.run_to(24)
    assert system.report().breakers == ()
    assert {worker.status for worker in system.report().workers} == {Status.HEALTHY}
    system.run_to(60)
    assert system.status(TEN[2]).generation > 1
    system.close()


def test_a_removed_probe_reports_nothing_more() -> None:
    """What was under way answered, and was asked again without there being anything to ask."""
    policy = BreakerPolicy(name="db", deaths=3, probe_tcp="db:5432", probe_interval_s=5)
    system = SimulatedSystem(*workers(2, breaker=policy))
    system.prober.answer = lambda: system.actors.supervisor.tell(ProbeAnswered("db", "nothing to ask"))
    system.start()
    system.run_to(1)
    assert len(system.report().breakers) == 1
    system.tell(ChangeWorkers(tuple(workers(2, breaker=replace(policy, probe_tcp=None)))))
    system.run(600)
    assert system.report().breakers == ()
    system.processes.kill(TEN[0])
    system.run(600)
    assert system.status(TEN[0]).status is Status.HEALTHY
    system.close()


@pytest.mark.parametrize(("breaker", "ending"), [(None, "failed"), (DB, "healthy")])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_as_a_chaos_scenario_under_its_rules(
    breaker: BreakerPolicy | None, ending: str, seed: int
) -> None:
    """A breaker breaks no invariant: one process at a time, each death reported once …"""
    scenario = Scenario("a database outage", lasts_s=900)
    for id_ in TEN:
        until_then = Behaviour(dies_after=AWAY + 0.5, until=AWAY)
        meanwhile = Behaviour(dies_after=2, until=BACK)
        scenario = scenario.worker(id_, until_then, meanwhile, breaker=breaker)
        scenario = scenario.expect(reaches(id_, ending, by=890, after=BACK if breaker else AWAY))
    outcome = run_virtual(scenario, seed=seed, store=MemoryStore())
    assert outcome.violations == ()
    assert outcome.unmet == ()


def test_a_breaker_whose_timer_fires_a_fraction_of_a_millisecond_early_still_closes() -> None:
    """Found by a storm of jobs: the times of a breaker are rounded to milliseconds, its timer is not."""
    lasting, at = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=2, hold_s=5), 57.0255
    scenario = Scenario("half a millisecond", lasts_s=120)
    for worker in ("a", "b"):
        scenario = scenario.worker(worker, dies_after(at), runs(), breaker=lasting)
    outcome = run_virtual(scenario.expect(reaches("b", "healthy", by=65.0, after=58.0)), store=MemoryStore())
    assert outcome.passed, (outcome.violations, outcome.unmet)
