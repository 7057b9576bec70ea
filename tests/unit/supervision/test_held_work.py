"""What is written down of the work that is held, and what a next run makes of it."""

from __future__ import annotations

from rekindle.actors import ReleasePolicy, WorkerSpec, command
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.supervision.after_death import held_work

FREE = ReleasePolicy(command=("br", "free", "{work_item}"))


def spec(release: ReleasePolicy | None = FREE, id_: str = "worker:tag:0") -> WorkerSpec:
    """A worker under this policy."""
    return WorkerSpec(id_, command("true"), release=release)


def test_what_a_worker_holds_is_written_down_and_struck_out() -> None:
    assert held_work.hold_records(spec(), 3, "fg-7") == (MetaSet("held_work:worker:tag:0:3", "fg-7"),)
    assert held_work.hold_records(spec(), 3, None) == (MetaSet("held_work:worker:tag:0:3", None),)
    order = held_work.order(spec(), 3, "fg-7", Exit())
    assert order is not None
    assert held_work.release_record(order) == MetaSet("held_work:worker:tag:0:3", None)


def test_nothing_is_written_where_nothing_would_be_released() -> None:
    """JR-18."""
    assert held_work.hold_records(spec(None), 1, "fg-7") == ()
    assert held_work.hold_records(spec(ReleasePolicy(recipe="br")), 1, "fg-7") == ()  # type: ignore[arg-type]


def test_the_item_of_a_spec_is_held_for_as_long_as_the_worker_lives() -> None:
    named = spec(ReleasePolicy(command=("br",), work_item="mine"))
    assert held_work.hold_records(named, 1, None) == (MetaSet("held_work:worker:tag:0:1", "mine"),)


def test_what_is_left_is_released_as_the_spec_of_today_says_and_noted_apart_until_then() -> None:
    """The generations of this run begin at 1: its own notes must not be taken for the former ones."""
    (order,), notes = held_work.left_behind(
        [spec()], {"held_work:worker:tag:0:3": "fg-7", "other": "x"}, "run2"
    )
    assert (order.release.work_item, order.release.generation, order.policy) == ("fg-7", 3, FREE)
    assert (order.release.exit_code, order.release.signal) == (None, None)
    left = "left_work:run2:worker:tag:0:3"
    assert notes == (MetaSet("held_work:worker:tag:0:3", None), MetaSet(left, "fg-7"))
    assert held_work.release_record(order) == MetaSet(left, None)


def test_a_release_that_was_cut_off_with_its_run_is_done_once_more() -> None:
    (order,), notes = held_work.left_behind([spec()], {"left_work:run2:worker:tag:0:3": "fg-7"}, "run3")
    assert (order.release.work_item, order.release.component_id) == ("fg-7", "worker:tag:0")
    assert notes == ()
    assert held_work.release_record(order) == MetaSet("left_work:run2:worker:tag:0:3", None)


def test_held_work_without_a_release_policy_is_deleted() -> None:
    meta = {"held_work:gone:1": "fg-7", "left_work:run1:worker:tag:0:2": "fg-8"}
    orders, notes = held_work.left_behind([spec(None)], meta, "run2")
    assert orders == ()
    assert notes == tuple(MetaSet(key, None) for key in meta)


def test_an_order_needs_an_item() -> None:
    assert held_work.order(spec(), 1, None, Exit(code=1)) is None


def test_a_release_that_an_upgrade_of_the_supervisor_cut_off_is_done_once_more() -> None:
    meta = {
        "held_work:worker:tag:0:3": "fg-7",
        "held_work:worker:tag:0:4": "fg-8",
        "left_work:run1:worker:tag:0:4": "fg-9",
        "held_work:worker:gone:0:1": "fg-10",
        "other": "x",
    }
    orders = held_work.interrupted([spec()], meta, {"worker:tag:0": 4})
    assert [(each.release.work_item, each.release.generation) for each in orders] == [
        ("fg-7", 3),
        ("fg-9", 4),
    ], "the item of the living process stays where it is"
    assert [held_work.release_record(each).key for each in orders] == [
        "held_work:worker:tag:0:3",
        "left_work:run1:worker:tag:0:4",
    ]
