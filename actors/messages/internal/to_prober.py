"""Messages about breakers: timers of the Supervisor, and requests to the prober."""

from __future__ import annotations

import msgspec

from ...ports import Receiver
from ...spec.policies.breaker_policy import BreakerPolicy


class BreakerDue(msgspec.Struct, frozen=True):
    """Timer: a wait of this breaker may be over."""

    name: str


class Probe(msgspec.Struct, frozen=True):
    """Check whether the workers' dependency is available, and reply with `ProbeAnswered`."""

    policy: BreakerPolicy
    reply_to: Receiver


class ProbeAnswered(msgspec.Struct, frozen=True):
    """The result of a probe; `wrong` is None if it succeeded."""

    name: str
    wrong: str | None
