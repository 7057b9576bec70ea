"""The directory that holds the socket, the lock and the tokens; only its owner can write to it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .gateway_errors import GatewayError, UnsafePathError


def open_state_directory(directory: Path) -> int:
    """A descriptor of a directory that only its owner can write to; it is created if it is missing.

    Raises:
        UnsafePathError: it belongs to another user, or other users may write to it.
        GatewayError: it cannot be created or opened.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise GatewayError(f"cannot use {directory} as state directory: {error.strerror}") from error
    return _opened(directory)


def check_state_directory(directory: Path) -> None:
    """Check a directory that exists as `open_state_directory` does.

    Raises:
        UnsafePathError: it belongs to another user, or other users may write to it.
        GatewayError: it cannot be opened.
    """
    os.close(_opened(directory))


def _opened(directory: Path) -> int:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise GatewayError(f"cannot use {directory} as state directory: {error.strerror}") from error
    try:
        _check_directory(directory, os.fstat(descriptor))
        check_path_to(directory)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_path_to(directory: Path) -> None:
    """Refuse a path on which another user could put another directory in the place of ours.

    Raises:
        UnsafePathError: a link of another user, or a parent that every user may write to.
    """
    link = directory.absolute()
    if link.is_symlink() and link.lstat().st_uid not in (0, os.geteuid()):
        raise UnsafePathError(f"{directory} is a symbolic link of another user (uid {link.lstat().st_uid})")
    for parent in directory.resolve().parents:
        if not parent.exists():  # it will be created, private to us
            continue
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise UnsafePathError(
                f"{parent}, above {directory}, is writable by every user: chmod o-w {parent}"
            )


def _check_directory(directory: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnsafePathError(f"{directory} belongs to another user (uid {found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafePathError(
            f"{directory} is writable by other users (mode {mode:04o}): chmod 700 {directory}"
        )
