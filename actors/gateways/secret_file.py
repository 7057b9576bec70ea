"""Secrets come from files that only their owner can read; they are never shown or stored in settings."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .gateway_errors import GatewayError, UnsafePathError

LARGEST_SECRET = 64 * 1024


def read_secret(path: Path) -> str:
    """The content of the file, without the line break at its end.

    Raises:
        UnsafePathError: another user may read or change it.
        GatewayError: it cannot be read, or is empty.
    """
    check_secret(path)
    try:
        text = path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise GatewayError(f"cannot read {path}: {_reason(error)}") from None
    if not text:
        raise GatewayError(f"{path} is empty; write the secret into it")
    return text


def check_secret(path: Path, *, group_may_read: bool = False) -> None:
    """Refuse a file that is not safe for a secret.

    Args:
        path: the file.
        group_may_read: whether its group may read it, as distributions arrange it for TLS keys.

    Raises:
        UnsafePathError: another user may read or change it.
        GatewayError: it is missing, or not a regular file.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise GatewayError(f"cannot read {path}: {_reason(error)}") from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_SECRET:
        raise GatewayError(f"{path} is not a file of at most {LARGEST_SECRET} bytes")
    if found.st_uid not in (0, os.geteuid()):
        raise UnsafePathError(f"{path} belongs to another user (uid {found.st_uid}), who could change it")
    if found.st_mode & (0o037 if group_may_read else 0o077):
        raise UnsafePathError(f"{path} is readable by other users: chmod 600 {path}")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8 text"
