"""Which regular expressions are safe to search with."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.spec.search_pattern import MOST_REPEATS, pattern_problem

_parser: Any = import_module("re._parser")
"""The judge of the test; the package itself uses no private part of `re`."""

NESTED = "repeats without a limit what is repeated without a limit, which can take forever"
MANY = f"has more than {MOST_REPEATS} repeats without a limit"


@pytest.mark.parametrize(
    "pattern",
    [
        "ready",
        "listening on .*:[0-9]+",
        "a+b+c+",
        "(a|b)+",
        r"\(\d+\)",
        "[*+]+",
        "[]*]+",
        "(a+){3}",
        "(a{1,9})*",
    ],
)
def test_patterns_whose_time_is_bounded_are_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "must not be empty"),
        ("(", "is not a regular expression: missing ), unterminated subpattern at position 0"),
        ("(a+)+", NESTED),
        ("(?:x(a*b)c)*", NESTED),
        ("(a{2,})+?", NESTED),
        ("(a|b+)*$", NESTED),
        ("(?#[)(a+)+", NESTED),
        (r"([]\]]+)*", NESTED),
        ("a+b+c+d+", MANY),
        ("(?x) # [\n (a+)+", "must not use the flag (?x)"),
    ],
)
def test_patterns_that_can_take_for_ever_are_refused(pattern: str, problem: str) -> None:
    assert pattern_problem(pattern) == problem


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # of `re`, about sets such as [[a]
@given(st.text(st.sampled_from(r"ab()[]^\*+?{},|2:-"), max_size=14))
def test_no_nested_repeat_that_the_parser_of_python_finds_is_accepted(pattern: str) -> None:
    try:
        parsed = _parser.parse(pattern).data
        re.compile(pattern)
    except (re.error, OverflowError):
        return
    if _nested(parsed):
        assert pattern_problem(pattern) == NESTED


def _nested(parsed: Any, *, inside: bool = False) -> bool:
    """Whether a repeat without a limit is inside of another."""
    for part in parsed:
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], int):
            operator, argument = part
            repeats = str(operator) in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] == _parser.MAXREPEAT
            if (repeats and inside) or _nested([argument], inside=inside or repeats):
                return True
        elif isinstance(part, tuple | list | _parser.SubPattern) and _nested(part, inside=inside):
            return True
    return False
