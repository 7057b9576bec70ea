"""How long a worker may be silent, and how long it may take to start or to recover."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...errors import Problem
from ..validation import (
    SHORTEST_S,
    Policy,
    exceeds,
    seconds,
    setting,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy(Policy):
    """How long a worker that reports its health may stay silent.

    The defaults are the preset `steady`. With `staleness_s = None` a worker needs no heartbeats
    after its first one; with `recovery_*_s = None` it gets no recovery time.
    """

    startup_timeout_s: float = seconds(
        60.0, "How long a worker may take from its start to its first healthy frame.", least=SHORTEST_S
    )
    staleness_s: float | None = seconds(
        5.0, "Silence of this many seconds is a miss; none: heartbeats are not required.", least=SHORTEST_S
    )
    max_misses: int = setting(3, "How many misses in a row make a worker dead.", least=1)
    heartbeat_interval_s: float = seconds(
        2.0, "How often a worker is asked to send a frame, in seconds.", least=SHORTEST_S
    )
    recovery_min_s: float | None = seconds(5.0, "The shortest recovery time that a worker is given.")
    recovery_max_s: float | None = seconds(
        120.0, "The longest recovery time that a worker is given.", least=SHORTEST_S
    )
    progress_timeout_s: float | None = seconds(
        None,
        "How long the work of a live worker may make no progress; none: progress is not checked.",
        least=SHORTEST_S,
    )
    max_bad_frames: int = setting(
        100, "A worker that sends more invalid frames than this is stopped.", least=1
    )

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """The times that contradict each other."""
        if (self.recovery_min_s is None) != (self.recovery_max_s is None):
            reason = "must be set together with recovery_max_s, or not at all"
            yield Problem("recovery_min_s", reason, self.recovery_min_s)
        elif exceeds(self, "recovery_min_s", "recovery_max_s"):
            reason = f"must not exceed recovery_max_s ({self.recovery_max_s})"
            yield Problem("recovery_min_s", reason, self.recovery_min_s)
        if exceeds(self, "heartbeat_interval_s", "staleness_s"):
            reason = f"must not exceed staleness_s ({self.staleness_s})"
            yield Problem("heartbeat_interval_s", reason, self.heartbeat_interval_s)
        if exceeds(self, "heartbeat_interval_s", "progress_timeout_s"):
            reason = (
                f"must not be below heartbeat_interval_s ({self.heartbeat_interval_s}): "
                "progress is reported with the heartbeats"
            )
            yield Problem("progress_timeout_s", reason, self.progress_timeout_s)

    def warnings(self) -> Iterator[Problem]:
        """What is allowed but unwise."""
        if self.staleness_s is not None and self.heartbeat_interval_s > self.staleness_s / 2:
            reason = f"is more than half of staleness_s ({self.staleness_s}): one late frame counts as a miss"
            yield Problem("heartbeat_interval_s", reason, self.heartbeat_interval_s)
