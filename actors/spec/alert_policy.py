"""What a host declares about alerts; checked when it is constructed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Problem
from .validation import coerce, durations, mistyped, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    """When an episode is over, and when it is told of a second time."""

    enabled: bool = True
    """False: nobody is told; recovery goes on all the same."""
    settle_s: float = 30.0
    """How long a worker must stay healthy for its alerts to be resolved."""
    escalate_after_s: float | None = 900.0
    """An alert that nobody acknowledged for this long is told of once more; None is never."""
    recent_s: float = 3600.0
    """Over how long recent deaths are counted."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("alerts", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        yield from mistyped(self)
        yield from durations(self, "settle_s", "escalate_after_s", "recent_s")
