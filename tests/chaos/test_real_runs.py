"""How a run on real processes is judged."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from tests.chaos.sample_scenarios import ENDLESS
from tests.processes.waiting import eventually

from rekindle.actors.simulation import Outcome, Scenario, dies_after, draw, lines
from rekindle.actors.simulation.scenarios.history import (
    Decided,
    Ended,
    EventPublished,
    FinalReport,
    Spawned,
    SupervisorStarted,
)
from rekindle.actors.simulation.scenarios.known_state import Facts
from rekindle.actors.simulation.scenarios.moves import DatabaseState
from rekindle.cli.chaos.real.journal import entries_of
from rekindle.cli.chaos.real.real_run import RealRun
from rekindle.cli.chaos.real.scenario_database import ScenarioDatabase


class LookedAtLate(RealRun):
    """A run whose machine is busy just then: the worker dies between the report and its judgement."""

    def _lacks(self, facts: Facts, entry: FinalReport) -> bool:
        lacks = super()._lacks(facts, entry)
        if not lacks:
            assert eventually(lambda: self._deaths() > len(facts.workers[entry.worker].decided))
        return lacks

    def _deaths(self) -> int:
        return sum(isinstance(each, Decided) for each in self._entries())


def test_a_report_is_held_against_what_happened_before_it(tmp_path: Path) -> None:
    scenario = Scenario("dying", 10.0).worker("mayfly", dies_after(3), restart={**ENDLESS, "max_delay_s": 2})
    outcome = LookedAtLate(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    assert len(outcome.history.of(FinalReport)) == 1


BUSY_S = 5.0
"""In seconds of the scenario, ten of which pass in one real second."""

DYING: dict[str, object] = {**ENDLESS, "max_delay_s": 2}


def run_on(database: str, tmp_path: Path) -> Outcome:
    """A worker dies every three seconds, and the database is in this state for half a minute."""
    scenario = Scenario("outage", 60.0).worker("mayfly", dies_after(3), restart=DYING)
    scenario = scenario.at(10).database(database, for_s=30)
    outcome = RealRun(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    return outcome


@pytest.mark.parametrize("database", ["locked", "gone", "full", "slow"])
def test_an_outage_of_the_database_is_real_and_no_death_is_lost(database: str, tmp_path: Path) -> None:
    events = [published.event for published in run_on(database, tmp_path).history.of(EventPublished)]
    assert "record_set_aside" not in events
    if database != "slow":
        assert "store_degraded" in events
        assert "store_recovered" in events


def test_a_database_that_is_gone_is_really_moved_away(tmp_path: Path) -> None:
    database = ScenarioDatabase(tmp_path / "disk" / "database" / "rekindle.db", tmp_path, ())
    assert database.become(DatabaseState.GONE, 0.0) is DatabaseState.BACK
    assert not (tmp_path / "disk" / "database").exists()
    assert database.deaths() == []
    database.become(DatabaseState.BACK, 0.0)
    assert (tmp_path / "disk" / "database" / "rekindle.db").exists()
    database.close()


def test_every_entry_of_a_run_carries_the_time_of_the_scenario(tmp_path: Path) -> None:
    scenario = Scenario("killed", 20.0).worker("steady").at(8).kill_supervisor(back_after_s=1)
    outcome = RealRun(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    times = [entry.at for entry in outcome.history.entries]
    # Two processes write at the same time, so a line may be a little older than the one before it.
    assert all(later > earlier - BUSY_S for earlier, later in pairwise(times)), "\n".join(
        lines(outcome.history)
    )
    assert times[0] == 0.0


class SlowToBegin(RealRun):
    """A run on a busy machine: what was left is committed before the next supervisor may begin."""

    def _count(self) -> None:
        super()._count()
        if self._lives == 2:
            assert eventually(lambda: ("mayfly", 1) in [each[:2] for each in self.database.deaths()])
            eventually(self._is_noted, 0.5)  # it was, before the supervisor counted as started

    def _is_noted(self) -> bool:
        published = (each for each in self._entries() if isinstance(each, EventPublished))
        return [each.event for each in published].count("worker_died") == 2


def test_what_is_left_of_a_former_supervisor_is_judged_alike_on_a_busy_machine(tmp_path: Path) -> None:
    """The event of a death that ended with a supervisor was noted before the next one counted as started.

    It looked like a second death of a process that the former supervisor had decided on.
    """
    scenario = Scenario("uncommitted", 40.0).worker("mayfly", dies_after(6), restart=DYING)
    scenario = scenario.at(4).database("locked", for_s=8).at(9).kill_supervisor(back_after_s=10)
    outcome = SlowToBegin(scenario, draw(scenario, 0), 5.0, tmp_path).run(0)
    decided = [(each.generation, each.cause) for each in outcome.history.of(Decided)]
    assert decided[:2] == [(1, "exited"), (1, "supervisor_lost")]
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))


def test_an_upgraded_supervisor_goes_on_with_its_processes_and_delays(tmp_path: Path) -> None:
    scenario = Scenario("upgraded", 60.0).worker("steady").worker("mayfly", dies_after(3), restart=DYING)
    scenario = scenario.at(5).upgrade_supervisor(times=2).during("backoff", "mayfly").upgrade_supervisor()
    scenario = scenario.at(40).database("locked", for_s=15).at(41).upgrade_supervisor()
    outcome = RealRun(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    assert [each.worker for each in outcome.history.of(Spawned)].count("steady") == 1
    assert len(outcome.history.of(SupervisorStarted)) == 1


def test_a_rollout_starts_a_real_spare_before_it_replaces_the_worker(tmp_path: Path) -> None:
    scenario = Scenario("rolled out", 60.0).worker("web").at(10).roll_out("web")
    outcome = RealRun(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    spawned = {(each.worker, each.generation): each.at for each in outcome.history.of(Spawned)}
    first, spare, second = sorted(spawned.values())
    (end,) = [each.at for each in outcome.history.of(Ended) if (each.worker, each.generation) == ("web", 1)]
    assert spawned["web", 1] == first < spare < end < second == spawned["web", 2]


def started_how(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT payload FROM rekindle_event WHERE type = 'worker_started'")
        return [json.loads(payload)["note"] for (payload,) in rows]


def test_the_workers_of_a_warm_run_are_forks_and_standbys(tmp_path: Path) -> None:
    scenario = Scenario("warm", 60.0).worker("steady").worker("mayfly", dies_after(3), restart=DYING)
    scenario = scenario.at(20).kill_supervisor(back_after_s=1).at(40).kill("steady")
    outcome = RealRun(scenario, draw(scenario, 0), 10.0, tmp_path, warm=True).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    notes = started_how(tmp_path / "disk" / "database" / "rekindle.db")
    assert "was a standby of its warm process" in notes
    assert "forked from its warm process" in notes


def test_an_entry_that_a_kill_cut_off_does_not_hide_the_next_one() -> None:
    """The two were one line, and the run ended with a DecodeError."""
    started, spawned = SupervisorStarted(0.0, 1, 0), Spawned(1.0, "w", 1, 7)
    written = msgspec.json.encode(started)
    cut_off = b"\n" + written[: len(written) // 2]
    journal = b"\n" + written + b"\n" + cut_off + b"\n" + msgspec.json.encode(spawned) + b"\n"
    assert entries_of(journal) == [started, spawned]
    assert entries_of(journal + cut_off) == [started, spawned]
