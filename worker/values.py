"""Values as JSON and back, unchanged: the default format between a host and its tasks.

Plain JSON silently turns a tuple into a list and every key into a string. Here a type that JSON lacks
is written as an object with one tagged key (`{"$tuple": [1, 2]}`), and a value that could not be read
back unchanged is refused, with its place. Reading never runs code, even from untrusted bytes.
"""

from __future__ import annotations

import binascii
import json

MOST_ALIKE = 100
"""How many elements of a set, or keys of a dictionary, may have the same hash."""

PLAIN = (type(None), bool, int, float, str)


def dumps(value: object, name: str = "the value") -> bytes:
    """The value as bytes.

    Raises:
        TypeError: a part of it is of an unsupported type; the message names the type and the place.
    """
    try:
        return json.dumps(_written(value, name), separators=(",", ":")).encode()
    except RecursionError:
        raise TypeError(f"{name} contains itself, or is nested too deeply") from None


def loads(data: bytes) -> object:
    """The value that was written.

    Raises:
        ValueError: the bytes were not written by `dumps`.
    """
    try:
        return _read(json.loads(data))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a value: {error}") from None


def _written(value: object, place: str) -> object:
    # By the exact type: an enum or a named tuple would lose its type.
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, list) and kind is list:
        return [_written(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict) and kind is dict:
        return _written_dict(value, place)
    if isinstance(value, tuple) and kind is tuple:
        return {"$tuple": [_written(item, f"{place}[{index}]") for index, item in enumerate(value)]}
    if isinstance(value, bytes) and kind is bytes:
        return {"$bytes": binascii.b2a_base64(value, newline=False).decode()}
    if isinstance(value, (set, frozenset)) and kind in (set, frozenset):
        return {f"${kind.__name__}": [_written(item, f"an element of {place}") for item in value]}
    raise TypeError(f"{place} is a {kind.__module__}.{kind.__qualname__}")


def _written_dict(value: dict[object, object], place: str) -> object:
    plain = all(type(key) is str for key in value)
    if plain and not (len(value) == 1 and next(iter(value)).startswith("$")):  # type: ignore[attr-defined]
        return {key: _written(item, f"{place}[{key!r:.40}]") for key, item in value.items()}
    pairs = (
        [_written(key, f"a key of {place}"), _written(item, f"{place}[{key!r:.40}]")]
        for key, item in value.items()
    )
    return {"$dict": list(pairs)}


def _read(value: object) -> object:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(key, item)] = value.items()
        if key.startswith("$"):
            return _read_tagged(key, item)
    return {key: _read(item) for key, item in value.items()}


def _read_tagged(tag: str, item: object) -> object:
    if tag == "$bytes" and isinstance(item, str):
        return binascii.a2b_base64(item, strict_mode=True)
    if not isinstance(item, list):
        raise ValueError(f"{tag[:40]!r} does not hold a list")
    match tag:
        case "$tuple":
            return tuple(_read(each) for each in item)
        case "$set":
            return set(_checked([_read(each) for each in item]))
        case "$frozenset":
            return frozenset(_checked([_read(each) for each in item]))
        case "$dict":
            keys = _checked([_read(key) for key, _ in item])
            return dict(zip(keys, [_read(each) for _, each in item], strict=True))
        case _:
            raise ValueError(f"unknown tag {tag[:40]!r}")


def _checked(elements: list[object]) -> list[object]:
    """The elements, unless too many have the same hash that a set of them takes quadratic time.

    The hashes of numbers are known beforehand: a hostile worker can choose numbers that all have the same.
    """
    if len(elements) > MOST_ALIKE:
        from collections import Counter

        ((_, alike),) = Counter(map(hash, elements)).most_common(1)
        if alike > MOST_ALIKE:
            raise ValueError(f"{alike} elements have the same hash, of at most {MOST_ALIKE}")
    return elements
