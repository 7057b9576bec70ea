"""What a host declares about a periodic job: a job that is put into a queue by the clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

from ....errors import PayloadError, Problem
from ...calendar import Calendar, Cron, Every, cron_problem, duration_ms, duration_problem, timezone_problem
from ...job_payload import payload_text
from ...validation import Policy, check, nearest, refuse, setting
from ..job_policy import QUEUE_NAME
from ..schedule import Missed


@dataclass(frozen=True, slots=True)
class Periodic(Policy):
    """A job that is enqueued at an interval or by a cron line, exactly once for each due time."""

    name: str
    _: KW_ONLY
    queue: str = setting("", "The queue that the jobs are put into.")
    payload: object = setting(None, "The payload of each job; anything that JSON can represent.")
    every: str = setting(
        "",
        "Enqueue at this interval, such as 90s, 15m or 1h30m, counted from 1 January 1970, UTC.",
    )
    cron: str = setting(
        "", "Enqueue at these times: minute, hour, day of month, month, day of week; or @daily, @hourly …"
    )
    timezone: str = setting("UTC", "The time zone of the cron line, such as Europe/Berlin; default UTC.")
    missed: Missed = setting(
        Missed.RUN_ONCE,
        "After due times were missed, because no supervisor ran: run_once enqueues one job for all of them "
        "as soon as possible, skip enqueues none.",
    )

    def __post_init__(self) -> None:
        check(self, f"periodic job {self.name!s:.64}")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name, queue or payload that is not valid; not one of `every` and `cron`, or no date."""
        for field in ("name", "queue"):
            value = getattr(self, field)
            if field not in wrong and not QUEUE_NAME.fullmatch(value):
                yield Problem(field, f"must be a name that matches {QUEUE_NAME.pattern}", value)
        yield from self._calendar_problems(wrong)
        try:
            payload_text(self.payload)
        except PayloadError as error:
            yield Problem("payload", str(error).removeprefix("the payload "))

    def _calendar_problems(self, wrong: Collection[str]) -> Iterator[Problem]:
        if self.every and self.cron and not wrong:
            yield Problem("cron", "must not be set beside every: a periodic job has one schedule", self.cron)
        if not self.every and not self.cron and not {"every", "cron"} & set(wrong):
            yield Problem("every", "is missing: a periodic job needs every or cron")
        texts = (("every", duration_problem), ("cron", cron_problem), ("timezone", timezone_problem))
        for name, problem in texts:
            text = getattr(self, name)
            if name not in wrong and (text or name == "timezone") and (reason := problem(text)):
                yield Problem(name, reason, text)

    @property
    def calendar(self) -> Calendar:
        """When it is due."""
        return Cron(self.cron, self.timezone) if self.cron else Every(duration_ms(self.every) or 1000)


def distinct_periodic(jobs: Iterable[Periodic], served: Collection[str]) -> tuple[Periodic, ...]:
    """The periodic jobs, if each has a name of its own and a queue that a worker serves.

    Raises:
        SpecError: one has not.
    """
    known: dict[str, Periodic] = {}
    for job in jobs:
        owner = f"periodic job {job.name}"
        if job.name in known:
            refuse(owner, [Problem("name", "names two periodic jobs", job.name)], kind="policy")
        if job.queue not in served:
            refuse(owner, [Problem("queue", unserved(job.queue, served), job.queue)], kind="policy")
        known[job.name] = job
    return tuple(known.values())


def unserved(queue: str, served: Collection[str]) -> str:
    """Why jobs of a queue would never be taken."""
    return "is a queue that no worker serves" + (
        nearest(queue, served) or f"; served: {', '.join(served) or 'none'}"
    )
