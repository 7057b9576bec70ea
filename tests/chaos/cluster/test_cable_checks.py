"""Every check of the attack on machines is silent on a sound run, and finds what is planted."""

from __future__ import annotations

import pytest
from scripts.nemesis.machines.faults import KINDS, drawn
from scripts.nemesis.machines.traces import Life, lives
from scripts.nemesis.machines.truth_checks import (
    CAUSE,
    COUNTERS,
    OVERLAP,
    RECOVERY,
    TOKENS,
    Evidence,
    Fault,
    violations,
)

W = "worker:web:0"


def life(began: float, last: float, token: int, node: str = "k1", *, has_crashed: bool = False) -> Life:
    beats = tuple(began + 0.05 * number for number in range(int((last - began) / 0.05) + 1))
    return Life(began, last, node, token, has_crashed, beats)


def broken(*found: Life, faults: tuple[Fault, ...] = (), counted: int = 0, runs: bool = True) -> list[str]:
    evidence = Evidence({W: list(found)}, faults, {W: counted}, {W: runs})
    return [each.check for each in violations(evidence)]


KILLED = Fault("machine killed", ("k1",), 10.0, 20.0)
PAUSED = Fault("machine paused", ("k1",), 10.0, 20.0)


def test_a_run_with_a_crash_and_a_lost_machine_is_sound() -> None:
    found = (life(1, 5, 1, has_crashed=True), life(5.1, 10, 2), life(14, 30, 1 << 20, "k2"))
    assert broken(*found, faults=(KILLED,), counted=1) == []


def test_two_processes_at_the_same_time_are_found() -> None:
    assert broken(life(1, 14.2, 1), life(14, 30, 2, "k2"), faults=(KILLED,)) == [OVERLAP]


def test_a_machine_that_has_just_gone_on_is_covered_by_the_token_and_only_for_a_moment() -> None:
    paused = Life(1, 20.1, "k1", 1, False, (1.0, 9.9, 20.1))
    assert broken(paused, life(14, 30, 2, "k2"), faults=(PAUSED,)) == []
    longer = Life(1, 22.0, "k1", 1, False, (1.0, 9.9, 20.1, 22.0))
    assert broken(longer, life(14, 30, 2, "k2"), faults=(PAUSED,)) == [OVERLAP]


def test_a_token_that_falls_is_found() -> None:
    assert broken(life(1, 10, 5), life(14, 30, 4, "k2"), faults=(KILLED,)) == [TOKENS]


@pytest.mark.parametrize(
    "faults", [(), (Fault("database killed", (), 8.0, 12.0),), (Fault("database paused", (), 8.0, 9.0),)]
)
def test_a_stop_without_a_cause_is_found(faults: tuple[Fault, ...]) -> None:
    assert broken(life(1, 10, 1), life(11, 30, 2), faults=faults) == [CAUSE]


def test_a_restart_that_no_crash_explains_is_found_and_one_that_is_missing_too() -> None:
    found = (life(1, 10, 1), life(14, 30, 2, "k2"))
    assert broken(*found, faults=(KILLED,), counted=1) == [COUNTERS]
    crashed = (life(1, 5, 1, has_crashed=True), life(5.1, 30, 2))
    assert broken(*crashed, counted=0) == [COUNTERS]


def test_a_crash_that_the_agent_could_not_see_any_more_may_be_missing() -> None:
    found = (life(1, 9.5, 1, has_crashed=True), life(14, 30, 2, "k2"))
    assert broken(*found, faults=(KILLED,), counted=0) == []


def test_a_worker_that_does_not_run_in_the_end_is_found() -> None:
    assert broken(life(1, 10, 1), runs=False) == [RECOVERY]


def test_traces_are_read_by_token_and_a_torn_line_is_left_out() -> None:
    lines = ("1.5 k1 9 7", "1.6 k1 9 7 crash", "2.0 k2 4 8", "2.1 k")
    first, second = lives(lines)
    assert (first.began, first.last, first.node, first.token, first.has_crashed) == (1.5, 1.6, "k1", 7, True)
    assert (second.node, second.has_crashed) == ("k2", False)


def test_a_seed_draws_the_same_faults_and_several_draw_all_kinds() -> None:
    names = ("k1", "k2", "k3")
    assert drawn(1, 600, names) == drawn(1, 600, names)
    assert {fault.kind for seed in range(3) for fault in drawn(seed, 600, names)} == set(KINDS)
