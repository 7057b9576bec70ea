"""Pure: whether a regular expression is safe to search with.

Python's `re` backtracks: a pattern that repeats without a limit what is repeated without a limit can
take forever on one line. The text of the pattern shows that, so no private part of `re` is needed.
"""

from __future__ import annotations

import re

MOST_REPEATS = 3
"""How many `*` and `+` a pattern may have: the time of a search grows with each."""

_TOKENS = re.compile(
    r"""
    (?P<atom>    \\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \(\?\#[^)]*\) )   # an escape, a set, a comment
  | (?P<repeat>  (?: [*+] | \{\d*,\} ) [?+]? )
  | (?P<open>    \( )
  | (?P<close>   \) )
  | .
    """,
    re.VERBOSE | re.DOTALL,
)


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    if not pattern:
        return "must not be empty"
    try:
        flags = re.compile(pattern).flags
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    if flags & re.VERBOSE:
        return "must not use the flag (?x)"
    repeats = _repeats(pattern)
    if repeats is None:
        return "repeats without a limit what is repeated without a limit, which can take forever"
    return None if repeats <= MOST_REPEATS else f"has more than {MOST_REPEATS} repeats without a limit"


def _repeats(pattern: str) -> int | None:
    """How many repeats without a limit a valid pattern has; None if one is inside of another."""
    groups = [0]
    """The repeats in each group that is open."""
    in_last = 0
    """The repeats in the part that a following `*` or `+` would repeat."""
    for token in _TOKENS.finditer(pattern):
        match token.lastgroup:
            case "open":
                groups.append(0)
                in_last = 0
            case "close":
                in_last = groups.pop()
                groups[-1] += in_last
            case "repeat":
                if in_last:
                    return None
                groups[-1] += 1
            case _:
                in_last = 0
    return groups[0]
