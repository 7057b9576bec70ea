"""The log shows the start of a process before its output."""

from __future__ import annotations

import itertools

from rekindle.cli.supervise.line_writer import HOLD_S, MOST_HELD, Line, StartOrder


def started(worker: str, generation: int) -> Line:
    return Line(f"{worker} started {generation}", worker, generation, starts=True)


def wrote(worker: str, generation: int, text: str = "") -> Line:
    return Line(f"{worker} {generation} wrote {text}".rstrip(), worker, generation, is_output=True)


def written(*lines: Line) -> list[str]:
    order = StartOrder()
    return [text for line in lines for text in order.add(line, 0.0)]


def test_output_waits_for_the_start_of_its_process_and_keeps_its_order() -> None:
    assert written(wrote("a", 1, "x"), wrote("a", 1, "y"), started("a", 1), wrote("a", 1, "z")) == [
        "a started 1",
        "a 1 wrote x",
        "a 1 wrote y",
        "a 1 wrote z",
    ]


def test_output_of_one_worker_waits_neither_for_another_nor_for_a_later_start() -> None:
    lines = wrote("a", 2), started("b", 1), wrote("b", 1), started("a", 1), wrote("a", 1), started("a", 2)
    assert written(*lines) == [
        "b started 1",
        "b 1 wrote",
        "a started 1",
        "a 1 wrote",
        "a started 2",
        "a 2 wrote",
    ]


def test_output_whose_start_is_never_logged_is_written_after_a_time() -> None:
    order = StartOrder()
    assert order.due_in_s(5.0) is None
    assert list(order.add(wrote("a", 1, "x"), 5.0)) == []
    assert order.due_in_s(5.5) == HOLD_S - 0.5
    assert list(order.overdue(5.5)) == []
    assert list(order.overdue(5.0 + HOLD_S)) == ["a 1 wrote x"]
    assert list(order.add(wrote("a", 1, "y"), 6.0)) == ["a 1 wrote y"]


def test_only_so_many_lines_wait_and_none_is_lost() -> None:
    order = StartOrder()
    lines = [wrote("a", 1, str(number)) for number in range(MOST_HELD + 5)]
    texts = itertools.chain.from_iterable(order.add(line, 0.0) for line in lines)
    assert list(texts) == [line.text for line in lines]
    assert list(order.release()) == []
