"""Pure: the session of a browser that has sent a token, in a cookie that only the supervisor can sign.

Nothing is stored, so a session survives a restart of the supervisor and a dashboard can stay open.
A session expires; all sessions end when a token is replaced, because the tokens are the signing key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum

LIFE_S = 7 * 86_400
RENEW_S = LIFE_S // 2
"""A session that expires sooner than this is renewed."""
LONGEST_COOKIE = 256

_COOKIE = re.compile(
    r"(?P<signed>(?P<role>viewer|operator)\.(?P<ends>[0-9]{1,12})\.[A-Za-z0-9_-]{16,64})\.(?P<signature>[0-9a-f]{64})"
)


class Role(StrEnum):
    """What a client may do."""

    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Read, and send commands."""


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that has sent a token."""

    role: Role
    ends_at_s: int
    """Wall-clock seconds."""

    def needs_renewal(self, now_s: float) -> bool:
        """Whether it expires soon."""
        return self.ends_at_s - now_s < RENEW_S


def issue(role: Role, key: bytes, now_s: float, nonce: str) -> str:
    """The cookie of a new session."""
    signed = f"{role}.{int(now_s) + LIFE_S}.{nonce}"
    return f"{signed}.{_signature(signed, key)}"


def session_of(cookie: str, key: bytes, now_s: float) -> Session | None:
    """The session in a cookie; None if the signature is wrong or the session has expired."""
    if len(cookie) > LONGEST_COOKIE or (found := _COOKIE.fullmatch(cookie)) is None:
        return None
    if not hmac.compare_digest(_signature(found["signed"], key), found["signature"]):
        return None
    session = Session(Role(found["role"]), int(found["ends"]))
    return session if now_s < session.ends_at_s <= now_s + LIFE_S + 1 else None


def _signature(signed: str, key: bytes) -> str:
    return hmac.new(key, signed.encode("ascii"), hashlib.sha256).hexdigest()
