"""Where a command finds its supervisor: the state directory that is meant, and all that are in use.

A state directory that no option names is searched from the current folder upwards, as git
searches `.git`. Supervisors that run are found by the lock that each of them holds, so there is
no register that could be out of date.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..state_files import DATABASE_NAME, LOCK_NAME, SOCKET_NAME

STATE_NAME = ".rekindle"
_LOCKS = Path("/proc/locks")


class Found(NamedTuple):
    """A supervisor that runs on this machine."""

    pid: int
    state: Path
    uid: int


def state_of_file(file: Path) -> Path:
    """The state directory of a configuration file, without checking the rest of the file.

    Raises:
        ValueError: the file is not TOML, or `state_dir` is not a text.
        OSError: the file cannot be read.
    """
    import tomllib

    given = tomllib.loads(file.read_text()).get("state_dir", STATE_NAME)
    if not isinstance(given, str):
        raise ValueError("state_dir is not a text")
    return (file.parent / Path(given).expanduser()).absolute()


def nearest_state() -> Path:
    """The state directory in the current folder or the nearest one above it; by default the one here.

    A directory of another user is passed over: that user could have put it there for others to find.
    """
    default = Path(STATE_NAME)
    with suppress(OSError):  # the current folder was removed
        above = [] if _is_used(default) else [folder / STATE_NAME for folder in Path.cwd().parents]
        return next((state for state in above if _is_used(state) and _is_trusted(state)), default)
    return default


def _is_used(state: Path) -> bool:
    return any(os.path.lexists(state / name) for name in (SOCKET_NAME, DATABASE_NAME, LOCK_NAME))


def _is_trusted(state: Path) -> bool:
    trusted = {0, os.geteuid(), int(os.environ.get("SUDO_UID", "0") or 0)}
    return os.lstat(state).st_uid in trusted and os.lstat(state.parent).st_uid in trusted


def running_supervisors() -> list[Found]:
    """The supervisors of this user, or of all users for root, ordered by their state directories."""
    found = {pid: each for pid in _lock_holders() if (each := _supervisor(pid)) is not None}
    return sorted(found.values(), key=lambda each: each.state)


def _lock_holders() -> Iterator[int]:
    """The processes that hold an exclusive `flock` on any file."""
    with suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF
            if "FLOCK" in words and "WRITE" in words and words[4].isdecimal():
                yield int(words[4])


def _supervisor(pid: int) -> Found | None:
    """The supervisor with this pid, if it is one whose lock we may see."""
    with suppress(OSError):
        uid = os.stat(f"/proc/{pid}").st_uid
        for number in os.listdir(f"/proc/{pid}/fd"):
            folder, _, name = os.readlink(f"/proc/{pid}/fd/{number}").rpartition("/")
            if name == LOCK_NAME:
                return Found(pid, Path(folder), uid)
    return None
