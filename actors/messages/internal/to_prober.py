"""What the Supervisor says about its breakers to itself, and to whoever probes for them."""

from __future__ import annotations

import msgspec

from ...ports import Receiver
from ...spec.breaker_policy import BreakerPolicy


class BreakerDue(msgspec.Struct, frozen=True):
    """A wait of this breaker may be over."""

    name: str


class Probe(msgspec.Struct, frozen=True):
    """Look whether what the workers need is there, and answer with `ProbeAnswered`."""

    policy: BreakerPolicy
    reply_to: Receiver


class ProbeAnswered(msgspec.Struct, frozen=True):
    """What came of a probe; `wrong` is None where all is well."""

    name: str
    wrong: str | None
