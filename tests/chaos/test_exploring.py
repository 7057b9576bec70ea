"""Seeds explore orders of delivery and times of faults; nothing ever breaks a rule."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.chaos.sample_scenarios import all_kinds_of_workers, play
from tests.processes.supervisors import IMPORT_PATH

from rekindle.actors.simulation import MOVES, Scenario, dies_after, lines
from rekindle.actors.simulation.scenarios.history import Decided
from rekindle.actors.simulation.scenarios.scenario import NAMED_WORDS

SEEDS = int(os.environ.get("REKINDLE_CHAOS_SEEDS", "60"))
SHARES = 6


@pytest.mark.parametrize("share", range(SHARES))
def test_no_rule_is_broken_by_random_moves_on_workers_of_every_kind(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        outcome = play(all_kinds_of_workers(), seed)
        assert outcome.violations == (), (seed, *lines(outcome.history))


def test_chance_makes_every_move_that_there_is() -> None:
    made = {step.move.__class__ for seed in range(20) for step in play(all_kinds_of_workers(), seed).steps}
    # A thaw follows a freeze by itself, and jobs are for workers with a queue (`jobs_at_random`).
    assert {each for word, each in MOVES.items() if word not in ("thaw", *NAMED_WORDS)} <= made


PRINT_A_HISTORY = """
import sys
from tests.chaos.sample_scenarios import play, all_kinds_of_workers
sys.stdout.buffer.write(play(all_kinds_of_workers(), 7).history.encoded())
"""


def history_of_another_process(hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": IMPORT_PATH}
    command = [sys.executable, "-c", PRINT_A_HISTORY]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


def test_the_same_seed_writes_the_same_history_byte_for_byte_in_every_process() -> None:
    one, other = history_of_another_process("1"), history_of_another_process("4242")
    assert one == other == play(all_kinds_of_workers(), 7).history.encoded()
    assert len(one) > 10_000


def test_another_seed_writes_another_history() -> None:
    assert (
        play(all_kinds_of_workers(), 7).history.digest() != play(all_kinds_of_workers(), 8).history.digest()
    )


def test_what_a_slow_store_still_holds_back_at_the_end_is_waited_for() -> None:
    """Events are published once they are stored: a death in the last moment was taken for a missing event."""
    scenario = Scenario("late", lasts_s=60).worker("tag")
    scenario = scenario.at(50).database("slow", takes_s=5).at(59.5).kill("tag")
    assert play(scenario).violations == ()


def test_a_host_that_sleeps_before_health_is_reported_makes_no_health_shorter() -> None:
    """Health was taken to begin when it was reported: a sleep in between made a lasting one look short."""
    scenario = Scenario("asleep", lasts_s=120).worker("tag", dies_after(1), preset="plugin")
    outcome = play(scenario.at(1.01).host_sleep(70))
    assert any(entry.streak_cleared for entry in outcome.history.of(Decided))
    assert outcome.violations == ()
