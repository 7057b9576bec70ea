"""The steps of a rollout, as pure decisions."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors.rules.rollout import (
    Finish,
    Lower,
    PutBack,
    Raise,
    Replace,
    Rollout,
    Sight,
    Stage,
    Turn,
    advance,
    begin,
)

OLD = Sight(5, is_up=True, is_ready=True)
SPARE = Sight(1, is_up=True, is_ready=True)
NEW = Sight(6, is_up=True, is_ready=True)
TWO = Rollout(
    name="web", members=("a", "b"), spares=("s",), patience_ms=60_000, settle_ms=5000, puts_back=True
)


def replacing(rollout: Rollout = TWO) -> Turn:
    """The rollout when the first member is replaced."""
    raised = advance(begin(rollout, 0).rollout, {"a": OLD, "b": OLD, "s": SPARE}, 1000)
    return advance(raised.rollout, {"a": OLD, "b": OLD, "s": SPARE}, 6000)


def test_the_spares_start_first_and_must_settle_before_a_member_is_replaced() -> None:
    begun = begin(TWO, 0)
    assert begun.orders == (Raise(("s",)),)
    starting = {"a": OLD, "b": OLD, "s": Sight(1, is_up=True)}
    assert advance(begun.rollout, starting, 500) == Turn(
        advance(begun.rollout, starting, 500).rollout, (), 60_000
    )
    ready = advance(begun.rollout, {"a": OLD, "b": OLD, "s": SPARE}, 1000)
    assert (ready.orders, ready.look_at_ms) == ((), 6000)
    assert advance(ready.rollout, {"a": OLD, "b": OLD, "s": SPARE}, 5999).orders == ()
    assert replacing().orders == (Replace(("a",)),)


def test_the_members_follow_one_after_the_other_and_then_the_spares_go() -> None:
    turn = replacing()
    stopping = {"a": Sight(5), "b": OLD, "s": SPARE}
    assert advance(turn.rollout, stopping, 7000).orders == ()
    turn = advance(turn.rollout, {"a": NEW, "b": OLD, "s": SPARE}, 8000)
    turn = advance(turn.rollout, {"a": NEW, "b": OLD, "s": SPARE}, 13_000)
    assert turn.orders == (Replace(("b",)),)
    turn = advance(turn.rollout, {"a": NEW, "b": NEW, "s": SPARE}, 14_000)
    turn = advance(turn.rollout, {"a": NEW, "b": NEW, "s": SPARE}, 19_000)
    assert (turn.orders, turn.rollout.replaced) == ((Lower(("s",)),), ("a", "b"))
    assert advance(turn.rollout, {"a": NEW, "b": NEW, "s": Sight(1)}, 20_000).orders == ()
    turn = advance(turn.rollout, {"a": NEW, "b": NEW}, 21_000)
    assert (turn.orders, turn.rollout.stage, turn.rollout.problem) == ((Finish(),), Stage.OVER, "")


def test_a_spare_that_dies_or_is_never_ready_ends_it_before_a_member_is_touched() -> None:
    begun = begin(TWO, 0).rollout
    for sight in (Sight(1, is_dead=True), Sight(2, is_up=True)):
        seen = advance(begun, {"a": OLD, "b": OLD, "s": SPARE}, 1000).rollout
        turn = advance(seen, {"a": OLD, "b": OLD, "s": sight}, 2000)
        assert turn.orders == (Lower(("s",)),)
        assert "the new process of s ended soon after it was ready" in turn.rollout.problem
    late = advance(begun, {"a": OLD, "b": OLD, "s": Sight(1, is_up=True)}, 60_000)
    assert late.orders == (Lower(("s",)),)
    assert late.rollout.problem == "the new process of s is not ready after 60 s"


def test_a_spare_that_is_paused_before_it_has_settled_has_not_proved_itself() -> None:
    begun = begin(TWO, 0).rollout
    ready = advance(begun, {"a": OLD, "b": OLD, "s": SPARE}, 1000).rollout
    turn = advance(ready, {"a": OLD, "b": OLD, "s": Sight(1)}, 4000)
    assert turn.orders == (Lower(("s",)),)
    assert turn.rollout.problem == "the new process of s ended soon after it was ready"


def test_a_member_that_dies_is_put_back_with_those_that_were_replaced_before() -> None:
    turn = advance(replacing().rollout, {"a": NEW, "b": OLD, "s": SPARE}, 8000)
    turn = advance(turn.rollout, {"a": NEW, "b": OLD, "s": SPARE}, 13_000)
    turn = advance(turn.rollout, {"a": NEW, "b": Sight(6, is_dead=True), "s": SPARE}, 14_000)
    assert turn.orders == (PutBack(("b",)),)
    turn = advance(turn.rollout, {"a": NEW, "b": Sight(7, is_up=True, is_ready=True), "s": SPARE}, 15_000)
    assert turn.orders == (PutBack(("a",)),)
    back = Sight(7, is_up=True, is_ready=True)
    turn = advance(turn.rollout, {"a": back, "b": back, "s": SPARE}, 16_000)
    assert (turn.orders, turn.rollout.replaced) == ((Lower(("s",)),), ())
    assert "the new process of b ended before it was ready" in turn.rollout.problem


def test_one_that_does_not_come_back_does_not_hold_up_the_others() -> None:
    turn = advance(replacing().rollout, {"a": Sight(6, is_dead=True), "b": OLD, "s": SPARE}, 7000)
    assert turn.orders == (PutBack(("a",)),)
    still = {"a": Sight(6, is_dead=True), "b": OLD, "s": SPARE}
    assert advance(turn.rollout, still, 8000).orders == ()
    assert advance(turn.rollout, still, 67_000).orders == (Lower(("s",)),)


def test_without_an_old_configuration_nothing_is_put_back() -> None:
    turn = replacing(replace(TWO, puts_back=False))
    turn = advance(turn.rollout, {"a": Sight(6, is_dead=True), "b": OLD, "s": SPARE}, 7000)
    assert turn.orders == (Lower(("s",)),)


def test_a_member_waits_while_a_spare_is_not_ready() -> None:
    turn = advance(replacing().rollout, {"a": NEW, "b": OLD, "s": SPARE}, 8000)
    ill = {"a": NEW, "b": OLD, "s": Sight(1, is_up=True)}
    turn = advance(turn.rollout, ill, 13_000)
    assert (turn.orders, turn.look_at_ms) == ((), 73_000)
    assert advance(turn.rollout, {"a": NEW, "b": OLD, "s": SPARE}, 14_000).orders == (Replace(("b",)),)
    assert "additional process s is not ready" in advance(turn.rollout, ill, 73_000).rollout.problem


def test_a_member_that_was_stopped_or_removed_meanwhile_is_not_awaited() -> None:
    turn = advance(replacing().rollout, {"a": NEW, "b": OLD, "s": SPARE}, 8000)
    stopped = advance(turn.rollout, {"a": NEW, "b": Sight(5, is_down=True), "s": SPARE}, 13_000)
    assert stopped.orders == (Replace(("b",)),)
    sights = {"a": NEW, "b": Sight(5, is_down=True), "s": SPARE}
    assert advance(stopped.rollout, sights, 13_000).orders == (Lower(("s",)),)
    removed = advance(turn.rollout, {"a": NEW, "s": SPARE}, 13_000)
    assert advance(removed.rollout, {"a": NEW, "s": SPARE}, 13_000).orders == (Lower(("s",)),)


def test_a_member_that_was_about_to_restart_is_replaced_by_that_restart() -> None:
    crashed = {"a": Sight(5, is_dead=True), "b": OLD, "s": SPARE}
    begun = advance(begin(TWO, 0).rollout, crashed, 1000)
    turn = advance(begun.rollout, crashed, 6000)
    assert turn.orders == (Replace(("a",)),)
    assert advance(turn.rollout, crashed, 7000).rollout.problem == ""
