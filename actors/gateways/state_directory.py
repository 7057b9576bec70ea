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
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise GatewayError(f"cannot use {directory} as state directory: {error.strerror}") from error
    try:
        _check_directory(directory, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_directory(directory: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnsafePathError(f"{directory} belongs to another user (uid {found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafePathError(
            f"{directory} is writable by other users (mode {mode:04o}): chmod 700 {directory}"
        )
