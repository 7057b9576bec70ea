"""What a worker may use, and when it is renewed before it goes bad; checked when constructed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Problem
from .validation import (
    SHORTEST_S,
    above_zero,
    at_least,
    coerce,
    durations,
    exceeds,
    mistyped,
    refuse,
    shares,
)

LIMITED = ("cpu_percent", "memory_mb", "threads", "descriptors")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """What a worker and everything that it starts may use together; None is no limit.

    Above a `warn_` threshold somebody is told. Above a `kill_` limit, at so many looks in a
    row, the worker is killed: a death like any other, with its cause `resource_limit`.
    """

    warn_cpu_percent: float | None = None
    kill_cpu_percent: float | None = None
    warn_memory_mb: float | None = None
    kill_memory_mb: float | None = None
    warn_threads: int | None = None
    kill_threads: int | None = None
    warn_descriptors: int | None = None
    kill_descriptors: int | None = None
    interval_s: float = 5.0
    """How long it is between two looks."""
    violations: int = 1
    """The kill comes at this many violations in a row."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("limits", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with these limits, field by field."""
        yield from mistyped(self)
        for name in LIMITED:
            yield from above_zero(self, f"warn_{name}", f"kill_{name}")
            if exceeds(self, f"warn_{name}", f"kill_{name}"):
                yield Problem(f"warn_{name}", f"must not exceed kill_{name} ({self.kill(name):g})")
        yield from durations(self, "interval_s", least=SHORTEST_S)
        yield from at_least(1, self, "violations")

    def warn(self, name: str) -> float | None:
        """Above what somebody is told."""
        value: float | None = getattr(self, f"warn_{name}")
        return value

    def kill(self, name: str) -> float | None:
        """Above what the worker is ended."""
        value: float | None = getattr(self, f"kill_{name}")
        return value

    @property
    def any(self) -> bool:
        """Whether there is anything to look for."""
        return any(self.warn(name) is not None or self.kill(name) is not None for name in LIMITED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecyclePolicy:
    """When a worker that is well gets a new process all the same; None is never.

    It is asked to stop, as an operator would ask it, and started again; nothing is counted.
    """

    after_jobs: int | None = None
    after_s: float | None = None
    above_memory_mb: float | None = None
    jitter: float = 0.1
    """The share of `after_jobs` and `after_s` that chance may take off, so that not all go at once."""
    min_healthy: int | None = None
    """How many others of its group must be healthy; None is all that are meant to run."""
    interval_s: float = 5.0
    """How long it is between two looks at its memory."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("recycle", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        yield from mistyped(self)
        yield from at_least(1, self, "after_jobs")
        yield from durations(self, "after_s", "interval_s", least=SHORTEST_S)
        yield from above_zero(self, "above_memory_mb")
        yield from shares(self, "jitter")
        yield from at_least(0, self, "min_healthy")
