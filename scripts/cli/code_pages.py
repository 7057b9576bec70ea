"""The pages of program code that only the start needed.

A start runs through far more machine code than the life after it: the set-up of OpenSSL, which Python's
asyncio brings along, is 3 MB of it. The kernel leaves all of that mapped, and counts it as ours. A page
that was given back is mapped again at the next touch, from the kernel's cache of the file.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

OWN_MAPS = Path("/proc/self/smaps")


class Mapping(msgspec.Struct, frozen=True):
    """A part of a file that is mapped, from one address up to but not including another."""

    start: int
    end: int


def give_back_code(maps: Path = OWN_MAPS) -> None:
    """Give back every page that can be had from its file again; what cannot be given back stays."""
    with suppress(OSError, ValueError, AttributeError):  # no /proc, a path of strange bytes, no madvise
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        with maps.open() as lines:
            for mapping in unchanged(lines):
                advise(mapping.start, mapping.end - mapping.start, mmap.MADV_DONTNEED)


def unchanged(lines: Iterable[str]) -> Iterator[Mapping]:
    """Those of the mappings in `smaps` that nobody can write to, and that hold what their file holds.

    Not even one changed page may be among them: the loader writes addresses into what it protects
    afterwards, and those are in no file.
    """
    mapping: Mapping | None = None
    for line in lines:
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            mapping = _of_a_file(name, rest)
        elif name == "Anonymous:" and mapping is not None and rest.split() == ["0", "kB"]:
            yield mapping


def _of_a_file(addresses: str, rest: str) -> Mapping | None:
    """The mapping that a heading tells of: addresses, permissions, offset, device, inode and path."""
    permissions, _, _, inode, *path = rest.split(maxsplit=4)
    if permissions not in ("r-xp", "r--p") or inode == "0" or not path:
        return None
    start, _, end = addresses.partition("-")
    return Mapping(int(start, 16), int(end, 16))
