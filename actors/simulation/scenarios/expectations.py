"""Pure: what a scenario expects of its run, and whether its history meets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...deaths.death import Cause
from .history import (
    AnyEntry,
    Counted,
    Decided,
    EventPublished,
    FinalReport,
    Ordered,
    Spawned,
    SpawnRefused,
    SupervisorEnded,
)

STATUSES = ("pending", "healthy", "unhealthy", "recovering", "dead", "failed")
"""The words of the monitor."""
SHOWN = ("starting", "stopping", "stopped", "crashed")
"""The further words that `rekindle status` shows; a worker that ended well is stopped."""

EVENTS = (
    "started", "healthy", "unhealthy", "recovering", "dead", "died", "failed", "stopped",
    "unkillable", "actor_replaced", "store_degraded", "store_recovered",
    "breaker_opened", "canary_started", "breaker_closed",
)  # fmt: skip
"""What `events_in_order` may name."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much a real machine may deviate; nothing in virtual time."""

    late_s: float = 0.0
    """Seconds of the scenario that may be added to a deadline."""
    delay_s: float = 0.0005
    """How exactly a decided delay is known."""


@dataclass(frozen=True, slots=True)
class Reaches:
    """The worker has this status at some time from `after_s` to `by_s`, whenever it took it."""

    worker: str
    status: str
    by_s: float
    after_s: float = 0.0

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if it does."""
        last = self.by_s + tolerance.late_s
        changes = list(statuses(history, self.worker))
        ends = [at for at, _ in changes[1:]]
        for (began, words), ended in zip(changes, [*ends, float("inf")], strict=False):
            if self.status in words and began <= last and (ended > self.after_s or began >= self.after_s):
                return None
        was = ", ".join(f"{words[-1]} at {at:g}" for at, words in changes) or "nothing"
        between = f"from {self.after_s:g} " if self.after_s else ""
        return f"{self.worker} is not {self.status} {between}by {self.by_s:g} s; it was {was}"


@dataclass(frozen=True, slots=True)
class Reasons:
    """The decisions on the worker's first deaths have these reasons; each is a part of the sentence."""

    worker: str
    reasons: tuple[str, ...]

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if they have."""
        decided = [each for each in history if isinstance(each, Decided) and each.worker == self.worker]
        for number, wanted in enumerate(self.reasons):
            found = decided[number].reason if number < len(decided) else "it never happened"
            if wanted not in found:
                return f"{self.worker}: the reason of death {number + 1} is not {wanted!r} but {found!r}"
        return None


@dataclass(frozen=True, slots=True)
class ExpectedCounts:
    """At the end the worker has these counters; None is not checked."""

    worker: str
    restarts: int | None = None
    streak: int | None = None
    deaths: int | None = None

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if it has."""
        counted = [each for each in history if isinstance(each, Counted) and each.worker == self.worker]
        last = counted[-1] if counted else Counted(0.0, self.worker, 0, 0, False)
        decided = [each for each in history if isinstance(each, Decided) and each.worker == self.worker]
        deaths = sum(1 for each in decided if each.cause != Cause.SUPERVISOR_LOST)
        for name, wanted, found in (
            ("restarts", self.restarts, last.restart_count),
            ("streak", self.streak, last.streak_count),
            ("deaths", self.deaths, deaths),
        ):
            if wanted is not None and wanted != found:
                return f"{self.worker} has {found} {name}, not {wanted}"
        return None


@dataclass(frozen=True, slots=True)
class Starts:
    """The number of starts of the worker, refused ones included."""

    worker: str
    least: int = 0
    most: int | None = None

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if they were."""
        number = len(starts_of(history, self.worker))
        if self.least <= number and (self.most is None or number <= self.most):
            return None
        wanted = str(self.least) if self.least == self.most else f"{self.least} to {self.most or 'any'}"
        return f"{self.worker} was started {number} times, not {wanted}"


@dataclass(frozen=True, slots=True)
class Delays:
    """The first restarts of the worker were decided with exactly these delays, and waited for them."""

    worker: str
    seconds: tuple[float, ...]

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if they were."""
        decided = [
            each.delay_ms / 1000
            for each in history
            if isinstance(each, Decided) and each.worker == self.worker and each.action.startswith("restart")
        ][: len(self.seconds)]
        exact = len(decided) == len(self.seconds) and all(
            abs(found - wanted) <= tolerance.delay_s
            for found, wanted in zip(decided, self.seconds, strict=True)
        )
        if not exact:
            return f"{self.worker} was delayed by {_listed(decided)} s, not {_listed(self.seconds)} s"
        return self._too_early(history, tolerance)

    def _too_early(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why a start came too early; None if none did."""
        decided: Decided | None = None
        for entry in history:
            if isinstance(entry, Decided) and entry.worker == self.worker:
                decided = entry
            elif isinstance(entry, Ordered):
                decided = None  # an operator may start it at once
            elif isinstance(entry, Spawned | SpawnRefused) and entry.worker == self.worker and decided:
                if entry.at < decided.at + decided.delay_ms / 1000 - tolerance.late_s - 0.001:
                    return f"{self.worker} was started at {entry.at:g}, before its delay was over"
                decided = None
        return None


@dataclass(frozen=True, slots=True)
class EventsInOrder:
    """These events of the worker were published in this order; other events may come between them."""

    worker: str
    events: tuple[str, ...]

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if they were."""
        published = [
            word
            for entry in history
            if isinstance(entry, EventPublished)
            for word in _words(entry, self.worker)
        ]
        rest = iter(published)
        for wanted in self.events:
            if wanted not in rest:
                return f"{self.worker} has no event {wanted!r} there; its events are {', '.join(published)}"
        return None


@dataclass(frozen=True, slots=True)
class NothingStartsAfter:
    """No process of the worker starts after it failed, until an operator resets it."""

    worker: str
    status: str = "failed"

    def unmet(self, history: Sequence[AnyEntry], tolerance: Tolerance) -> str | None:
        """Why not; None if none does."""
        since: float | None = None
        seen = False
        for entry in history:
            match entry:
                case Decided(worker=self.worker, action="mark_failed", at=at):
                    since, seen = at, True
                case Ordered(order="reset" | "restart", worker=self.worker):
                    since = None
                case Spawned(worker=self.worker, at=at) | SpawnRefused(worker=self.worker, at=at):
                    if since is not None and at > since + tolerance.late_s:
                        return f"{self.worker} was started at {at:g} although it had failed at {since:g}"
                case _:
                    pass
        return None if seen else f"{self.worker} never failed"


Expectation = Reaches | Reasons | ExpectedCounts | Starts | Delays | EventsInOrder | NothingStartsAfter


def reaches(worker: str, status: str, by: float, *, after: float = 0.0) -> Reaches:
    """The worker has this status by then."""
    return Reaches(worker, status, by, after)


def reasons(worker: str, *parts: str) -> Reasons:
    """The decisions on the worker's first deaths have these reasons."""
    return Reasons(worker, parts)


def counts(
    worker: str, *, restarts: int | None = None, streak: int | None = None, deaths: int | None = None
) -> ExpectedCounts:
    """At the end the worker has these counters."""
    return ExpectedCounts(worker, restarts, streak, deaths)


def starts(worker: str, exactly: int | None = None, *, least: int = 0, most: int | None = None) -> Starts:
    """The worker was started this often."""
    return Starts(worker, least, most) if exactly is None else Starts(worker, exactly, exactly)


def delays(worker: str, *seconds: float) -> Delays:
    """The worker's first restarts had exactly these delays."""
    return Delays(worker, seconds)


def events_in_order(worker: str, *events: str) -> EventsInOrder:
    """These events of the worker were published in this order."""
    return EventsInOrder(worker, events)


def nothing_starts_after_failed(worker: str) -> NothingStartsAfter:
    """The worker fails, and no process of it starts after that."""
    return NothingStartsAfter(worker)


def unmet(
    expectations: Sequence[Expectation], history: Sequence[AnyEntry], tolerance: Tolerance
) -> tuple[str, ...]:
    """The unmet expectations, as sentences."""
    return tuple(why for each in expectations if (why := each.unmet(history, tolerance)) is not None)


def statuses(history: Sequence[AnyEntry], worker: str) -> Iterator[tuple[float, tuple[str, ...]]]:
    """When the worker's status changed, and to what: the monitor's word and the shown one.

    The status that is reported at the end counts too.
    """
    ended_well = False
    for entry in history:
        match entry:
            case Decided(worker=id_) if id_ == worker:
                ended_well = entry.action == "none" and entry.cause == "exited" and entry.code == 0
            case EventPublished(worker=id_, at=at, new=str(new), event="status_changed") if id_ == worker:
                yield at, _both(new, ended_well)
            case SupervisorEnded(at=at):
                yield at, ("without a supervisor",)
            case EventPublished(worker=id_, at=at, event="worker_stopping") if id_ == worker:
                yield at, ("stopping",)
            case EventPublished(worker=id_, at=at, event="worker_stopped") if id_ == worker:
                yield at, ("stopped",)
            case FinalReport(worker=id_, at=at, shown=shown, status=status) if id_ == worker:
                yield at, (shown,) if status is None else (status, shown)
            case _:
                pass


def _both(status: str, ended_well: bool) -> tuple[str, ...]:
    """A word of the monitor, and the one that is shown for it."""
    match status:
        case "pending":
            return status, "starting"
        case "dead":
            return status, "stopped" if ended_well else "crashed"
        case _:
            return (status,)


def starts_of(history: Sequence[AnyEntry], worker: str) -> list[float]:
    """When processes of the worker were started, or refused."""
    return [each.at for each in history if isinstance(each, Spawned | SpawnRefused) and each.worker == worker]


def _words(published: EventPublished, worker: str) -> tuple[str, ...]:
    if published.worker not in (worker, None):
        return ()
    if published.event == "status_changed":
        return (published.new or "",)
    return (published.event.removeprefix("worker_"),)


def _listed(seconds: Sequence[float]) -> str:
    return ", ".join(f"{each:g}" for each in seconds) or "nothing"
