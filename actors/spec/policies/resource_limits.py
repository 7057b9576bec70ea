"""What a worker may use, and when a healthy worker is recycled; checked when constructed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...errors import Problem
from ..validation import SHORTEST_S, Policy, exceeds, seconds, setting

LIMITED = ("cpu_percent", "memory_mb", "threads", "descriptors")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits(Policy):
    """What a worker and its descendants may use together; None means no limit.

    Above a `warn_` threshold an event warns. Above a `kill_` limit, in `violations` consecutive
    samples, the worker is killed: a death like any other, with the cause `resource_limit`.
    """

    warn_cpu_percent: float | None = setting(None, "Warn above this percentage of one core.", above=0)
    kill_cpu_percent: float | None = setting(
        None, "Kill the worker above this percentage of one core.", above=0
    )
    warn_memory_mb: float | None = setting(None, "Warn above this many megabytes of memory.", above=0)
    kill_memory_mb: float | None = setting(
        None, "Kill the worker above this many megabytes of memory.", above=0
    )
    warn_threads: int | None = setting(None, "Warn above this many threads.", above=0)
    kill_threads: int | None = setting(None, "Kill the worker above this many threads.", above=0)
    warn_descriptors: int | None = setting(None, "Warn above this many open descriptors.", above=0)
    kill_descriptors: int | None = setting(None, "Kill the worker above this many open descriptors.", above=0)
    interval_s: float = seconds(5.0, "Seconds between two samples.", least=SHORTEST_S)
    violations: int = setting(1, "How many consecutive samples above a kill limit kill the worker.", least=1)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Thresholds above their limits."""
        for name in LIMITED:
            if exceeds(self, f"warn_{name}", f"kill_{name}"):
                reason = f"must not exceed kill_{name} ({self.kill(name):g})"
                yield Problem(f"warn_{name}", reason, self.warn(name))

    def warn(self, name: str) -> float | None:
        """The threshold above which an event warns."""
        value: float | None = getattr(self, f"warn_{name}")
        return value

    def kill(self, name: str) -> float | None:
        """The limit above which the worker is killed."""
        value: float | None = getattr(self, f"kill_{name}")
        return value

    @property
    def any(self) -> bool:
        """Whether there is any threshold or limit."""
        return any(self.warn(name) is not None or self.kill(name) is not None for name in LIMITED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecyclePolicy(Policy):
    """When a healthy worker gets a new process; None means never.

    The worker is stopped gracefully, as an operator would stop it, and started again; this is not
    counted as a restart.
    """

    after_jobs: int | None = setting(None, "After this many jobs.", least=1)
    after_s: float | None = seconds(None, "After this many seconds of uptime.", least=SHORTEST_S)
    above_memory_mb: float | None = setting(None, "Above this many megabytes of memory.", above=0)
    jitter: float = setting(
        0.1,
        "The share of after_jobs and after_s, 0 to 1, that may be taken off at random, "
        "so that workers are not recycled all at once.",
        least=0,
        most=1,
    )
    min_healthy: int | None = setting(
        None, "How many other workers of the group must be healthy; none: all that should run.", least=0
    )
    interval_s: float = seconds(5.0, "Seconds between two samples of its memory.", least=SHORTEST_S)
