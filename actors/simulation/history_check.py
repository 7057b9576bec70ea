"""Pure: checks a history against all rules: the invariants, and the promises of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..spec.worker_spec import WorkerSpec
from .reference.alerts.alert_ends import AlertEnds
from .reference.alerts.expected_alerts import ExpectedAlerts
from .reference.announcements import Announcements, Publications
from .reference.decisions import Decisions
from .reference.durability import Durability
from .reference.expected_breakers import ExpectedBreakers
from .reference.expected_groups import ExpectedGroups
from .reference.expected_rollouts import ExpectedRollouts
from .reference.group_budgets import GroupBudgets
from .reference.health.expected_health import ExpectedHealth
from .reference.health.expected_readiness import Readiness
from .reference.health.keep_alives import KeepAlives
from .reference.health.liveness import Liveness
from .reference.idle_workers import IdleWorkers
from .reference.jobs.expected_jobs import ExpectedJobs
from .reference.promise import Deadlines, Promise
from .reference.recycles import Recycles
from .reference.schedules.expected_catch_ups import CatchUps
from .reference.schedules.expected_runs import Runs
from .reference.schedules.expected_schedules import ExpectedSchedules
from .reference.starts import ExpectedStarts, Pacing
from .reference.stops import ExpectedOrder, Stops
from .scenarios.history import (
    Announced,
    AnyEntry,
    Asked,
    ConditionMet,
    Counted,
    Decided,
    Ended,
    EventPublished,
    FinalReport,
    Heard,
    HostResumed,
    Spawned,
    SpawnRefused,
    StreakEnded,
    SupervisorStarted,
    TimerDropped,
    TimerFired,
    TimerSet,
)
from .scenarios.invariants import FOR_SCHEDULED, RULES, Rule, Slack, Violation
from .scenarios.known_state import Facts

PROMISES: tuple[type[Promise], ...] = (
    AlertEnds,
    ExpectedAlerts,
    Announcements,
    ExpectedBreakers,
    CatchUps,
    Decisions,
    Durability,
    GroupBudgets,
    ExpectedGroups,
    ExpectedHealth,
    IdleWorkers,
    ExpectedJobs,
    KeepAlives,
    Liveness,
    ExpectedOrder,
    Pacing,
    Publications,
    Readiness,
    Recycles,
    ExpectedRollouts,
    Runs,
    ExpectedSchedules,
    ExpectedStarts,
    Stops,
)
"""What is checked against a specification of its own, in virtual time."""

BY_CLOCK = frozenset({AlertEnds.rule, CatchUps.rule, Decisions.rule, Runs.rule, ExpectedSchedules.rule})
"""The promises about workers that run by the clock; the others are about workers that always run."""

_OF_WORKERS = frozenset(
    {
        *(Announced, Asked, ConditionMet, Counted, Decided, Ended, EventPublished, Heard, FinalReport),
        *(Spawned, SpawnRefused, StreakEnded, TimerDropped, TimerFired, TimerSet),
    }
)
"""What happens to one worker."""

Hearer = Callable[[Any], Iterator[str] | None]


class HistoryCheck:
    """Checks entries against the rules as they are added."""

    def __init__(
        self,
        specs: Iterable[WorkerSpec],
        slack: Slack = Slack(),  # noqa: B008  # immutable
        *,
        most_starts: int | None = None,
    ) -> None:
        """Begin with an empty history.

        Args:
            specs: the workers.
            slack: how exactly times are known.
            most_starts: how many workers may start at the same time; None: all of them.
        """
        self.facts = Facts(specs)
        self.facts.most_starts = most_starts
        self.violations: list[Violation] = []
        self._slack = slack
        self._seen = 0
        self._deadlines = Deadlines(self.facts)
        self._hearers: dict[type, list[tuple[str, Hearer]]] = {}
        if slack.is_exact:
            self._add_promises()

    def _add_promises(self) -> None:
        for each in PROMISES:
            for kind, hearer in each(self.facts, self._deadlines).hears().items():
                self._hearers.setdefault(kind, []).append((each.rule, hearer))

    def take(self, entry: AnyEntry) -> None:
        """Check the next entry, then follow it."""
        kind, facts, slack, deadlines = type(entry), self.facts, self._slack, self._deadlines
        if kind is HostResumed:
            deadlines.slept_until(entry.at)
        if kind is SupervisorStarted:
            deadlines.forget_all()
        elif entry.at > deadlines.soonest and facts.is_up:
            for name, what in deadlines.passed(entry.at):
                self.violations.append(Violation(name, entry.at, what, self._seen))
        worker = getattr(entry, "worker", None)
        is_spare = kind in _OF_WORKERS and worker is not None and worker not in facts.workers
        if is_spare:
            self._take_of_spare(entry)
            return
        by_clock = worker in facts.scheduled
        for name, rule in _BY_ENTRY.get(kind, ()):
            if by_clock and name not in FOR_SCHEDULED:
                continue
            for what in rule(facts, entry, slack):
                self.violations.append(Violation(name, entry.at, what, self._seen))
        for name, hearer in self._hearers.get(kind, ()):
            if by_clock and name not in BY_CLOCK:
                continue
            for what in hearer(entry) or ():
                self.violations.append(Violation(name, entry.at, what, self._seen))
        facts.take(entry)
        self._seen += 1

    def _take_of_spare(self, entry: AnyEntry) -> None:
        """A worker that exists for the time of a rollout only is of no concern to the other rules."""
        for name, hearer in self._hearers.get(type(entry), ()):
            if name in (ExpectedRollouts.rule, Publications.rule):
                for what in hearer(entry) or ():
                    self.violations.append(Violation(name, entry.at, what, self._seen))
        if isinstance(entry, Announced | EventPublished):
            self.facts.take(entry)
        self._seen += 1


_BY_ENTRY: dict[type, tuple[tuple[str, Rule], ...]] = {
    kind: tuple((name, rule) for name, (kinds, rule) in RULES.items() if kind in kinds)
    for kind in {kind for kinds, _ in RULES.values() for kind in kinds}
}


def violations(
    entries: Iterable[AnyEntry],
    specs: Iterable[WorkerSpec],
    slack: Slack = Slack(),  # noqa: B008
) -> tuple[Violation, ...]:
    """The violations in a history."""
    check = HistoryCheck(specs, slack)
    for entry in entries:
        check.take(entry)
    return tuple(check.violations)
