"""Mistakes in alerts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors.alert_desk import AlertDesk
from rekindle.actors.facts.alert import Severity
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    BreakerClosed,
    StatusChanged,
    StoreRecovered,
    WorkerFailed,
    WorkerReset,
    WorkerUnkillable,
)
from rekindle.actors.rules.alerts import alert_book, alert_rules
from rekindle.actors.rules.alerts.alert_book import AlertStep, Book


def never_resolves_an_alert(patch: pytest.MonkeyPatch) -> None:
    """Lasting health does not end an episode."""
    patch.setattr(alert_rules, "settled", lambda book, _id, _now: AlertStep(book))


def opens_an_alert_for_each_death(patch: pytest.MonkeyPatch) -> None:
    """A crash loop is as many alerts as deaths."""
    patch.setattr(Book, "active", lambda _self, _id, _kind, _queue=None: None)


def opens_no_alert(patch: pytest.MonkeyPatch) -> None:
    """A crash is not told as an alert."""
    patch.setattr(alert_rules, "_died", lambda book, _died, _now, _recent: AlertStep(book))


def _ignores(patch: pytest.MonkeyPatch, *kinds: type) -> None:
    """Have the book ignore events of these kinds."""
    right = alert_rules.heard

    def heard(book: Book, event: Any, now_wall_ms: int, recent: int = 0) -> AlertStep:
        return AlertStep(book) if isinstance(event, kinds) else right(book, event, now_wall_ms, recent)

    patch.setattr(alert_rules, "heard", heard)


def stays_mild_when_a_worker_is_given_up(patch: pytest.MonkeyPatch) -> None:
    """That a worker is given up is not worse than a crash."""
    _ignores(patch, WorkerFailed)


def keeps_the_alerts_of_a_worker_that_is_reset(patch: pytest.MonkeyPatch) -> None:
    """A reset does not end an episode."""
    _ignores(patch, WorkerReset)


def keeps_the_alert_of_a_closed_breaker(patch: pytest.MonkeyPatch) -> None:
    """An outage that is over is still told."""
    _ignores(patch, BreakerClosed)


def keeps_the_alert_of_a_store_that_is_back(patch: pytest.MonkeyPatch) -> None:
    """So is a database that is available again."""
    _ignores(patch, StoreRecovered)


def opens_no_alert_for_what_survives_a_kill(patch: pytest.MonkeyPatch) -> None:
    """A process that survives SIGKILL is not told as an alert."""
    _ignores(patch, WorkerUnkillable)


def _raises(patch: pytest.MonkeyPatch, wrong: Callable[..., AlertStep]) -> None:
    patch.setattr(alert_rules, "raised", wrong)


def calls_every_crash_critical(patch: pytest.MonkeyPatch) -> None:
    """A first crash that is restarted is as bad as one that is given up."""
    right = alert_book.raised

    def raised(book: Book, id_: Any, kind: Any, _severity: Severity, *rest: Any, **details: Any) -> AlertStep:
        return right(book, id_, kind, Severity.CRITICAL, *rest, **details)

    _raises(patch, raised)


def does_not_count_crashes(patch: pytest.MonkeyPatch) -> None:
    """A crash loop is told as one crash."""
    right = alert_book._repeat

    def repeat(book: Book, known: Any, *rest: Any) -> AlertStep:
        step = right(book, known, *rest)
        change = step.changes[0]
        alert = replace(change.alert, occurrences=known.occurrences)
        return alert_book.changed(book, replace(change, alert=alert))

    patch.setattr(alert_book, "_repeat", repeat)


def forgets_alerts_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A supervisor knows nothing of the alerts that an earlier one opened."""
    right = alert_rules.recalled
    patch.setattr(alert_rules, "recalled", lambda *known: replace(right(*known), alerts={}))


def resolves_with_the_first_healthy_frame(patch: pytest.MonkeyPatch) -> None:
    """Health that does not last ends an episode."""

    def health_changed(self: Any, event: StatusChanged) -> None:
        if event.new is Status.HEALTHY:
            self._apply(alert_rules.settled(self._book, event.component_id, self._now()))

    patch.setattr(AlertDesk, "_health_changed", health_changed)


def takes_a_broken_health_for_a_lasting_one(patch: pytest.MonkeyPatch) -> None:
    """A worker that dies within its time to settle is taken for well when that time is over."""
    patch.setattr(AlertDesk, "_end_settling", lambda _self, _id: None)


def takes_a_pause_for_a_stop(patch: pytest.MonkeyPatch) -> None:
    """The alert of a crash ends with the process that a pause ends."""
    edit(
        patch,
        alert_rules.heard,
        "return _stopped_by_pause(book, id_, now_wall_ms)",
        "return settled(book, id_, now_wall_ms)",
    )


def keeps_the_alerts_of_what_is_stopped(patch: pytest.MonkeyPatch) -> None:
    """A worker that an operator stops is told as crashed all the same."""
    right = "case WorkerStopped(component_id=id_):\n            return settled(book, id_, now_wall_ms)"
    edit(patch, alert_rules.heard, right, right.replace("settled(book, id_, now_wall_ms)", "AlertStep(book)"))


def tells_of_no_overdue_worker(patch: pytest.MonkeyPatch) -> None:
    """That a scheduled worker does not succeed is not told as an alert."""
    edit(patch, alert_rules.heard, "return _overdue(book, event, now_wall_ms)", "return AlertStep(book)")


def takes_an_end_for_a_success(patch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped, or healthy for long, is not overdue any more."""
    edit(patch, alert_rules.settled, " if each.kind is not AlertKind.OVERDUE", "")


def keeps_the_alert_of_a_task_that_is_done(patch: pytest.MonkeyPatch) -> None:
    """A task that has crashed is told as crashed although it has succeeded."""
    edit(patch, alert_rules._died, "if died.done:", "if False:")


def opens_an_alert_for_what_a_breaker_holds(patch: pytest.MonkeyPatch) -> None:
    """One outage is an alert for each of its workers."""
    edit(patch, alert_rules._died, "if died.action == Action.HELD:", "if False:")


def keeps_the_alerts_about_the_former_supervisor(patch: pytest.MonkeyPatch) -> None:
    """What was wrong with a supervisor is told of the next one."""
    edit(patch, alert_rules.begun, "over = [", "over = [] and [")


def forgets_pauses_at_an_upgrade(patch: pytest.MonkeyPatch) -> None:
    """A supervisor that replaced another one takes the end of a pause's worker for a stop."""
    right = alert_rules.recalled
    patch.setattr(alert_rules, "recalled", lambda alerts, _paused=(): right(alerts))


def keeps_alerts_about_what_was_killed_in_the_end(patch: pytest.MonkeyPatch) -> None:
    """A process that survived SIGKILL for a while keeps its alert without end."""
    right = "if each.kind is not AlertKind.OVERDUE]"
    edit(patch, alert_rules.settled, right, "if each.kind is AlertKind.CRASHED]")


def ends_alerts_of_open_breakers_with_the_supervisor(patch: pytest.MonkeyPatch) -> None:
    """The next supervisor resolves the alert of a breaker that is open."""
    edit(patch, alert_rules.begun, "and each.breaker not in open_breakers", "")


def keeps_other_alerts_of_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """A worker that has ended well keeps its alerts."""
    edit(patch, alert_rules._died, "if died.done:", "if False:")


def sends_no_alert_again(patch: pytest.MonkeyPatch) -> None:
    """An alert that lasts is never escalated."""
    edit(patch, AlertDesk._watch, "or alert.escalated", "or True")
