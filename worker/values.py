"""Values as JSON and back, unchanged: the default format between a host and its tasks.

Plain JSON silently turns a tuple into a list and every key into a string. Here a type that JSON lacks
is written as an object with one tagged key (`{"$tuple": [1, 2]}`), and a value that could not be read
back unchanged is refused, with its place. Long bytes are attached to the JSON as they are, and the JSON
names their places. Reading never runs code, even from untrusted bytes.
"""

from __future__ import annotations

import binascii
import json
import struct

LONG = 1024
"""From this length on, bytes are attached to the JSON instead of being a part of it."""

PRELUDE = struct.Struct(">BQ")
"""What precedes JSON with attached bytes: 0, with which no JSON begins, and the length of the JSON."""

MOST_ALIKE = 100
"""How many elements of a set, or keys of a dictionary, may have the same hash."""

PLAIN = frozenset((type(None), bool, int, float, str))

# Made once: json.dumps makes one at every call with separators.
_encode = json.JSONEncoder(separators=(",", ":")).encode


def dumps(value: object, name: str = "the value") -> bytes:
    """The value as bytes.

    Raises:
        TypeError: a part of it is of an unsupported type; the message names the type and the place.
    """
    writer = _Writer()
    try:
        text = _encode(writer.written(value)).encode()
    except RecursionError:
        raise TypeError(f"{name} contains itself, or is nested too deeply") from None
    except _UnsupportedError as error:
        raise TypeError(f"{error.place(name)} is a {error.kind}") from None
    if not writer.attached:
        return text
    return b"".join((PRELUDE.pack(0, len(text)), text, *writer.attached))


def loads(data: bytes | bytearray) -> object:
    """The value that was written.

    Raises:
        ValueError: the bytes were not written by `dumps`.
    """
    try:
        if data[:1] != b"\0":
            value = json.loads(data)
            return value if type(value) in PLAIN else _Reader(memoryview(b"")).read(value)
        _, length = PRELUDE.unpack_from(data)
        end = PRELUDE.size + length
        return _Reader(memoryview(data)[end:]).read(json.loads(data[PRELUDE.size : end]))
    except (TypeError, RecursionError, struct.error) as error:
        raise ValueError(f"not a value: {error}") from None


class _UnsupportedError(Exception):
    """A value of an unsupported type; each level that it passes on its way up adds its step."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.steps: list[str] = []

    def place(self, name: str) -> str:
        for step in reversed(self.steps):
            name = name + step if step.startswith("[") else step + name
        return name


class _Writer:
    """Turns a value into one that JSON can represent."""

    def __init__(self) -> None:
        self.attached: list[bytes] = []
        self._length = 0

    def written(self, value: object) -> object:
        # By the exact type: an enum or a named tuple would lose its type.
        kind = type(value)
        if kind in PLAIN:
            return value
        if isinstance(value, list) and kind is list:
            return self._items(value)
        if isinstance(value, dict) and kind is dict:
            return self._dict(value)
        if isinstance(value, tuple) and kind is tuple:
            return {"$tuple": self._items(value)}
        if isinstance(value, bytes) and kind is bytes:
            return self._bytes(value)
        if isinstance(value, (set, frozenset)) and kind in (set, frozenset):
            return {f"${kind.__name__}": self._items(tuple(value), "an element of ")}
        raise _UnsupportedError(value)

    def _items(self, items: list[object] | tuple[object, ...], step: str = "") -> list[object]:
        written: list[object] = []
        try:
            for item in items:
                written.append(item if type(item) in PLAIN else self.written(item))  # noqa: PERF401
        except _UnsupportedError as error:
            error.steps.append(step or f"[{len(written)}]")
            raise
        return written

    def _dict(self, value: dict[object, object]) -> object:
        plain = all(type(key) is str for key in value)
        if plain and not (len(value) == 1 and next(iter(value)).startswith("$")):  # type: ignore[attr-defined]
            return {key: self._item_of(key, item) for key, item in value.items()}
        pairs = ([self._key(key), self._item_of(key, item)] for key, item in value.items())
        return {"$dict": list(pairs)}

    def _key(self, key: object) -> object:
        return self._items((key,), "a key of ")[0]

    def _item_of(self, key: object, item: object) -> object:
        return item if type(item) in PLAIN else self._items((item,), f"[{key!r:.40}]")[0]

    def _bytes(self, value: bytes) -> object:
        if len(value) < LONG:
            return {"$bytes": binascii.b2a_base64(value, newline=False).decode()}
        self.attached.append(value)
        self._length += len(value)
        return {"$attached": [self._length - len(value), len(value)]}


class _Reader:
    """Turns what JSON represented into the value."""

    def __init__(self, attached: memoryview) -> None:
        self._attached = attached
        self._unread = len(attached)

    def read(self, value: object) -> object:
        if isinstance(value, list):
            return [item if type(item) in PLAIN else self.read(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            [(key, item)] = value.items()
            if key.startswith("$"):
                return self._tagged(key, item)
        return {key: self.read(item) for key, item in value.items()}

    def _tagged(self, tag: str, item: object) -> object:
        if tag == "$bytes" and isinstance(item, str):
            return binascii.a2b_base64(item, strict_mode=True)
        if not isinstance(item, list):
            raise ValueError(f"{tag[:40]!r} does not hold a list")
        match tag:
            case "$attached":
                return self._bytes(*item)
            case "$tuple":
                return tuple([self.read(each) for each in item])
            case "$set":
                return set(_checked([self.read(each) for each in item]))
            case "$frozenset":
                return frozenset(_checked([self.read(each) for each in item]))
            case "$dict":
                keys = _checked([self.read(key) for key, _ in item])
                return dict(zip(keys, [self.read(each) for _, each in item], strict=True))
            case _:
                raise ValueError(f"unknown tag {tag[:40]!r}")

    def _bytes(self, start: object, length: object) -> bytes:
        if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length < 0:
            raise ValueError("the place of attached bytes is not two numbers")
        # Few bytes that are named often would otherwise become many.
        self._unread -= length
        if self._unread < 0 or start + length > len(self._attached):
            raise ValueError("the value refers to more bytes than the message carries")
        return bytes(self._attached[start : start + length])


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
