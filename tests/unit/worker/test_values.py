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


@given(st.recursive(st.binary(min_size=1020, max_size=1030), lambda inner: st.lists(inner).map(tuple)))
def test_long_bytes_are_attached_and_come_back(value: object) -> None:
    assert values.loads(values.dumps(value)) == value


def test_long_bytes_take_their_own_length() -> None:
    assert len(values.dumps([b"x" * 100_000])) < 100_050


@pytest.mark.parametrize(
    "places",
    [[[0, 2000], [0, 2000]], [[1999, 2]], [[-1, 1]], [[0, -1]], [["0", 1]], [[0]], [[0.0, 1]]],
)
def test_attached_bytes_are_each_read_once_and_only_where_they_are(places: list[object]) -> None:
    """Few bytes that are named often would fill the memory of the host."""
    text = json.dumps([{"$attached": place} for place in places]).encode()
    with pytest.raises(ValueError, match=r"attached|more bytes than|not a value"):
        values.loads(values.PRELUDE.pack(0, len(text)) + text + b"x" * 2000)


@pytest.mark.parametrize(
    ("value", "place"),
    [({2j: 1}, "a key of x"), ({1: 2j}, "x[1]"), ([{"a": {(1j,)}}], "an element of x[0]['a'][0]")],
)
def test_the_refusal_names_places_in_sets_and_keys(value: object, place: str) -> None:
    with pytest.raises(TypeError) as refused:
        values.dumps(value, "x")
    assert str(refused.value) == f"{place} is a builtins.complex"
