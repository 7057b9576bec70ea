"""The sessions of browsers that have sent a token.

The dashboard keeps its session in the browser's storage, which belongs to one origin, and sends it as a
bearer token. A cookie would go to every port of the host, where another user's server could read it.
A session ends when it is signed out, after `IDLE_S` without a request, and when a token is replaced.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

IDLE_S = 12 * 3600.0
LIFE_S = 7 * 86_400.0
"""How long a session may last at most, however often it is used."""
MOST_SESSIONS = 200
"""Of each role."""
SAVE_AFTER_S = 600.0
"""How old the stored time of the last use may be."""
PREFIX = "session-"
LONGEST = 128


class ClientRole(StrEnum):
    """What a client may do."""

    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Read, and send commands."""


class Session(msgspec.Struct):
    """A browser that has sent a token; times in wall-clock seconds."""

    hash: str
    """Of the name, which only the browser knows."""
    role: ClientRole
    began: float
    used: float


class Sessions:
    """The sessions of one server. Used by one thread."""

    def __init__(
        self, found: Iterable[Session], clock: Callable[[], float], save: Callable[[list[Session]], None]
    ) -> None:
        """Continue with the sessions of a former run.

        Args:
            found: those sessions.
            clock: the wall clock, in seconds.
            save: stores all sessions.
        """
        self._clock = clock
        self._save = save
        self._saved_at = clock()
        self._sessions = {each.hash: each for each in sorted(found, key=lambda each: each.used)}
        """The one that was used least recently first."""

    def begin(self, role: ClientRole) -> str:
        """A new session; its name is the secret that its browser sends."""
        # Of its own role: a client that may only look must not sign out operators.
        own = [each.hash for each in self._sessions.values() if each.role is role]
        for oldest in own[: max(0, len(own) + 1 - MOST_SESSIONS)]:
            del self._sessions[oldest]
        name, now = PREFIX + secrets.token_urlsafe(32), self._clock()
        self._sessions[_hash(name)] = Session(_hash(name), role, now, now)
        self._store(now)
        return name

    def role_of(self, name: str) -> ClientRole | None:
        """The role of a session; None if the session does not exist or is over."""
        if not name.startswith(PREFIX) or len(name) > LONGEST:
            return None
        session = self._sessions.pop(_hash(name), None)
        now = self._clock()
        if session is None or now - session.used >= IDLE_S or now - session.began >= LIFE_S:
            return None
        session.used = now
        self._sessions[session.hash] = session
        if now - self._saved_at >= SAVE_AFTER_S:
            self._store(now)
        return session.role

    def end(self, name: str) -> None:
        """Sign a browser out."""
        if self._sessions.pop(_hash(name), None) is not None:
            self._store(self._clock())

    def _store(self, now: float) -> None:
        self._saved_at = now
        self._save(list(self._sessions.values()))


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
