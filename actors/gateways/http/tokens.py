"""The two tokens, 256 bits each, in files of the state directory that only their owner can read."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..gateway_errors import GatewayError, UnsafePathError
from ..state_directory import open_state_directory
from .login_sessions import ClientRole

TOKEN_FILES = {ClientRole.VIEWER: "http-viewer.token", ClientRole.OPERATOR: "http-operator.token"}
TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43,128}")


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The token of viewers, and the token of operators."""

    viewer: str
    operator: str
    fresh: bool = False
    """Whether they were created just now, so that no client knows them yet."""

    def role_of(self, token: str) -> ClientRole | None:
        """The role of a token; both are compared, in constant time."""
        shown = token.encode("utf-8", "replace")
        operator = hmac.compare_digest(shown, self.operator.encode())
        viewer = hmac.compare_digest(shown, self.viewer.encode())
        if operator:
            return ClientRole.OPERATOR
        return ClientRole.VIEWER if viewer else None

    def of(self, role: ClientRole) -> str:
        """The token of a role."""
        return self.operator if role is ClientRole.OPERATOR else self.viewer


def load_tokens(directory: Path) -> Tokens:
    """The tokens of a state directory; missing ones are created.

    Raises:
        UnsafePathError: another user could read or change them.
        GatewayError: they cannot be read or created.
    """
    descriptor = open_state_directory(directory)
    try:
        found = {role: _read(descriptor, directory / name) for role, name in TOKEN_FILES.items()}
        fresh = None in found.values()
        kept = {
            role: token or _create(descriptor, directory / TOKEN_FILES[role]) for role, token in found.items()
        }
    except OSError as error:
        raise GatewayError(f"cannot write the token files in {directory}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return Tokens(kept[ClientRole.VIEWER], kept[ClientRole.OPERATOR], fresh)


def _read(directory: int, path: Path) -> str | None:
    try:
        descriptor = os.open(
            path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafePathError(f"cannot open {path}: {error.strerror}; remove it") from error
    with os.fdopen(descriptor, "rb") as file:
        _check(path, os.fstat(descriptor))
        text = file.read(1024).decode("ascii", "replace").strip()
    if _TOKEN.fullmatch(text) is None:
        raise GatewayError(f"{path} does not hold a token; remove it to get a new one")
    return text


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePathError(f"{path} is not a file; remove it")
    if found.st_uid != os.geteuid():
        raise UnsafePathError(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise UnsafePathError(
            f"{path} is readable by other users (mode {mode:04o}); remove it to get a new one"
        )


def _create(directory: int, path: Path) -> str:
    """Create a token; its file is complete or absent."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    draft = f".{path.name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600, dir_fd=directory)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    os.rename(draft, path.name, src_dir_fd=directory, dst_dir_fd=directory)
    return token
