"""Pure: the period of a schedule, read from its text."""

from __future__ import annotations

from ....spec.policies.schedule import SchedulePolicy

_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000}


def period_ms(policy: SchedulePolicy) -> int | None:
    """How often a schedule by `every` in one unit is due; None for other schedules."""
    number, unit = policy.every[:-1], policy.every[-1:]
    return int(number) * _UNITS[unit] if number.isdecimal() and unit in _UNITS else None
