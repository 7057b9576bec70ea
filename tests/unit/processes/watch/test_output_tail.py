"""The last lines of a worker's output, within bounds: P15."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.processes.watch.output_tail import LONGEST_LINE, MOST_LINES, OutputTail


def tail_of_texts() -> OutputTail[str]:
    """One that keeps nothing but the texts."""
    return OutputTail(lambda _stream, text: text)


def fed(tail: OutputTail[str], *chunks: bytes, stream: int = 1) -> list[str]:
    """The lines that these bytes complete."""
    return [line for chunk in chunks for line in tail.feed(stream, chunk)]


def test_lines_are_kept_in_their_order() -> None:
    tail = tail_of_texts()
    assert fed(tail, b"one\ntwo\r\nthr", b"ee\n") == ["one", "two", "three"]
    assert tail.last() == ("one", "two", "three")


def test_two_streams_do_not_mix_within_a_line() -> None:
    tail = tail_of_texts()
    fed(tail, b"out", stream=1)
    fed(tail, b"err", stream=2)
    assert fed(tail, b"put\n", stream=1) + fed(tail, b"or\n", stream=2) == ["output", "error"]


def test_what_is_left_of_a_last_line_counts_at_the_end() -> None:
    tail = tail_of_texts()
    fed(tail, b"Segmentation fault")
    assert tail.last() == ()
    assert list(tail.finish()) == ["Segmentation fault"]
    assert list(tail.finish()) == []
    assert tail.last() == ("Segmentation fault",)


def test_the_oldest_lines_are_dropped_and_counted() -> None:
    tail = tail_of_texts()
    fed(tail, b"".join(b"%d\n" % n for n in range(MOST_LINES + 7)))
    assert (tail.last()[0], tail.last()[-1], tail.dropped) == ("7", str(MOST_LINES + 6), 7)


def test_fewer_lines_may_be_asked_for() -> None:
    tail = tail_of_texts()
    fed(tail, b"a\nb\nc\n")
    assert (tail.last(2), tail.last(1), tail.last(99)) == (("b", "c"), ("c",), ("a", "b", "c"))
    assert tail.last(0) == ()


def test_a_line_that_never_ends_is_cut() -> None:
    tail = tail_of_texts()
    (cut,) = fed(tail, b"x" * LONGEST_LINE, b"x")
    assert len(cut) == LONGEST_LINE


def test_bytes_that_are_not_utf_8_are_shown_as_escapes() -> None:
    assert fed(tail_of_texts(), b"caf\xe9 \xc3\xa9\n") == ["caf\\xe9 é"]


def test_control_characters_do_not_reach_a_terminal() -> None:
    (line,) = fed(tail_of_texts(), b"\x1b[31mred\x07\tcell\x00\n")
    assert "\x1b" not in line
    assert "\x07" not in line
    assert "\x00" not in line


@given(chunks=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=6000)), max_size=30))
def test_any_output_leaves_the_tail_within_bounds(chunks: list[tuple[int, bytes]]) -> None:
    tail = tail_of_texts()
    for stream, chunk in chunks:
        list(tail.feed(stream, chunk))
        assert all(len(rest) <= LONGEST_LINE for rest in tail._partial.values())
    list(tail.finish())
    assert len(tail.last()) <= MOST_LINES
    assert all(len(line) <= 4 * LONGEST_LINE and "\n" not in line for line in tail.last())
