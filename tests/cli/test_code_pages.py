"""What a supervisor gives back of its memory once it runs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rekindle.cli.supervise.platform.code_pages import unchanged

LIBRARY = """\
7f0000000000-7f0000001000 r--p 00000000 fe:00 42                         /usr/lib/libx.so
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
7f0000001000-7f0000004000 r-xp 00001000 fe:00 42                         /usr/lib/libx.so
Rss:                  12 kB
Anonymous:             0 kB
"""


def mapping(
    permissions: str = "r-xp",
    inode: int = 42,
    path: str = "/usr/lib/libx.so",
    anonymous: int = 0,
    swapped: int = 0,
) -> str:
    """One mapping, as the kernel shows it."""
    heading = f"1000-3000 {permissions} 00001000 fe:00 {inode}  {path}"
    return f"{heading}\nAnonymous:  {anonymous} kB\nSwap:  {swapped} kB\n"


def test_code_and_constants_of_a_library_can_be_given_back() -> None:
    assert list(unchanged(LIBRARY.splitlines())) == [
        (0x7F0000000000, 0x7F0000001000),
        (0x7F0000001000, 0x7F0000004000),
    ]


def test_a_path_with_blanks_changes_nothing() -> None:
    assert list(unchanged(mapping(path="/srv/my libs/x.so (deleted)").splitlines())) == [(0x1000, 0x3000)]


def test_what_was_written_to_or_may_be_stays() -> None:
    stays = [
        mapping(anonymous=4),  # the loader's addresses, in no file
        mapping(swapped=16),
        mapping("rw-p"),
        mapping("rwxp"),
        mapping("r--s"),
        mapping(inode=0, path="[vdso]"),
        mapping(inode=0, path=""),
    ]
    assert [list(unchanged(each.splitlines())) for each in stays] == [[] for _ in stays]


PROGRAM = """
import hashlib, ssl, sqlite3, sys
from pathlib import Path
from rekindle.cli.supervise.platform.code_pages import give_back_code

def of_files():
    rows = (line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines())
    return next(int(row[1]) for row in rows if row[0] == "Rss:")

def work():
    ssl.create_default_context()
    with sqlite3.connect(":memory:") as database:
        answer = database.execute("SELECT 6 * 7").fetchone()[0]
    return hashlib.sha256(b"rekindle").hexdigest(), answer

before, first = of_files(), work()
give_back_code()
after = of_files()
assert work() == first
print(before - after)
"""


def test_a_process_goes_on_as_before_with_megabytes_less() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) > 2048, "in kB"


def test_libraries_may_come_and_go_meanwhile() -> None:
    """A mapping that had made room for another meanwhile was emptied, and the process died of it."""
    program = """
import ctypes, os, threading
from rekindle.cli.supervise.platform.code_pages import give_back_code

system = ctypes.CDLL(None)
system.dlopen.restype = ctypes.c_void_p
system.dlclose.argtypes = (ctypes.c_void_p,)

def come_and_go():
    while True:
        system.dlclose(system.dlopen(b"libpanel.so.6", os.RTLD_NOW))

threading.Thread(target=come_and_go, daemon=True).start()
for _ in range(200):
    give_back_code()
os._exit(0)
"""
    program = program.replace("libpanel.so.6", _some_library())
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def _some_library() -> str:
    """One that Python does not load by itself."""
    loaded = Path("/proc/self/maps").read_text()
    for name in ("libgnutls.so.30", "libpanel.so.6", "libmenu.so.6", "libthread_db.so.1", "libnss_dns.so.2"):
        with suppress(OSError):
            ctypes.CDLL(name)
            if name not in loaded:
                return name
    pytest.skip("there is no library at hand that is not loaded already")


def test_without_the_kernels_list_nothing_happens() -> None:
    program = (
        "from pathlib import Path; "
        "from rekindle.cli.supervise.platform.code_pages import give_back_code as g; g(Path('/none'))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
