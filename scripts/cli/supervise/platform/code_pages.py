"""Releases the pages of program code that only the start needed.

The start runs far more machine code than the time after it: the initialisation of OpenSSL, which asyncio
imports, is 3 MB of it. The kernel keeps all of it mapped, and counts it as this process's memory. A
released page is mapped again on the next access, from the kernel's cache of the file.

Two sources must agree that a page is identical to its file: the loader, which knows the parts of
libraries that it never writes to, and the kernel, which knows the pages that were changed nevertheless
(by a debugger, for example). No library can be loaded or unloaded while the loader is asked.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

OWN_MAPS = Path("/proc/self/smaps")

_PART, _WRITABLE = 1, 2  # PT_LOAD, PF_W

Addresses = tuple[int, int]
"""The start, and the end, which is not included."""


class _Header(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("in_file", ctypes.c_uint64),
        ("in_memory", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    )


class _Library(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.POINTER(_Header)),
        ("count", ctypes.c_uint16),
    )


_Visit = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p)


def give_back_code(maps: Path = OWN_MAPS) -> None:
    """Release every page of a library that can be read from its file again."""
    if sys.maxsize < 2**32:
        return  # 32-bit headers have another layout
    with suppress(OSError, ValueError, AttributeError):  # no /proc, an undecodable path, another system
        # Without releasing the GIL: a thread that loads a library may need it under the loader's lock.
        system = ctypes.PyDLL(None)
        system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        with maps.open() as lines:
            clean = frozenset(unchanged(lines))

        def visit(library: ctypes._Pointer[_Library], _size: int, _: object) -> int:
            for start, end in _parts(library.contents):
                if (start, end) in clean:
                    system.madvise(start, end - start, mmap.MADV_DONTNEED)
            return 0

        system.dl_iterate_phdr(_Visit(visit), None)


def _parts(library: _Library) -> Iterator[Addresses]:
    """The parts of a library that the loader never writes to, in whole pages."""
    for header in library.headers[: library.count]:
        if header.type == _PART and not header.flags & _WRITABLE:
            start = library.base + header.address
            yield _page(start), _page(start + header.in_file + mmap.PAGESIZE - 1)


def _page(address: int) -> int:
    return address - address % mmap.PAGESIZE


def unchanged(lines: Iterable[str]) -> Iterator[Addresses]:
    """The mappings in `smaps` that are not writable and were never written to."""
    mapping: Addresses | None = None
    for line in lines:
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            if mapping is not None:
                yield mapping
            mapping = _of_a_file(name, rest)
        elif name in ("Anonymous:", "Swap:") and rest.split() != ["0", "kB"]:
            mapping = None
    if mapping is not None:
        yield mapping


def _of_a_file(addresses: str, rest: str) -> Addresses | None:
    """The mapping that a heading describes: addresses, permissions, offset, device, inode and path."""
    permissions, _, _, inode, *path = rest.split(maxsplit=4)
    if permissions not in ("r-xp", "r--p") or inode == "0" or not path:
        return None
    start, _, end = addresses.partition("-")
    return int(start, 16), int(end, 16)
