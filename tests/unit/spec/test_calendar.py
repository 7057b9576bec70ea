"""When something is due: intervals, cron lines, time zones, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.actors.spec import calendar
from rekindle.actors.spec.calendar import (
    Cron,
    Every,
    cron_problem,
    duration_ms,
    duration_problem,
    duration_words,
    timezone_problem,
)

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
LINES = ("* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15,45 1-4 * * *", "@hourly", "0 3 * * MON")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
CHANGES = st.sampled_from([1_774_742_400_000, 1_792_886_400_000, 1_772_938_800_000, 1_793_512_800_000])
"""Hours before changes of the clocks in 2026."""


def at(text: str) -> int:
    """A time in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_an_interval_is_due_at_its_multiples() -> None:
    every = Every(15 * MINUTE)
    assert every.next_after(at("2026-01-01T10:00:00")) == at("2026-01-01T10:15:00")
    assert every.between(at("2026-01-01T10:00:00"), at("2026-01-01T10:14:59")) is None
    found = every.between(at("2026-01-01T10:00:00"), at("2026-01-01T11:00:00"))
    assert found == calendar.Dues(4, at("2026-01-01T10:15:00"), at("2026-01-01T11:00:00"))


@pytest.mark.parametrize("text", ["90s", "15m", "1h30m", "2d", "1w", "1 h 30 m", "15M"])
def test_durations_are_read(text: str) -> None:
    assert duration_problem(text) is None


def test_a_duration_in_words_is_the_same_duration() -> None:
    for milliseconds in (1000, 90_000, 5_400_000, DAY + 1000):
        assert duration_ms(duration_words(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0s", "must be at least 1s"),
        ("0h0m", "must be at least 1s"),
        ("", "must be a duration"),
        ("15", "must be a duration"),
        ("-5m", "must be a duration"),
        ("500ms", "must be a duration"),
        ("9999999w", "is too long"),
        ("9" * 500 + "s", "must be a duration"),
    ],
)
def test_other_durations_are_refused(text: str, reason: str) -> None:
    assert (duration_problem(text) or "").startswith(reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0 0 30 2 *", "has no date: there is no day 30 in month 2"),
        ("0 0 31 4,6 *", "has no date: there is no day 31 in month 4,6"),
        ("61 * * * *", "is not a cron line: bad minute"),
        ("0 0 1 13 *", "is not a cron line: bad month"),
        ("0 3 * *", "has 4 fields"),
        ("0 0 3 * * *", "has 6 fields"),
        ("@dayly", "is not a known nickname; did you mean '@daily'?"),
        ("@reboot", "is not a known nickname; they are @yearly"),
        ("*/0 * * * *", "is not a cron line: bad minute"),
    ],
)
def test_a_line_that_is_never_due_is_refused(line: str, reason: str) -> None:
    assert (cron_problem(line) or "").startswith(reason)


@pytest.mark.parametrize("line", [*LINES, "0 0 29 2 *", "@Daily", "0 9 * * MON-FRI", "0 0 30 2 1"])
def test_cron_lines_are_accepted(line: str) -> None:
    assert cron_problem(line) is None


@pytest.mark.parametrize("name", ["Europe/Berlim", "", "Mars", "../etc/passwd", "/etc/localtime", "a\0b"])
def test_what_is_not_a_time_zone_is_refused(name: str) -> None:
    assert (timezone_problem(name) or "").startswith("is not a time zone")


def test_the_nearest_time_zone_is_suggested() -> None:
    assert "did you mean 'Europe/Berlin'?" in (timezone_problem("Europe/Berlim") or "")


@given(CHANGES, st.integers(0, 2 * DAY), st.sampled_from(LINES), st.sampled_from(ZONES))
@settings(max_examples=150, deadline=None)
def test_due_times_grow_and_none_is_left_out_across_changes_of_the_clocks(
    change: int, later: int, line: str, zone: str
) -> None:
    cron, start = Cron(line, zone), change + later
    dues = [start]
    for _ in range(20):
        dues.append(cron.next_after(dues[-1]))
    assert all(earlier < due for earlier, due in pairwise(dues))
    # Wherever the search begins between two due times, it finds the later one.
    for earlier, due in pairwise(dues):
        assert cron.next_after((earlier + due) // 2) == due
    assert cron.between(start, dues[-1]) == calendar.Dues(20, dues[1], dues[-1])


@given(CHANGES, st.integers(0, 2 * DAY), st.sampled_from(ZONES))
@settings(max_examples=50, deadline=None)
def test_the_last_due_time_is_found_without_counting_them_all(change: int, later: int, zone: str) -> None:
    for line in LINES:
        cron, until = Cron(line, zone), change + later
        counted = cron.between(until - 40 * DAY, until)
        assert counted is not None
        assert cron._latest(until) == counted.last_ms


def test_very_many_due_times_are_not_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendar, "MOST_COUNTED", 10)
    found = Cron("* * * * *").between(at("2026-01-01T00:00:00"), at("2026-02-01T00:00:30"))
    assert found == calendar.Dues(10, at("2026-01-01T00:01:00"), at("2026-02-01T00:00:00"), is_exact=False)
