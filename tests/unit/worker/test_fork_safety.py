"""Whom a warm process blames for a thread that no Python code has started."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.worker.warm.fork_safety import c_library

LINE = "7f11c8000000-7f11c8021000 r-xp 00000000 00:1f 2229 {}\n"


@pytest.mark.parametrize(
    ("library", "told"),
    [
        ("/lib/libscipy_openblas64_-32a4b207.so", 'OPENBLAS_NUM_THREADS = "1"'),
        ("/lib/libmkl_core.so.2", 'MKL_NUM_THREADS = "1"'),
        ("/lib/libgomp-24e2ab19.so.1.0.0", 'OMP_NUM_THREADS = "1"'),
    ],
)
def test_a_library_that_starts_threads_is_named_with_a_way_out(
    tmp_path: Path, library: str, told: str
) -> None:
    maps = tmp_path / "maps"
    maps.write_text(LINE.format("/lib/libc.so.6") + LINE.format(library))
    assert told in c_library(str(maps))
    assert Path(library).name in c_library(str(maps))


def test_an_unknown_library_is_not_guessed(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(LINE.format("/lib/libc.so.6") + LINE.format("[heap]"))
    assert c_library(str(maps)) == "of a C library"
