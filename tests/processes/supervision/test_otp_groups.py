"""The telling cases of OTP's supervisor_SUITE on real processes; each is named after the case there.

tests/virtual/groups has the same and more in virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from tests.processes.supervision.real_groups import Crew, crew_in, group

from rekindle.actors import Essential, GroupEscalated, GroupGivenUp

ABC = ("a", "b", "c")
STARTS = ("start a", "start b", "start c")
TWICE = {"max_in_window": 2, "window_s": 60.0}


@pytest.fixture
def crew(tmp_path: Path, no_traces: None) -> Iterator[Crew]:
    with crew_in(tmp_path) as made:
        yield made


# ── starting and stopping ────────────────────────────────────────────────────────────────


def test_sup_start_normal(crew: Crew) -> None:
    crew.start(group("g", ("c", "a", "b"))).all_up()
    assert crew.notes() == ["start c", "start a", "start b"]


def test_sup_start_fail_ends_those_before_it_before_the_next_try(crew: Crew) -> None:
    crew.start(group("g", ABC, strategy="one_for_all"), b=crew.first_time("exit 1")).all_up()
    assert crew.notes() == ["start a", "start b", "stop a", *STARTS]


def test_sup_stop_infinity_in_reverse_order_each_when_the_one_after_it_has_ended(crew: Crew) -> None:
    slow = f"trap 'sleep 0.2; echo \"stop c\" >> {crew.path}; exit 0' TERM"
    crew.start(group("g", ABC), c=slow).all_up()
    crew.close()
    assert crew.notes() == [*STARTS, "stop c", "stop b", "stop a"]


def test_sup_stop_brutal_kill_a_member_that_ignores_its_stop_is_killed_and_the_group_restarts(
    crew: Crew,
) -> None:
    deaf = crew.member("c", crew.first_time("trap '' TERM"), stop={"ask_s": 0.1})
    crew.start(group("g", ABC, strategy="one_for_all"), c=deaf).all_up()
    crew.kill("b")
    crew.all_up(generation=2)
    assert crew.notes() == [*STARTS, "stop a", *STARTS]


# ── strategies ───────────────────────────────────────────────────────────────────────────


def test_one_for_one(crew: Crew) -> None:
    crew.start(group("g", ABC)).all_up()
    crew.kill("b")
    crew.wait_for_notes(*STARTS, "start b")
    crew.all_up()


@pytest.mark.parametrize("victim", ABC)
def test_one_for_all(crew: Crew, victim: str) -> None:
    crew.start(group("g", ABC, strategy="one_for_all")).all_up()
    crew.kill(victim)
    crew.all_up(generation=2)
    others = [f"stop {name}" for name in reversed(ABC) if name != victim]
    assert crew.notes() == [*STARTS, *others, *STARTS]


@pytest.mark.parametrize(
    ("victim", "then"),
    [("a", ["stop c", "stop b", *STARTS]), ("b", ["stop c", "start b", "start c"]), ("c", ["start c"])],
)
def test_rest_for_one(crew: Crew, victim: str, then: list[str]) -> None:
    crew.start(group("g", ABC, strategy="rest_for_one")).all_up()
    crew.kill(victim)
    crew.wait_for_notes(*STARTS, *then)
    crew.all_up()


def test_one_for_all_other_child_fails_restart(crew: Crew) -> None:
    """The first try ends at b, so a is ended again before the second."""
    crew.start(group("g", ABC, strategy="one_for_all"), b=crew.nth_time(2, "exit 1")).all_up()
    crew.kill("c")
    crew.wait(lambda: crew.generations() == {"a": 3, "b": 3, "c": 2})
    crew.all_up()
    assert crew.notes() == [*STARTS, "stop b", "stop a", "start a", "start b", "stop a", *STARTS]


def test_rest_for_one_other_child_fails_restart(crew: Crew) -> None:
    crew.start(group("g", ABC, strategy="rest_for_one"), c=crew.nth_time(2, "exit 1")).all_up()
    crew.kill("b")
    crew.wait(lambda: crew.generations() == {"a": 1, "b": 2, "c": 3})
    crew.all_up()
    assert crew.notes() == [*STARTS, "stop c", "start b", "start c", "start c"]


# ── permanent, transient, temporary ──────────────────────────────────────────────────────


def test_permanent_normal_an_exit_with_0_restarts_the_group(crew: Crew) -> None:
    crew.start(group("g", ABC, strategy="one_for_all"), c=crew.nth_time(1, "exit 0")).all_up(generation=2)
    assert crew.notes() == [*STARTS, "stop b", "stop a", *STARTS]


def test_transient_normal_leaves_the_others_alone(crew: Crew) -> None:
    done = crew.member("c", "exit 0", restart={"restart_on": "on_failure"})
    crew.start(group("g", ABC, strategy="one_for_all"), c=done)
    crew.wait(lambda: crew.shown() == {"a": "healthy", "b": "healthy", "c": "stopped"})
    assert crew.notes() == [*STARTS]


def test_transient_abnormal_restarts_the_group(crew: Crew) -> None:
    fails = crew.member("c", crew.nth_time(1, "exit 1"), restart={"restart_on": "on_failure"})
    crew.start(group("g", ABC, strategy="one_for_all"), c=fails).all_up(generation=2)


def test_temporary_abnormal_is_not_restarted_and_takes_none_along(crew: Crew) -> None:
    fails = crew.member("b", "exit 1", restart={"restart_on": "never"})
    crew.start(group("g", ABC, strategy="one_for_all"), b=fails)
    crew.wait(lambda: crew.shown() == {"a": "healthy", "b": "crashed", "c": "healthy"})
    assert crew.generations() == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
def test_temporary_bystander(crew: Crew, strategy: str) -> None:
    """It is stopped with its group and stays down."""
    bystander = crew.member("b", restart={"restart_on": "never"})
    crew.start(group("g", ABC, strategy=strategy), b=bystander).all_up()
    crew.kill("a")
    crew.wait(lambda: crew.shown() == {"a": "healthy", "b": "stopped", "c": "healthy"})
    assert crew.generations() == {"a": 2, "b": 1, "c": 2}


# ── escalation ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
def test_escalation_without_an_enclosing_group_stops_all_of_it(crew: Crew, strategy: str) -> None:
    """one_for_one_escalation, one_for_all_escalation, rest_for_one_escalation."""
    crew.start(group("g", ABC, strategy=strategy, **TWICE), b="sleep 0.05; exit 1")
    crew.wait(lambda: crew.shown() == {"a": "stopped", "b": "failed", "c": "stopped"})
    assert crew.notes().count("start b") == 3, "two restarts, and the third death is one too many"


def test_tree_the_escalation_of_an_inner_group_restarts_the_outer_one(crew: Crew) -> None:
    inner = group("inner", ("b", "c"), on_exhausted="escalate", max_in_window=1, window_s=60.0)
    outer = group("outer", ("a", "inner"), strategy="one_for_all")
    crew.start(inner, outer).all_up()
    crew.kill("c")
    crew.wait(lambda: crew.generations() == {"a": 1, "b": 1, "c": 2})
    crew.all_up()
    crew.kill("c")
    crew.wait(lambda: crew.generations() == {"a": 2, "b": 2, "c": 3})
    crew.all_up()
    [escalated] = [event for event in crew.events if isinstance(event, GroupEscalated)]
    assert (escalated.group, escalated.to) == ("inner", "outer")


def test_escalation_by_failing_restarts_goes_up_until_the_outermost_group_is_given_up(crew: Crew) -> None:
    inner = group("inner", ("b", "c"), on_exhausted="escalate", max_in_window=1, window_s=60.0)
    outer = group("outer", ("a", "inner"), strategy="one_for_all", max_in_window=1, window_s=60.0)
    crew.start(inner, outer, c="exit 1")
    crew.wait(lambda: any(isinstance(event, GroupGivenUp) for event in crew.events))
    crew.wait(lambda: crew.shown() == {"a": "stopped", "b": "stopped", "c": "failed"})
    assert crew.notes().count("start c") == 4, "in each of the two tries of the outer group, two"


# ── a start that hangs ───────────────────────────────────────────────────────────────────


def test_hanging_restart_loop_queries_and_stops_are_answered(crew: Crew) -> None:
    hangs = crew.nth_time(2, "while :; do sleep 0.02 & wait $!; done")
    crew.start(group("g", ABC, strategy="one_for_all"), b=hangs).all_up()
    crew.kill("c")
    crew.wait(lambda: crew.notes()[-1] == "start b" and len(crew.notes()) == 7)
    assert crew.shown() == {"a": "healthy", "b": "starting", "c": "starting"}
    began = monotonic()
    crew.system.stop_worker("b")
    crew.close()
    assert monotonic() - began < 5
    assert crew.notes()[-2:] == ["stop b", "stop a"]


# ── significant members ──────────────────────────────────────────────────────────────────


def test_significant_a_worker_that_is_given_up_stops_everything_in_order(crew: Crew) -> None:
    fails = crew.member("d", "exit 7", restart={"max_in_window": 1}, after=("c",), essential=True)
    ended = crew.start(group("g", ABC), d=fails).ended()
    assert (ended.component_id, ended.exit_code) == ("d", 7)
    assert crew.notes()[-3:] == ["stop c", "stop b", "stop a"]


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137)])
def test_significant_temporary_ends_everything_however_it_ends(crew: Crew, script: str, code: int) -> None:
    last = crew.member("c", script, restart={"restart_on": "never"}, essential=Essential.ON_END)
    assert crew.start(group("g", ABC), c=last).ended().exit_code == code


def test_all_significant_a_group_ends_everything_when_its_last_member_has_finished(crew: Crew) -> None:
    done = {"restart_on": "on_failure"}
    first, last = (crew.member(name, "echo up; sleep 0.1; exit 0", restart=done) for name in ("b", "c"))
    pair = group("g", ("b", "c"), essential=Essential.ON_END)
    ended = crew.start(pair, b=first, c=last).ended()
    assert (ended.group, ended.exit_code) == ("g", 0)


def test_any_significant_a_group_that_is_given_up_ends_everything(crew: Crew) -> None:
    pair = group("g", ("a", "b"), strategy="one_for_all", essential=True, **TWICE)
    ended = crew.start(pair, b="exit 9").ended()
    assert (ended.group, ended.exit_code) == ("g", 9)
