"""Every scenario that comes with Rekindle, in virtual time and on real processes."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.chaos.sample_scenarios import play

from rekindle.actors.simulation import Outcome, Scenario, hangs, lines
from rekindle.actors.simulation.scenarios.history import (
    Decided,
    EventPublished,
    Moved,
    Spawned,
    SupervisorEnded,
)
from rekindle.cli.chaos.library import library
from rekindle.cli.chaos.real.real_run import run_real
from rekindle.cli.chaos.scenario_file import load_scenario
from rekindle.cli.main import main

NAMES = tuple(library())
SEEDS = int(os.environ.get("REKINDLE_CHAOS_SEEDS", "6"))
AT_ONCE = 8

WANTED = {
    "breaker_outlasts_outage",
    "clock_a_year_forward",
    "crash_loop",
    "database_away",
    "dies_while_being_stopped",
    "endless_recovering",
    "exit_codes_and_signals",
    "flapping_heartbeats",
    "groups_at_random",
    "groups_fall_together",
    "mass_crash",
    "pause_refills_no_budget",
    "rollouts_at_random",
    "slow_thrashing",
    "stale_news",
    "supervisor_killed_after_commit",
    "supervisor_killed_before_decide",
    "supervisor_killed_during_backoff",
    "supervisor_killed_during_spawn",
    "supervisor_killed_during_stop",
}


def passed(outcome: Outcome) -> bool:
    """Whether everything held; the whole history is shown if not."""
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    return True


def test_the_library_has_every_scenario_that_it_promises() -> None:
    assert set(NAMES) >= WANTED


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_of_the_library_holds_in_virtual_time_under_every_seed(name: str) -> None:
    scenario = load_scenario(library()[name])
    for seed in range(SEEDS):
        outcome = play(scenario, seed)
        assert passed(outcome)
        made = outcome.history.of(Moved)
        assert scenario.chance or {each.number for each in made} == {step.number for step in outcome.steps}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("supervisor_killed")])
def test_a_scenario_that_kills_the_supervisor_in_a_phase_kills_it_once(name: str) -> None:
    ends = play(load_scenario(library()[name])).history.of(SupervisorEnded)
    assert [end.killed for end in ends] == [True, False]


def outage(*, with_breaker: bool) -> Scenario:
    """Ten workers, and ten minutes without the database that they need."""
    scenario = load_scenario(library()["breaker_outlasts_outage"])
    if with_breaker:
        return scenario
    bare = (replace(role, spec=replace(role.spec, breaker=None)) for role in scenario.roles)
    # On real processes slower: five restarts have to fit into the window on a busy machine too.
    return replace(scenario, name="outage_without_breaker", roles=tuple(bare), expected=(), speed=25)


def verdicts(outcome: Outcome) -> Counter[str]:
    """How often each decision was taken on a death."""
    return Counter(each.action for each in outcome.history.of(Decided))


def failed(outcome: Outcome) -> int:
    """How many workers were given up."""
    return len({each.worker for each in outcome.history.of(Decided) if each.action == "mark_failed"})


def test_ten_workers_outlast_an_outage_behind_a_breaker_and_come_back_at_once() -> None:
    for seed in range(SEEDS):
        outcome = play(outage(with_breaker=True), seed)
        assert passed(outcome)
        assert failed(outcome) == 0
        assert verdicts(outcome)["restart"] < 3  # the workers that died before it opened
        closed = next(
            each.at for each in outcome.history.of(EventPublished) if each.event == "breaker_closed"
        )
        back = [each.at for each in outcome.history.of(Spawned) if abs(each.at - closed) < 0.1]
        assert len(back) == 9  # all but the canary, which is there already


def test_the_same_outage_without_the_breaker_fails_all_ten() -> None:
    outcome = play(outage(with_breaker=False))
    assert (outcome.violations, failed(outcome)) == ((), 10)
    # Long before the outage is over: no worker is left at its end.
    assert max(each.at for each in outcome.history.of(Spawned)) < 120


@pytest.fixture(scope="module")
def real() -> Iterator[dict[str, Future[Outcome]]]:
    """All of them on real processes, several at once: most of their time is waiting."""
    before = set(threading.enumerate())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        loaded = {name: load_scenario(path) for name, path in library().items()}
        # What chance does to real processes depends on the machine: that is for `--real` by hand.
        scenarios = {name: scenario for name, scenario in loaded.items() if not scenario.chance}
        scenarios["outage_without_breaker"] = outage(with_breaker=False)
        yield {
            name: pool.submit(run_real, scenario, speed=scenario.speed)
            for name, scenario in sorted(scenarios.items(), key=lambda each: -each[1].lasts_s / each[1].speed)
        }
    assert set(threading.enumerate()) <= before, "threads were left behind"
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"chaos/real/actor.py" in _read(path)]
    assert left == [], "workers were left behind"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.timeout(300)
def test_the_scenarios_of_the_library_hold_on_real_processes(real: dict[str, Future[Outcome]]) -> None:
    wrong: list[str] = []
    histories: list[str] = []
    for name, running in real.items():
        outcome = running.result(280)
        if not outcome.passed:
            wrong += [f"{name}: {each}" for each in (*outcome.violations, *outcome.unmet)]
            histories += [name, *lines(outcome.history)]
        made = {each.number for each in outcome.history.of(Moved)}
        if made != {step.number for step in outcome.steps}:
            wrong.append(f"{name} made only the moves {made}")
        if not outcome.history.of(Spawned):
            wrong.append(f"{name} started no worker")
    if wrong:  # what is wrong stands last: a long message is read from its end
        pytest.fail("\n".join((*histories, *wrong)), pytrace=False)
    outages = ("breaker_outlasts_outage", "outage_without_breaker")
    assert [failed(real[name].result()) for name in outages] == [0, 10]


def test_an_upgrade_right_after_the_host_slept_forgets_no_forgiveness() -> None:
    """The former program had no time to notice the sleep; the one that follows counted it as silence."""
    scenario = (
        Scenario("upgrade after a sleep", lasts_s=60)
        .worker("hung", hangs(after_s=10))
        .at(14.0)
        .host_sleep(5.4)
        .at(17.0)
        .upgrade_supervisor()
    )
    outcome = play(scenario)
    assert passed(outcome)
    assert len(outcome.history.of(Decided)) >= 1


def test_an_upgrade_at_the_end_of_a_pause_knows_the_starts_that_are_under_way() -> None:
    """The pause ended before the new program knew them, and four workers started where three may."""
    moves = "--only 65,24,54,11,30,21,25 --workers crashes,steady:1,given_up,deaf --lasts 169.237"
    words = f"chaos upgrades_at_random --seed 817044 {moves}".split()
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
