"""Pure: the due times of a scheduled worker as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from rekindle.actors.rules.forecast import Forecast, ForecastEnd
from rekindle.actors.spec.policies.schedule import Missed, Overlap, SchedulePolicy

from ..render.status_table import table
from .due_times import Outlook
from .named_forecast import lasting

_OVERLAPS = {
    Overlap.SKIP: "is skipped",
    Overlap.QUEUE: "waits for its end, one at a time; a further one is skipped",
    Overlap.REPLACE: "replaces it",
}


# ── as text ──────────────────────────────────────────────────────────────────────────────


def outlook_lines(seen: Outlook, run: Forecast, width: int | None) -> Iterator[str]:
    """When the worker is due, and what becomes of a run like the one that is simulated."""
    yield f"The schedule is {seen.policy.calendar}. The next runs are due at"
    yield from _due_table(seen, seen.dues_ms, width)
    if seen.change_ms is not None:
        yield ""
        yield _change_words(seen, seen.change_ms)
        yield from _due_table(seen, seen.around_ms, width) if seen.around_ms else ()
    yield ""
    yield from rule_sentences(seen.policy)
    yield run_sentence(seen, run)


def _due_table(seen: Outlook, dues: tuple[int, ...], width: int | None) -> list[str]:
    rows = [(_local(due, seen.zone), _utc(due)) for due in dues]
    return ["  " + line for line in table(("LOCAL", "UTC"), rows, width=None if width is None else width - 2)]


def _change_words(seen: Outlook, change_ms: int) -> str:
    before, then = (_local(at, seen.zone)[4:] for at in (change_ms - 1000, change_ms))
    zone = seen.policy.timezone
    text = f"The clocks of {zone} change after {before}, to {then}."
    return f"{text} The runs around it:" if seen.around_ms else f"{text} No run is due within a day of it."


def _local(wall_ms: int, zone: tzinfo) -> str:
    at = datetime.fromtimestamp(wall_ms // 1000, zone)
    return f"{at:%a} {at.isoformat(' ')}"


def _utc(wall_ms: int) -> str:
    return f"{datetime.fromtimestamp(wall_ms // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def rule_sentences(policy: SchedulePolicy) -> Iterator[str]:
    """What the settings beside the calendar mean."""
    yield f"A run that is due while another is running {_OVERLAPS[policy.overlap]}."
    made_up = "one run makes up for them" if policy.missed is Missed.RUN_ONCE else "they are left out"
    yield f"After runs were missed, {made_up}."
    if policy.jitter_s:
        yield f"Each run starts up to {lasting(round(policy.jitter_s * 1000))} late."
    if policy.timeout_s is not None:
        limit = lasting(round(policy.timeout_s * 1000))
        yield f"A run that takes longer than {limit} is ended and has failed."


def run_sentence(seen: Outlook, run: Forecast) -> str:
    """What becomes of a run that goes as simulated, and of the runs that are due meanwhile."""
    last = run.lives[-1].decision if run.lives else None
    at = lasting(run.at_ms)
    if last is not None and last.done:
        text = f"A run as simulated below succeeds after {at}"
    elif run.verdict in (ForecastEnd.GIVEN_UP, ForecastEnd.LEFT_DOWN):
        text = f"A run as simulated below has failed after {at}; the next one begins with the whole budget"
    elif seen.policy.timeout_s is not None and run.at_ms >= round(seen.policy.timeout_s * 1000):
        text = f"A run as simulated below is ended after {at} and has failed: timeout_s"
    elif run.verdict is ForecastEnd.LIVES_ON:
        text = f"A run as simulated below runs on after {at}"
    else:
        text = f"A run as simulated below is not over after {at}"
    meanwhile = sum(due - seen.dues_ms[0] < run.at_ms for due in seen.dues_ms[1:])
    least = "at least " if meanwhile == len(seen.dues_ms) - 1 else ""
    return f"{text}; runs that are due meanwhile: {least}{meanwhile}." if meanwhile else f"{text}."


# ── as JSON ──────────────────────────────────────────────────────────────────────────────


def outlook_document(seen: Outlook, run: Forecast) -> dict[str, Any]:
    """The same for scripts."""
    policy = seen.policy
    return {
        "plan": str(policy.calendar),
        "timezone": policy.timezone,
        "overlap": policy.overlap.value,
        "missed": policy.missed.value,
        "timeout_s": policy.timeout_s,
        "jitter_s": policy.jitter_s,
        "next": [_due_document(due, seen.zone) for due in seen.dues_ms],
        "clock_change": None if seen.change_ms is None else _due_document(seen.change_ms, seen.zone),
        "around_clock_change": [_due_document(due, seen.zone) for due in seen.around_ms],
        "text": run_sentence(seen, run),
    }


def _due_document(wall_ms: int, zone: tzinfo) -> dict[str, Any]:
    local = datetime.fromtimestamp(wall_ms // 1000, zone).isoformat()
    return {"wall_ms": wall_ms, "local": local, "utc": _utc(wall_ms).replace(" ", "T")}
