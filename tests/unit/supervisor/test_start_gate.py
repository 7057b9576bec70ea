"""How many workers may be starting at the same time: SC-15, P19."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.supervisor.pending.start_gate import StartGate, Ticket


def ticket(number: int) -> Ticket:
    """An incarnation of a worker of its own."""
    return (f"worker:{number}", 1)


def test_without_a_limit_every_start_happens_at_once() -> None:
    gate = StartGate(None)
    assert all(gate.admit(ticket(n)) for n in range(100))
    assert gate.release(ticket(1)) is None


def test_sc_15_no_more_than_the_limit_start_at_once() -> None:
    gate = StartGate(2)
    assert [gate.admit(ticket(n)) for n in range(5)] == [True, True, False, False, False]


def test_starts_that_wait_come_in_their_order() -> None:
    gate = StartGate(1)
    for n in range(3):
        gate.admit(ticket(n))
    assert gate.release(ticket(0)) == ticket(1)
    assert gate.release(ticket(1)) == ticket(2)
    assert gate.release(ticket(2)) is None


def test_a_start_that_is_over_twice_makes_room_once() -> None:
    gate = StartGate(1)
    for n in range(3):
        gate.admit(ticket(n))
    assert gate.release(ticket(0)) == ticket(1)
    assert gate.release(ticket(0)) is None


def test_the_end_of_an_unknown_start_makes_no_room() -> None:
    gate = StartGate(1)
    gate.admit(ticket(0))
    gate.admit(ticket(1))
    assert gate.release(ticket(7)) is None
    assert gate.release(("worker:0", 2)) is None


def test_room_that_was_made_is_used_again() -> None:
    gate = StartGate(1)
    gate.admit(ticket(0))
    gate.release(ticket(0))
    assert gate.admit(ticket(1))


@given(limit=st.integers(1, 4), steps=st.lists(st.tuples(st.booleans(), st.integers(0, 200))))
def test_the_limit_holds_and_everyone_gets_a_turn(limit: int, steps: list[tuple[bool, int]]) -> None:
    gate, starting, waiting = StartGate(limit), list[Ticket](), list[Ticket]()
    for number, (begin, pick) in enumerate(steps):
        if begin:
            (starting if gate.admit(ticket(number)) else waiting).append(ticket(number))
        elif starting:
            following = gate.release(starting.pop(pick % len(starting)))
            assert following == (waiting.pop(0) if waiting else None)
            starting += [following] if following else []
        assert len(starting) <= limit
        assert not waiting or len(starting) == limit
