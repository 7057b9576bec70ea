"""The telling cases of OTP's supervisor_SUITE about budgets, escalation and significant children."""

from __future__ import annotations

import pytest
from tests.virtual.groups.virtual_groups import crew, group, healthy, member, running, starts, stopped
from tests.virtual.simulated_system import SimulatedSystem, lives, uptimes, worker

from rekindle.actors import (
    EssentialEnded,
    Group,
    GroupEscalated,
    GroupGivenUp,
    GroupRestored,
    Status,
    WorkerFailed,
)
from rekindle.actors.messages import (
    Done,
    PauseWorkers,
    Refused,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    StartWorkers,
)
from rekindle.actors.simulation import Behaviour, Script, dies_after, exits, runs

CRASHES = lives(dies_after(5.0))
TWICE = {"max_in_window": 2, "window_s": 60.0}


def shown(system: SimulatedSystem) -> dict[str, str]:
    return {each.component_id: each.shown for each in system.report().workers}


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
def test_escalation_without_an_enclosing_group_a_spent_budget_stops_all_of_it(strategy: str) -> None:
    """one_for_one_escalation, one_for_all_escalation, rest_for_one_escalation."""
    pair = group("pair", ("a", "b", "c"), strategy=strategy, **TWICE)
    system = crew(pair, scripts={"b": CRASHES}).start()
    system.run(60)
    assert len(system.starts("b")) == 3, "two restarts, and the third death is one too many"
    assert running(system) == set()
    assert shown(system) == {"a": "stopped", "b": "failed", "c": "stopped"}
    [(_, failed)] = system.events(WorkerFailed)
    assert failed.reason.startswith("group pair: 2 restarts in 1 minute; last death: ")
    [(_, given_up)] = system.events(GroupGivenUp)
    assert (given_up.component_id, given_up.group, given_up.workers) == ("b", "pair", ("c", "a"))


def test_count_restarting_children_a_restart_that_is_older_than_the_window_does_not_count() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all", **TWICE)
    system = crew(pair, scripts={"b": lives(dies_after(40.0))}).start()
    system.run(600)
    assert system.events(GroupGivenUp) == []
    assert system.report().groups[0].used in (1, 2)


def test_a_group_without_a_limit_is_never_given_up() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all", max_in_window=None)
    system = crew(pair, scripts={"b": CRASHES}).start()
    system.run(1000)
    assert system.events(GroupGivenUp) == []
    assert len(system.starts("b")) > 100


def nested(outer: str, **settings: object) -> tuple[Group, Group]:
    inner = group("inner", ("b", "c"), strategy="one_for_all", on_exhausted="escalate", **TWICE)
    return group("outer", ("a", "inner"), strategy=outer, **settings), inner


def test_tree_the_death_in_an_inner_group_is_its_own_affair() -> None:
    system = crew(*nested("one_for_all"), scripts={"c": uptimes(5.0)}).start()
    system.run(30)
    assert stopped(system) == ["b"]
    assert len(system.starts("a")) == 1


def test_tree_a_death_in_the_outer_group_takes_the_inner_one_along() -> None:
    system = crew(*nested("one_for_all"), scripts={"a": uptimes(5.0)}).start()
    system.run(30)
    assert stopped(system) == ["c", "b"]
    assert starts(system)[3:] == [(6.0, "a"), (6.0, "b"), (6.0, "c")]


def test_one_for_all_escalation_an_inner_group_that_is_exhausted_is_a_death_in_the_outer_one() -> None:
    system = crew(*nested("one_for_all"), scripts={"c": uptimes(5.0, 5.0, 5.0)}).start()
    system.run(60)
    [(_, escalated)] = system.events(GroupEscalated)
    assert (escalated.group, escalated.to) == ("inner", "outer")
    assert escalated.reason == "group inner: 2 restarts in 1 minute"
    assert stopped(system) == ["b", "b", "b", "a"]
    assert healthy(system) == {"a", "b", "c"}
    used = {group.name: group.used for group in system.report().groups}
    assert used == {"outer": 1, "inner": 0}, "the inner group starts over"


def test_one_for_one_escalation_restarts_the_whole_inner_group_and_nothing_else() -> None:
    system = crew(*nested("one_for_one"), scripts={"c": uptimes(5.0, 5.0, 5.0)}).start()
    system.run(60)
    assert stopped(system) == ["b", "b", "b"]
    assert len(system.starts("a")) == 1


def test_escalation_by_failing_restarts_goes_up_until_the_outermost_group_is_given_up() -> None:
    groups = nested("one_for_all", max_in_window=1, window_s=600.0)
    system = crew(*groups, scripts={"c": CRASHES}).start()
    system.run(300)
    # Two restarts of the inner group, the one of the outer group, two of the inner one again.
    assert len(system.starts("c")) == 6
    assert running(system) == set()
    assert {event.group for _, event in system.events(GroupGivenUp)} == {"inner", "outer"}


def test_a_member_that_its_own_limit_gives_up_ends_its_group() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}), member("c"))
    for strategy in ("one_for_all", "rest_for_one"):
        pair = group("pair", ("a", "b", "c"), strategy=strategy)
        system = crew(pair, specs=specs, scripts={"b": CRASHES}).start()
        system.run(60)
        assert running(system) == set()
        assert shown(system)["b"] == "failed"
        system.close()


def test_a_member_of_a_one_for_one_group_that_its_own_limit_gives_up_leaves_the_others_alone() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}), member("c"))
    system = crew(group("pair", ("a", "b", "c")), specs=specs, scripts={"b": CRASHES}).start()
    system.run(60)
    assert running(system) == {"a", "c"}


def test_a_member_that_its_own_limit_gives_up_begins_anew_if_its_group_escalates() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}))
    inner = group("inner", ("b",), on_exhausted="escalate")
    outer = group("outer", ("a", "inner"), strategy="one_for_all")
    system = crew(outer, inner, specs=specs, scripts={"b": uptimes(5.0, 5.0)}).start()
    system.run(60)
    assert healthy(system) == {"a", "b"}
    assert stopped(system) == ["a"]
    assert (system.status("b").restart_count, system.stored("b").restart_count) == (1, 1)


# ── what a person does ───────────────────────────────────────────────────────────────────


def given_up(script: Script = CRASHES) -> SimulatedSystem:
    """A group whose `b` died too often, 30 s after the start."""
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all", **TWICE)
    system = crew(pair, scripts={"b": script}).start()
    system.run(30)
    assert running(system) == set()
    return system


def test_a_restart_of_the_worker_for_which_a_group_was_given_up_starts_all_of_it_in_order() -> None:
    system = given_up(uptimes(5.0, 5.0, 5.0))
    system.tell(RestartWorker("b"))
    system.run(1)
    assert healthy(system) == {"a", "b", "c"}
    [(_, restored)] = system.events(GroupRestored)
    assert restored.group == "pair"
    assert system.report().groups[0].used == 0


def test_a_question_restores_no_group() -> None:
    """Its culprit is not a worker any more, which only an order may act on."""
    system = given_up()
    system.specs = tuple(spec for spec in system.specs if spec.id != "b")
    system.restart_application()
    system.report()
    system.run(1)
    assert system.events(GroupRestored) == []
    system.start()
    system.run(1)
    assert healthy(system) == {"a", "c"}


def test_a_reset_starts_nothing() -> None:
    system = given_up()
    system.tell(ResetWorker("b"))
    system.run(30)
    assert running(system) == set()
    assert system.status("b").shown == "stopped"


def test_a_stop_of_the_worker_for_which_a_group_was_given_up_does_not_restore_the_group() -> None:
    system = given_up(uptimes(5.0, 5.0, 5.0))
    system.tell(ResetWorker("b"))
    system.stop()
    system.run(1)
    assert system.events(GroupRestored) == []
    assert isinstance(system.ask(lambda inbox: StartWorkers(("a",), inbox)), Refused)
    system.start()
    system.run(1)
    assert healthy(system) == {"a", "b", "c"}
    assert len(system.events(GroupRestored)) == 1


def test_a_group_whose_culprit_was_reset_starts_with_the_next_supervisor() -> None:
    system = given_up(uptimes(5.0, 5.0, 5.0))
    system.tell(ResetWorker("b"))
    system.restart_application()
    assert system.events(GroupRestored) == [], "a shutdown restores nothing"
    system.start()
    system.run(1)
    assert healthy(system) == {"a", "b", "c"}


def test_a_group_whose_culprit_was_reset_starts_when_a_pause_ends() -> None:
    system = given_up(uptimes(5.0, 5.0, 5.0))
    system.tell(PauseWorkers(("b",), for_s=10.0))
    system.tell(ResetWorker("b"))
    system.run(5)
    assert running(system) == set()
    system.run(6)
    assert healthy(system) == {"a", "b", "c"}


def test_a_group_whose_culprit_is_paused_waits_for_it_also_in_the_next_supervisor() -> None:
    system = given_up(uptimes(5.0, 5.0, 5.0))
    system.tell(ResetWorker("b"))
    system.tell(PauseWorkers(("b",)))
    system.restart_application()
    system.start()
    system.run(1)
    assert running(system) == set()
    system.tell(ResumeWorkers(("b",)))
    system.run(1)
    assert healthy(system) == {"a", "b", "c"}


def test_another_member_of_a_group_that_is_given_up_cannot_be_started_alone() -> None:
    system = given_up()
    reply = system.ask(lambda inbox: StartWorkers(("a",), inbox))
    assert isinstance(reply, Refused)
    assert reply.reason.startswith("a waits: group pair is given up because of b: ")
    assert system.status("a").why == (
        "group pair is given up because of b: group pair: 2 restarts in 1 minute"
    )


def test_hanging_restart_loop_queries_and_stops_are_answered_while_a_start_hangs() -> None:
    """A member that never becomes healthy holds up those after it, and nothing else."""
    hangs = lives(runs(), Behaviour(healthy_after=None))
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all")
    system = crew(pair, scripts={"a": hangs, "b": uptimes(5.0)}).start()
    system.run(10)
    assert system.status("c").waits_for == ("a", "b")
    assert isinstance(system.ask(lambda inbox: PauseWorkers(("c",), inbox)), Done)
    system.stop()
    assert running(system) == set()


def test_hanging_restart_loop_rest_for_one_ends_by_the_budget() -> None:
    hangs = lives(runs(), Behaviour(healthy_after=None))
    pair = group("pair", ("a", "b", "c"), strategy="rest_for_one", max_in_window=2, window_s=600.0)
    system = crew(pair, scripts={"b": hangs, "a": uptimes(5.0)}).start()
    system.run(400)
    assert running(system) == set()
    assert shown(system)["b"] == "failed"


def test_a_member_that_an_operator_stopped_stays_stopped_when_its_group_restarts() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all")
    system = crew(pair, scripts={"b": uptimes(20.0)}).start()
    system.run(1)
    system.stop("c")
    system.run(60)
    assert healthy(system) == {"a", "b"}
    assert system.status("c").shown == "stopped"


def test_a_member_that_is_paused_stays_paused_when_its_group_restarts() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all")
    system = crew(pair, scripts={"b": uptimes(20.0)}).start()
    system.run(1)
    system.tell(PauseWorkers(("c",)))
    system.run(60)
    assert healthy(system) == {"a", "b"}
    assert system.status("c").paused


# ── across restarts of the supervisor ────────────────────────────────────────────────────


def test_a_budget_outlives_the_supervisor() -> None:
    pair = group("pair", ("a", "b", "c"), strategy="one_for_all", max_in_window=2, window_s=600.0)
    system = crew(pair, scripts={"b": lives(dies_after(5.0))}).start()
    system.run(8)
    system.restart_application(away_s=10.0)
    assert system.report().groups[0].used == 1
    system.start()
    system.run(20)
    assert len(system.events(GroupGivenUp)) == 1
    assert running(system) == set()


def test_a_group_that_is_given_up_stays_down_after_a_restart_of_the_supervisor() -> None:
    system = given_up()
    system.restart_application()
    system.start()
    system.run(30)
    assert running(system) == set()
    assert shown(system) == {"a": "stopped", "b": "failed", "c": "stopped"}
    assert system.report().groups[0].because == "b"


# ── essential workers and groups: OTP's significant children ─────────────────────────────


def test_significant_an_essential_worker_that_is_given_up_ends_everything_with_its_exit_code() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}, essential=True), member("c", after=("a",)))
    system = crew(specs=specs, scripts={"b": lives(dies_after(5.0, exit=7))}).start()
    system.run(60)
    [(_, ended)] = system.events(EssentialEnded)
    assert (ended.component_id, ended.group, ended.exit_code) == ("b", "", 7)
    assert running(system) == set()
    assert stopped(system) == ["c", "a"]


@pytest.mark.parametrize(
    ("essential", "life", "code"),
    [
        ("on_failure", exits(0, after_s=5.0), None),
        ("on_failure", exits(3, after_s=5.0), 3),
        ("on_end", exits(0, after_s=5.0), 0),
        ("on_end", dies_after(5.0, signal=15), 143),
        (True, dies_after(5.0, signal=9), 137),
        (False, exits(3, after_s=5.0), None),
    ],
)
def test_significant_temporary_ends_everything_as_it_says(
    essential: bool | str, life: Behaviour, code: int | None
) -> None:
    specs = (member("a"), member("b", restart={"restart_on": "never"}, essential=essential))
    system = crew(specs=specs, scripts={"b": lives(life)}).start()
    system.run(60)
    assert [event.exit_code for _, event in system.events(EssentialEnded)] == ([] if code is None else [code])
    assert running(system) == ({"a"} if code is None else set())


def test_significant_an_essential_worker_that_ended_well_and_too_often_does_not_exit_with_0() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}, essential=True))
    system = crew(specs=specs, scripts={"b": lives(exits(0, after_s=5.0))}).start()
    system.run(60)
    [(_, ended)] = system.events(EssentialEnded)
    assert ended.exit_code == 1


def test_all_significant_an_essential_group_ends_everything_when_the_last_member_has_finished() -> None:
    once = {"restart_on": "on_failure"}
    specs = (member("a"), member("b", restart=once), member("c", restart=once))
    pair = group("tasks", ("b", "c"), essential="on_end")
    scripts = {"b": lives(exits(0, after_s=5.0)), "c": lives(exits(0, after_s=9.0))}
    system = crew(pair, specs=specs, scripts=scripts).start()
    system.run(8)
    assert running(system) == {"a", "c"}
    system.run(30)
    [(_, ended)] = system.events(EssentialEnded)
    assert (ended.group, ended.exit_code) == ("tasks", 0)
    assert running(system) == set()


def test_any_significant_an_essential_group_that_is_given_up_ends_everything() -> None:
    pair = group("pair", ("a", "b"), strategy="one_for_all", essential=True, **TWICE)
    system = crew(pair, scripts={"b": CRASHES}).start()
    system.run(60)
    [(_, ended)] = system.events(EssentialEnded)
    assert (ended.component_id, ended.group, ended.exit_code) == ("b", "pair", 1)
    assert running(system) == set()


def test_the_outermost_group_that_escalates_ends_everything() -> None:
    pair = group("pair", ("a", "b"), strategy="one_for_all", on_exhausted="escalate", **TWICE)
    system = crew(pair, scripts={"b": CRASHES}).start()
    system.run(60)
    [(_, ended)] = system.events(EssentialEnded)
    assert ended.group == "pair"
    assert running(system) == set()


def test_an_essential_worker_that_failed_is_tried_again_by_the_next_supervisor() -> None:
    specs = (member("a"), worker("b", restart={"max_lifetime": 1}, essential=True))
    system = crew(specs=specs, scripts={"b": uptimes(5.0, 5.0)}).start()
    system.run(60)
    system.restart_application()
    system.start()
    system.run(10)
    assert healthy(system) == {"a", "b"}
    assert system.status("b").status is Status.HEALTHY
