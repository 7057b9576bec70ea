"""Durations, moments and foreign text as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.cli.render.text import (
    age,
    cells,
    countdown,
    cut,
    exit_words,
    moment,
    printable,
    printable_lines,
    seconds_of,
    span,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86_400),
        ("1h30m", 5400),
        ("0.5", 0.5),
        ("1.5h", 5400),
        (" 30M ", 1800),
    ],
)
def test_a_duration_is_a_number_with_or_without_a_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "m", "soon", "-5", "5 m", "30x", "1e3", "nan", "inf", "0", "0s", "1h30", "90 90", "٣m", "9" * 400],
)
def test_an_invalid_duration_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|longer than 0|without a unit"):
        seconds_of(text)


SPANS = [
    (0, "0 s"),
    (-5, "0 s"),
    (4, "4 ms"),
    (250, "250 ms"),
    (999, "999 ms"),
    (999.9, "1 s"),
    (1500, "1.5 s"),
    (9_940, "9.9 s"),
    (9_960, "10 s"),
    (12_000, "12 s"),
    (59_400, "59 s"),
    (59_900, "1 min"),
    (90_000, "1 min 30 s"),
    (3_599_999, "59 min 59 s"),
    (3_600_000, "1 h"),
    (7_200_000, "2 h"),
    (3_660_000, "1 h 1 min"),
    (90_000_000, "1 d 1 h"),
    (172_800_000, "2 d"),
    (86_400_000 * 400, "400 d"),
]
"""The dashboard formats them too: `tests/web/pages/test_dashboard.py`."""


@pytest.mark.parametrize(("milliseconds", "said"), SPANS)
def test_a_span_is_written_in_at_most_two_units(milliseconds: float, said: str) -> None:
    assert span(milliseconds) == said


def test_a_countdown_never_says_zero_before_its_end() -> None:
    assert [countdown(left) for left in (0, 1, 1000, 1001, 59_001, 61_000)] == [
        "0 s",
        "1 s",
        "1 s",
        "2 s",
        "1 min",
        "1 min 1 s",
    ]


def test_an_age_looks_back_and_after_a_jump_of_the_clock_ahead() -> None:
    assert [age(200), age(5_400), age(7_200_000), age(-90_000)] == [
        "just now",
        "5 s ago",
        "2 h ago",
        "in 1 min 30 s",
    ]


def test_a_moment_is_iso_8601_with_its_offset() -> None:
    assert moment(1_700_000_000_000).startswith("2023-11-1")
    assert moment(1_700_000_000_000)[-6] in "+-"
    assert moment(10**18) == f"{10**18} ms"


def test_the_end_of_a_process_names_its_signal() -> None:
    assert exit_words(None, 9) == "killed by SIGKILL"
    assert exit_words(None, 200) == "killed by signal 200"
    assert exit_words(78, None) == "exited with code 78"
    assert exit_words(None, None) == "exit status unknown"


def test_nothing_that_steers_a_terminal_is_left() -> None:
    hostile = "a\x1b[2J\x07b\r\nc\x9b31m\u202ed\ud800"
    assert printable(hostile) == r"a\x1b[2J\x07b\r\nc\x9b31m\u202ed\ud800"
    assert printable("[red]ü 漢 🚀[/]") == "[red]ü 漢 🚀[/]"
    assert printable_lines("one\r\ntwo\x1b\nthree") == "one\ntwo\\x1b\nthree"


@given(st.text())
def test_printable_text_is_printable_and_stays_as_it_is(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@given(st.text(alphabet="aü漢e\u0301🚀 "), st.integers(0, 12))
def test_cut_text_fits(text: str, width: int) -> None:
    kept = cut(printable(text), width)
    assert cells(kept) <= width
    assert kept == printable(text) or kept.endswith("…") or width == 0
