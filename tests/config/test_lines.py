"""On which line a key stands, and what is not mistaken for one."""

from __future__ import annotations

import tomllib

from rekindle.cli.config.toml.line_numbers import line_numbers, line_of

TEXT = '''\
top = 1 # not = this
"quoted.key" = [
  "a = 1", # [worker.no]
  "b",
]
text = """
key = 1
[worker.no]
\\""" still = 1
""" # over
literal = \'\'\'
no = 1\'\'\'

[ worker . "a b" ]
x.y = 1
\'z\' = { inner = 1, other = [ 1 ] }
[worker.c.restart]
max = 1
'''


def test_headers_keys_and_dotted_keys_are_found() -> None:
    numbers = line_numbers(TEXT)
    assert tomllib.loads(TEXT)
    assert numbers == {
        ("top",): 1,
        ("quoted.key",): 2,
        ("text",): 6,
        ("literal",): 11,
        ("worker",): 14,
        ("worker", "a b"): 14,
        ("worker", "a b", "x"): 15,
        ("worker", "a b", "x", "y"): 15,
        ("worker", "a b", "z"): 16,
        ("worker", "c"): 17,
        ("worker", "c", "restart"): 17,
        ("worker", "c", "restart", "max"): 18,
    }


def test_a_key_of_an_inline_table_has_the_line_of_the_table() -> None:
    assert line_of(("worker", "a b", "z", "inner"), line_numbers(TEXT)) == 16


def test_a_key_that_is_not_written_has_the_line_of_the_table_around_it() -> None:
    assert line_of(("worker", "c", "restart", "min"), line_numbers(TEXT)) == 17


def test_a_key_without_any_table_has_no_line() -> None:
    assert line_of(("nowhere", "at all"), line_numbers(TEXT)) is None
    assert line_of((), line_numbers(TEXT)) is None
