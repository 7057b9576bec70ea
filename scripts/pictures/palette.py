"""Writes a picture with 256 colours, which takes half the room and looks the same."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MOST = 256
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BEST = 9
_UP = 2

Pixel = bytes


def write(path: Path, png: bytes) -> None:
    """Write a PNG of Chromium (8 bits, with or without alpha) with a palette."""
    width, height, lines = _pixels(png)
    counts: Counter[Pixel] = Counter()
    for line, times in Counter(lines).items():
        for at in range(0, width * 3, 3):
            counts[line[at : at + 3]] += times
    palette = _palette(counts)
    places = {colour: _nearest(colour, palette) for colour in counts}
    rows = {
        line: b"\0" + bytes(places[line[at : at + 3]] for at in range(0, width * 3, 3)) for line in {*lines}
    }
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        _chunk(b"IHDR", head),
        _chunk(b"PLTE", b"".join(palette)),
        _chunk(b"IDAT", zlib.compress(b"".join(rows[line] for line in lines), _BEST)),
        _chunk(b"IEND", b""),
    )
    path.write_bytes(_SIGNATURE + b"".join(parts))


def _palette(counts: Counter[Pixel]) -> list[Pixel]:
    """The most frequent colours, but none that is nearly the same as a more frequent one."""
    chosen: list[Pixel] = []
    for least in (24, 6, 0):
        for colour, _ in counts.most_common():
            if len(chosen) == MOST:
                return chosen
            if colour not in chosen and all(_distance(colour, each) > least for each in chosen):
                chosen.append(colour)
    return chosen


def _nearest(colour: Pixel, palette: list[Pixel]) -> int:
    return min(range(len(palette)), key=lambda at: _distance(colour, palette[at]))


def _distance(one: Pixel, other: Pixel) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


# ── the format ───────────────────────────────────────────────────────────────────────────


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """The width, the height and the lines of a picture, three bytes a pixel."""
    chunks = list(_chunks(png))
    width, height, depth, kind = struct.unpack(">IIBB", chunks[0][1][:10])
    if depth != 8 or kind not in (2, 6):
        raise ValueError(f"colour type {kind} with {depth} bits is not what Chromium writes")
    size = 3 if kind == 2 else 4
    raw = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    lines: list[bytes] = []
    before = bytes(width * size)
    for at in range(0, len(raw), width * size + 1):
        before = _unfiltered(raw[at], raw[at + 1 : at + 1 + width * size], before, size)
        lines.append(before)
    opaque = lines if size == 3 else [_without_alpha(line) for line in lines]
    return width, height, opaque


def _without_alpha(line: bytes) -> bytes:
    kept = bytearray(len(line) // 4 * 3)
    for channel in range(3):
        kept[channel::3] = line[channel::4]
    return bytes(kept)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _unfiltered(kind: int, line: bytes, before: bytes, size: int) -> bytes:
    """A line as it was before the filter of PNG."""
    if kind == 0:
        return line
    if kind == _UP:
        # Most lines are like the one above them.
        return bytes((a + b) & 0xFF for a, b in zip(line, before, strict=True)) if any(line) else before
    made = bytearray(line)
    for at in range(len(made)):
        left = made[at - size] if at >= size else 0
        corner = before[at - size] if at >= size else 0
        guess = (left, before[at], (left + before[at]) // 2, _paeth(left, before[at], corner))[kind - 1]
        made[at] = (made[at] + guess) & 0xFF
    return bytes(made)


def _paeth(left: int, above: int, corner: int) -> int:
    whole = left + above - corner
    return min((left, above, corner), key=lambda each: abs(whole - each))
