"""Pure: the words of deaths and of the decisions on them."""

from __future__ import annotations

from rekindle.worker.plain_text import span

from ...deaths.death import Action, Cause, Death, Exit
from ...deaths.findings import Confidence, Finding
from ...facts.records import DeathRecord
from ...messages import Budget, WorkerDied
from .numbers_in_words import ordinal
from .sentence import Level, Sentence

_SAYS_MORE = frozenset(
    {Finding.EXCEPTION, Finding.SEGMENTATION_FAULT, Finding.OUT_OF_MEMORY, Finding.OUT_OF_MEMORY_SUSPECTED}
)
"""Findings that say more than the exit code or the signal does."""


CALM_RESTARTS = 3
"""From the next restart in a row on, a death is an error in the log."""


def death_sentences(event: WorkerDied) -> tuple[Sentence, Sentence]:
    """What happened, and what was decided."""
    lasted = span(event.death.uptime_ms)
    job = "" if event.death.job is None else f" in job {event.death.job}"
    how = _how(event.death, event.finding, event.confidence)
    if event.last_error:
        how = f"{how}: {event.last_error}"
    if event.is_finished:
        return Sentence("death", f"finished after {lasted}: {how}"), Sentence("decision", _decision(event))
    is_given_up = event.action == Action.MARK_FAILED
    decision = Sentence("failed" if is_given_up else "decision", _decision(event))
    # It does not recover by restarts alone: a person should look before it is given up.
    keeps_dying = event.action == Action.RESTART and event.streak_count > CALM_RESTARTS
    level = Level.ERROR if keeps_dying else Level.WARNING
    if event.death.cause is Cause.SPAWN_FAILED and event.death.detail:
        return Sentence("death", f"could not start: {event.death.detail}", level), decision
    if event.death.cause is Cause.SUPERVISOR_LOST:  # the time is that of the supervisor's last record
        lost = f"ended with its supervisor, which was killed; it had run for at least {lasted}"
        return Sentence("death", lost, level), Sentence("decision", "not counted")
    early = "" if event.death.was_ready else ", before it was ready"
    return Sentence("death", f"died after {lasted}{job}{early}: {how}", level), decision


def recorded_death_sentences(death: DeathRecord) -> tuple[Sentence, Sentence]:
    """What the history says of a death whose event has been deleted."""
    gone = Death(
        component_id=death.component_id,
        generation=death.generation,
        cause=death.cause,
        exit=Exit(death.exit_code, death.signal),
        uptime_ms=death.uptime_ms,
        job=death.job,
    )
    return death_sentences(WorkerDied(gone, death.action, death.reason, death.delay_ms / 1000, 0))


def _how(death: Death, finding: Finding | None, confidence: Confidence | None) -> str:
    how = str(death.exit)
    if death.cause not in (Cause.EXITED, Cause.SIGNALLED, Cause.UNKNOWN):
        is_known = death.exit != Exit()
        return f"{death}, {how}" if is_known else str(death)
    if finding is not None and finding in _SAYS_MORE:
        sure = "" if confidence is Confidence.CERTAIN else f", {confidence}"
        return f"{how} ({finding.replace('_', ' ')}{sure})"
    return how


def _decision(event: WorkerDied) -> str:
    """What was decided and why: `restart in 16 s: 5th in a row, 4 of 5 in 5 min, 11 of 20 in total`."""
    match event.action:
        case Action.RESTART:
            when = f"in {span(event.delay_s * 1000)}" if event.delay_s else "at once"
            return f"restart {when}: {', '.join(_counters(event)) or event.reason}"
        case Action.RESTART_UNCOUNTED:
            when = f"in {span(event.delay_s * 1000)}" if event.delay_s else "at once"
            return f"restart {when}, not counted: {event.reason}"
        case Action.MARK_FAILED:
            return "; ".join([f"was given up: {_own_reason(event.reason)}", *_used(event.budget)])
        case Action.NOTIFY_ONLY:
            return "; ".join([f"not restarted: {_own_reason(event.reason)}", *_used(event.budget)])
        case _:
            return event.reason


def _own_reason(reason: str) -> str:
    """Without the death that the sentence is about."""
    return reason.partition("; last death: ")[0]


def _counters(event: WorkerDied) -> list[str]:
    if not event.streak_count:
        return []
    most = None if event.budget is None else event.budget.max_consecutive
    row = ordinal(event.streak_count) + ("" if most is None else f" of {most}") + " in a row"
    return [row, *(_used(event.budget) or [f"{event.restart_count} in total"])]


def _used(budget: Budget | None) -> list[str]:
    """How much of each limit is used."""
    if budget is None:
        return []
    window, lifetime = budget.max_in_window, budget.max_lifetime
    what = " deaths" if budget.counts_deaths else ""
    in_window = f"{budget.in_window} of {window}{what} in {span(budget.window_s * 1000)}"
    total = f"{budget.lifetime} of {lifetime}" if lifetime is not None else str(budget.lifetime)
    return [f"{total} in total" if window is None else f"{in_window}, {total} in total"]
