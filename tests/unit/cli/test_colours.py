"""The colours of a worker's output on a terminal."""

from __future__ import annotations

import pytest

from rekindle.cli.render.colours import coloured


@pytest.mark.parametrize("codes", ["31", "1;31", "", "0", "38;5;208", "38;2;1;2;3", "1;48;5;7;90"])
def test_a_colour_is_kept_and_ends_with_its_line(codes: str) -> None:
    assert coloured(f"a \\x1b[{codes}mred", keep=True) == f"a \x1b[{codes}mred\x1b[0m"


@pytest.mark.parametrize("codes", ["8", "5", "1;8", "38;5", "99"])
def test_what_hides_or_blinks_is_left_out(codes: str) -> None:
    assert coloured(f"a \\x1b[{codes}mb", keep=True) == "a b\x1b[0m"


@pytest.mark.parametrize("sequence", ["\\x1b[2J", "\\x1b]0;title\\x07", "\\x1b[1;1H", "\\x1b[?25l"])
def test_other_sequences_stay_escaped(sequence: str) -> None:
    assert coloured(sequence, keep=True) == sequence


def test_colours_are_left_out_where_none_are_wanted() -> None:
    assert coloured("\\x1b[31mred\\x1b[0m", keep=False) == "red"
