"""Pure: who a browser is once it has shown a token, told by a cookie that only we can sign.

Nothing is kept: a session survives a restart of the supervisor, as a dashboard that stays open
must. It ends by its time, or for everyone when a token is replaced, since the tokens are the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum

LIFE_S = 7 * 86_400
RENEW_S = LIFE_S // 2
"""A session that is nearer to its end than this is given a new one."""
LONGEST_COOKIE = 256

_COOKIE = re.compile(
    r"(?P<signed>(?P<role>viewer|operator)\.(?P<ends>[0-9]{1,12})\.[A-Za-z0-9_-]{16,64})\.(?P<seal>[0-9a-f]{64})"
)


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    """Look."""
    OPERATOR = "operator"
    """Look, and give orders."""


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who has shown a token."""

    role: Role
    ends_at_s: int
    """Wall-clock seconds."""

    def is_to_be_renewed(self, now_s: float) -> bool:
        """Whether its end comes near."""
        return self.ends_at_s - now_s < RENEW_S


def issue(role: Role, key: bytes, now_s: float, nonce: str) -> str:
    """The cookie of a new session."""
    signed = f"{role}.{int(now_s) + LIFE_S}.{nonce}"
    return f"{signed}.{_seal(signed, key)}"


def session_of(cookie: str, key: bytes, now_s: float) -> Session | None:
    """The session that a cookie stands for; None if it is not ours, or over."""
    if len(cookie) > LONGEST_COOKIE or (found := _COOKIE.fullmatch(cookie)) is None:
        return None
    if not hmac.compare_digest(_seal(found["signed"], key), found["seal"]):
        return None
    session = Session(Role(found["role"]), int(found["ends"]))
    return session if now_s < session.ends_at_s <= now_s + LIFE_S + 1 else None


def _seal(signed: str, key: bytes) -> str:
    return hmac.new(key, signed.encode("ascii"), hashlib.sha256).hexdigest()
