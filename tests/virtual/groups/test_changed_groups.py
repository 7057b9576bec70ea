"""Groups that change while their workers run, as at a reload of the file."""

from __future__ import annotations

from tests.virtual.groups.virtual_groups import crew, group, healthy, member, running, starts, stopped
from tests.virtual.simulated_system import SimulatedSystem, lives

from rekindle.actors import Group, GroupGivenUp, GroupRestored, WorkerSpec
from rekindle.actors.messages import ChangeWorkers
from rekindle.actors.simulation import dies_after, runs
from rekindle.actors.spec.group_order import arranged, joined

MEMBERS = ("a", "b", "c")
CRASHES = lives(dies_after(5.0))
ONCE = {"max_in_window": 1, "window_s": 600.0}


def change(
    system: SimulatedSystem, *groups: Group, specs: tuple[WorkerSpec, ...] | None = None
) -> tuple[str, ...]:
    """Declare other groups; the workers that get a new process."""
    specs = specs or tuple(member(id_) for id_ in MEMBERS)
    wanted = arranged(specs, groups) if groups else specs
    changes = system.ask(lambda listener: ChangeWorkers(wanted, listener)).changes
    return (*changes.restarted, *changes.added, *changes.removed)


def test_a_new_group_restarts_nothing_and_rules_the_next_death() -> None:
    system = crew(scripts={"b": lives(dies_after(20.0), then=runs())}).start()
    system.run(5)
    assert change(system, group("all", MEMBERS, strategy="one_for_all")) == ()
    system.run(30)
    assert stopped(system) == ["c", "a"]
    assert [id_ for _, id_ in starts(system)] == ["a", "b", "c", "a", "b", "c"]


def test_another_strategy_rules_the_next_death() -> None:
    system = crew(
        group("all", MEMBERS, strategy="one_for_all"), scripts={"b": lives(dies_after(20.0), then=runs())}
    )
    system.start().run(5)
    assert change(system, group("all", MEMBERS, strategy="rest_for_one")) == ()
    system.run(30)
    assert stopped(system) == ["c"]


def test_without_its_group_a_worker_dies_alone() -> None:
    system = crew(
        group("all", MEMBERS, strategy="one_for_all"), scripts={"b": lives(dies_after(20.0), then=runs())}
    )
    system.start().run(5)
    assert change(system) == ()
    system.run(30)
    assert stopped(system) == []
    assert healthy(system) == {"a", "b", "c"}


def test_a_removed_group_that_was_given_up_lets_its_members_start_again() -> None:
    system = crew(group("all", MEMBERS, strategy="one_for_all", **ONCE), scripts={"b": CRASHES}).start()
    system.run(60)
    assert (len(system.events(GroupGivenUp)), running(system)) == (1, set())
    change(system)
    system.run(5)
    assert [event.group for _, event in system.events(GroupRestored)] == ["all"]
    assert healthy(system) == {"a", "c"}, "b itself was given up and stays down"


def test_a_group_that_was_given_up_starts_again_when_the_culprit_is_removed() -> None:
    system = crew(group("all", MEMBERS, strategy="one_for_all", **ONCE), scripts={"b": CRASHES}).start()
    system.run(60)
    left = tuple(member(id_) for id_ in ("a", "c"))
    change(system, group("all", ("a", "c"), strategy="one_for_all", **ONCE), specs=left)
    system.run(5)
    assert healthy(system) == {"a", "c"}


def test_a_member_that_was_removed_may_be_added_again_while_another_is_missing() -> None:
    specs = arranged([member(id_) for id_ in MEMBERS], [group("all", MEMBERS)])
    again = joined(member("b"), [spec for spec in specs if spec.id == "c"])
    assert [(place.group.name, place.position) for place in again.membership] == [("all", 1)]


def test_a_budget_is_kept_when_the_group_changes() -> None:
    system = crew(group("all", MEMBERS, strategy="one_for_all"), scripts={"b": CRASHES}).start()
    system.run(7)
    change(system, group("all", MEMBERS, strategy="rest_for_one"))
    assert system.report().groups[0].used == 1
