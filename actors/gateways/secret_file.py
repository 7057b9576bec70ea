"""Secrets come from files that nobody else can read; they are never shown, nor kept in settings."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .gateway_errors import GatewayError, UnsafePathError

LARGEST_SECRET = 64 * 1024


def read_secret(path: Path) -> str:
    """What stands in the file, without the line break at its end.

    Raises:
        UnsafePathError: somebody else may read or change it.
        GatewayError: it cannot be read, or is empty.
    """
    check_secret(path)
    try:
        text = path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise GatewayError(f"{path} cannot be read: {_reason(error)}") from None
    if not text:
        raise GatewayError(f"{path} is empty: a secret belongs in it")
    return text


def check_secret(path: Path) -> None:
    """Refuse a file that is no secret.

    Raises:
        UnsafePathError: somebody else may read or change it.
        GatewayError: it is not there, or no file.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise GatewayError(f"{path} cannot be read: {_reason(error)}") from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_SECRET:
        raise GatewayError(f"{path} is no file with a secret")
    if found.st_uid not in (0, os.geteuid()):
        raise UnsafePathError(f"{path} belongs to another user, who could change it")
    if found.st_mode & 0o077:
        raise UnsafePathError(f"{path} can be read by others: chmod 600 {path}")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text"
