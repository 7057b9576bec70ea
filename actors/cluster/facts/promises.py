"""Pure: what agents send each other while the database is away.

asker ─ PromiseAsked ─▶ member: "my lease ends at this time of the database; do not testify for D"
asker ◀─ PromiseGot ─── member: granted, or refused with the reason
"""

from __future__ import annotations

import msgspec


class PromiseAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A node asks a member not to testify against it for a while."""

    asker: str
    incarnation: int
    member: str
    nonce: str
    """Fresh for each request, and returned in the answer: an answer that is replayed extends nothing."""
    lease_until_ms: int
    """The end of the asker's lease as it knows it from the database; the stored one is never earlier."""
    for_s: float


class PromiseGot(msgspec.Struct, frozen=True, kw_only=True):
    """A member's answer to one request."""

    member: str
    member_incarnation: int
    asker: str
    nonce: str
    granted: bool
    reason: str = ""
    """Why it was refused."""
