"""What the Supervisor says about its breakers to itself, and to whoever probes for them."""

from __future__ import annotations

from dataclasses import dataclass

from .breaker import BreakerPolicy
from .ports import Receiver


@dataclass(frozen=True, slots=True)
class BreakerDue:
    """A wait of this breaker may be over."""

    name: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Look whether what the workers need is there, and answer with `ProbeAnswered`."""

    policy: BreakerPolicy
    reply_to: Receiver


@dataclass(frozen=True, slots=True)
class ProbeAnswered:
    """What came of a probe; `wrong` is None where all is well."""

    name: str
    wrong: str | None
