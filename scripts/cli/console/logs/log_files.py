"""Which log files there are: those of each worker, by a file in the state directory, and their rotations."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...state_files import LOG_FILES_NAME

UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file raises that was rotated away meanwhile, is damaged, or is not a log file."""

_ROTATED = re.compile(r"(\.\d+|[.-]\d{8}[-.\dT]*)(\.gz)?")
"""What Rekindle and logrotate append to the name of a rotated file."""


def known_files(state: Path) -> dict[str, str]:
    """The log files of the workers of a state directory, also of workers that were removed."""
    try:
        found = json.loads((state / LOG_FILES_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {id_: path for id_, path in found.items() if isinstance(path, str)}


def note_files(state: Path, files: Mapping[str, str]) -> None:
    """Remember the log files of the workers; those of former workers are kept while they exist.

    Raises:
        OSError: the state directory cannot be written.
    """
    former = known_files(state)
    kept = {id_: path for id_, path in former.items() if id_ in files or os.path.exists(path)}
    now = {**kept, **files}
    if now == former:
        return
    part = state / f"{LOG_FILES_NAME}.part"
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(now, file, indent=1)
    part.replace(state / LOG_FILES_NAME)


def rotations(path: str) -> list[str]:
    """A log file and its rotated files, oldest first; none if there are none."""
    folder, name = os.path.split(path)
    found: dict[str, tuple[int, str]] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(name) and entry.is_file(follow_symlinks=False):
                    rest = entry.name[len(name) :]
                    if not rest or _ROTATED.fullmatch(rest):
                        found[entry.name] = (entry.stat().st_mtime_ns, entry.name)
    except OSError:
        return []
    for compressed in [each for each in found if each.removesuffix(".gz") in found and each.endswith(".gz")]:
        del found[compressed]  # it is about to take the place of the other one
    current = found.pop(name, None)
    names = [each for _, each in sorted(found.values())] + ([name] if current is not None else [])
    return [os.path.join(folder, each) for each in names]


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A log file, compressed or not, for reading."""
    if path.endswith(".gz"):
        import gzip

        with gzip.open(path, "rb") as file:
            yield file  # type: ignore[misc]
    else:
        with open(path, "rb") as file:
            yield file
