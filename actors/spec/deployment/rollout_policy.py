"""How a new version of a worker takes over; checked when it is constructed."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import Policy, seconds, setting

MOST_SURGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPolicy(Policy):
    """New processes are ready before the old ones stop: at a reload, a recycling and a rolling restart.

    While that lasts there are up to `surge` additional workers.
    """

    surge: int = setting(1, "How many additional workers there may be meanwhile.", least=1, most=MOST_SURGE)
    settle_s: float = seconds(5.0, "How long a new process must stay ready before the next step.")
