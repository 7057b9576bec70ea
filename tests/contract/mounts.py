"""Small file systems that a test mounts for itself, to run out of space or to turn read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_file_system(where: Path, size: str) -> Iterator[Path]:
    """A tmpfs of this size, gone at the end; skips where mounting is not allowed."""
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a file system can be mounted by root only")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def remount(where: Path, *, read_only: bool) -> None:
    """Make a mounted file system read-only, or writable again."""
    mode = "ro" if read_only else "rw"
    subprocess.run(["mount", "-o", f"remount,{mode}", str(where)], check=True)
