"""What a host declares about tasks: workers whose process is meant to end, once or by the clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ...errors import Problem
from ..calendar import Calendar, Cron, Every, cron_problem, duration_ms, duration_problem, timezone_problem
from ..validation import SHORTEST_S, Policy, seconds, setting


class WorkerKind(StrEnum):
    """Whether the process of a worker is meant to run on or to end."""

    SERVICE = "service"
    ONCE = "once"
    SCHEDULED = "scheduled"


class Overlap(StrEnum):
    """What becomes of a run that is due while the one before it is still running."""

    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


class Missed(StrEnum):
    """What becomes of runs that were due while they could not be executed."""

    RUN_ONCE = "run_once"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePolicy(Policy):
    """When a worker runs by the clock. Each run is a task: it has succeeded when it exits with 0."""

    every: str = setting(
        "", "Run at this interval, such as 90s, 15m or 1h30m, counted from midnight UTC on 1 January 1970."
    )
    cron: str = setting(
        "", "Run at these times: minute, hour, day of month, month, day of week; or @daily, @hourly …"
    )
    timezone: str = setting("UTC", "The time zone of the cron line, such as Europe/Berlin; default UTC.")
    overlap: Overlap = setting(
        Overlap.SKIP,
        "If a run is due while another is running: skip it, queue one until the other has ended, or replace "
        "the other.",
    )
    missed: Missed = setting(
        Missed.RUN_ONCE,
        "After runs were missed, because the supervisor was down or the worker paused: run_once as soon as "
        "possible, or skip them.",
    )
    timeout_s: float | None = seconds(
        None, "A run that takes longer, restarts included, is ended and has failed.", least=SHORTEST_S
    )
    jitter_s: float = seconds(0.0, "Each run starts up to this many seconds late, by chance.")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Not one of `every` and `cron`, or a value that no clock ever shows."""
        if self.every and self.cron and not wrong:
            yield Problem("cron", "must not be set beside every: a worker has one schedule", self.cron)
        if not self.every and not self.cron and not {"every", "cron"} & set(wrong):
            yield Problem("every", "is missing: a schedule needs every or cron")
        texts = (("every", duration_problem), ("cron", cron_problem), ("timezone", timezone_problem))
        for name, problem in texts:
            text = getattr(self, name)
            if name not in wrong and (text or name == "timezone") and (reason := problem(text)):
                yield Problem(name, reason, text)

        period = duration_ms(self.every) if "every" not in wrong else None
        if period and "jitter_s" not in wrong and self.jitter_s * 1000 >= period:
            yield Problem("jitter_s", f"must be less than every ({self.every})", self.jitter_s)

    @property
    def calendar(self) -> Calendar:
        """When the worker is due."""
        if self.cron:
            return Cron(self.cron, self.timezone)
        return Every(duration_ms(self.every) or 1000)
