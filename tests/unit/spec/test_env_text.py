"""The syntax of files of environment variables."""

from __future__ import annotations

import pytest

from rekindle.actors.spec.env_text import EnvText


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1\nB = two words  \n", {"A": "1", "B": "two words"}),
        ("# note\n\nexport A=1 # note\nB=a#b\n", {"A": "1", "B": "a#b"}),
        ("A='x $Y ${Z} \\n # y' # note\n", {"A": "x $Y ${Z} \\n # y"}),
        ('A="x\\ty \\"q\\" \\$ \\w"', {"A": 'x\ty "q" $ \\w'}),
        ('A="one\ntwo"\nB=1', {"A": "one\ntwo", "B": "1"}),
        ("A=\nB=''\nC=\"\"\n", {"A": "", "B": "", "C": ""}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("A=1\nA=2\n", {"A": "2"}),
        ("A=1\nB=${A}${HOME}${X:-d}\n", {"A": "1", "B": "1/rootd"}),
        ("A=pa$$word$1\nB=a=b\n", {"A": "pa$$word$1", "B": "a=b"}),
        ("", {}),
    ],
)
def test_a_text_has_these_variables(text: str, variables: dict[str, str]) -> None:
    parsed = EnvText(text, {"HOME": "/root"})
    assert (parsed.variables, parsed.problems) == (variables, [])


def test_every_line_that_is_not_understood_is_named() -> None:
    text = "A=1\nnot a line\nB=\"open\nC='x' y\n1D=2\nE=${NOPE}\nF=6\n"
    parsed = EnvText(text, {})
    assert parsed.problems == [
        (2, "is not NAME=value"),
        (3, "the quotation mark of B is not closed"),
        (4, "has more text after the value of C"),
        (5, "is not NAME=value"),
        (6, "NOPE is not set: set it, write ${NOPE:-default}, or use single quotes to keep it"),
    ]
    assert parsed.variables["F"] == "6"
