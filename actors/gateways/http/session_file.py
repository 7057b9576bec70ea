"""The sessions in a file of the state directory, so that an open dashboard survives a restart."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from loguru import logger

from ..gateway_errors import GatewayError
from ..state_directory import open_state_directory
from .login_sessions import Session
from .tokens import Tokens

FILE = "http-sessions.json"
LARGEST = 1024 * 1024


class _Stored(msgspec.Struct):
    tokens: str
    """A hash of the tokens: sessions end when a token is replaced."""
    sessions: list[Session]


class SessionFile:
    """The file of one state directory. It holds no secret: a session cannot be made from its hash."""

    def __init__(self, directory: Path, tokens: Tokens) -> None:
        self._directory = directory
        self._tokens = hashlib.sha256(
            f"rekindle sessions {tokens.viewer} {tokens.operator}".encode()
        ).hexdigest()

    def load(self) -> list[Session]:
        """The sessions of a former run; none if the file is missing, damaged or of other tokens."""
        try:
            folder = open_state_directory(self._directory)
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(FILE, flags, dir_fd=folder), "rb") as file:
                    stored = msgspec.json.decode(file.read(LARGEST), type=_Stored)
            finally:
                os.close(folder)
        except (OSError, GatewayError, msgspec.MsgspecError):
            return []
        return stored.sessions if stored.tokens == self._tokens else []

    def save(self, sessions: list[Session]) -> None:
        """Replace the file."""
        data = msgspec.json.encode(_Stored(self._tokens, sessions))
        draft = f".{FILE}.{os.getpid()}"
        try:
            folder = open_state_directory(self._directory)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(draft, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(data)
                os.rename(draft, FILE, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                os.close(folder)
        except (OSError, GatewayError) as error:
            logger.warning("http: sessions cannot be stored, so they end with the supervisor: {}", str(error))
