"""Values that travel between a host and its tasks come back as they went, or are refused."""

from __future__ import annotations

import enum
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.worker import values

atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = atoms | st.tuples(atoms, atoms) | st.sampled_from(["$tuple", "$dict", "$", "$no"])
anything = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
    ),
    max_leaves=20,
)


@given(anything)
def test_what_is_written_is_read_as_it_was(value: object) -> None:
    back = values.loads(values.dumps(value))
    assert back == value
    assert repr(type(back)) == repr(type(value))


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [Colour.RED, object(), bytearray(b"x"), [1, {"a": (Colour.RED,)}]])
def test_what_would_come_back_as_something_else_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="the value"):
        values.dumps(value)


def test_the_refusal_names_the_place() -> None:
    with pytest.raises(TypeError, match=r"^x\['a'\]\[1\] is a builtins\.complex$"):
        values.dumps({"a": [1, 2j]}, "x")


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(TypeError, match="contains itself"):
        values.dumps(value)


@given(st.binary() | st.sampled_from([b'{"$set":[[]]}', b'{"$dict":[1]}', b'{"$x":[]}', b"[" * 100_000]))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        values.loads(data)


@pytest.mark.parametrize("kind", ["$set", "$frozenset", "$dict"])
def test_many_elements_with_the_same_hash_are_refused(kind: str) -> None:
    """Half a megabyte of them took seven seconds of the host."""
    alike = [number * (2**61 - 1) for number in range(30_000)]
    item: list[object] = [[each, 1] for each in alike] if kind == "$dict" else list(alike)
    with pytest.raises(ValueError, match="30000 elements have the same hash, of at most 100"):
        values.loads(json.dumps({kind: item}).encode())


def test_many_different_elements_come_back() -> None:
    numbers = set(range(-1000, 200_000)) | {n / 3 for n in range(1000)} | {n << 40 for n in range(1000)}
    assert values.loads(values.dumps(numbers)) == numbers
    assert values.loads(values.dumps(dict.fromkeys(numbers, 1))) == dict.fromkeys(numbers, 1)
