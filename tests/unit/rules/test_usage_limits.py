"""What one look at a worker means; the numbers are those of RL-02 to RL-06."""

from __future__ import annotations

import pytest

from rekindle.actors import ResourceLimits, SpecError
from rekindle.actors.facts.usage import Resource, Usage
from rekindle.actors.rules.usage_limits import (
    Eased,
    Look,
    UsageWatch,
    Violated,
    Warned,
    assess,
    worth_noting,
)


def cpu(percent: float | None) -> Usage:
    return Usage(memory_mb=10, cpu_percent=percent)


def looks(limits: ResourceLimits, *usages: Usage) -> list[Look]:
    """What each look shows, one after the other."""
    watch, found = UsageWatch(), []
    for usage in usages:
        look = assess(limits, watch, usage)
        watch = look.watch
        found.append(look)
    return found


def fatal(look: Look) -> bool:
    return any(isinstance(finding, Violated) and finding.fatal for finding in look.findings)


def test_rl_02_twice_above_the_limit_is_fatal_at_the_second_look_and_only_once() -> None:
    limits = ResourceLimits(kill_cpu_percent=30, violations=2)
    found = looks(limits, cpu(80), cpu(80), cpu(80))
    assert [fatal(look) for look in found] == [False, True, False]
    assert found[2].findings == ()


def test_rl_03_a_sample_below_the_limit_resets_the_row() -> None:
    limits = ResourceLimits(kill_cpu_percent=50, violations=3)
    found = looks(limits, cpu(60), cpu(70), cpu(40), cpu(65))
    assert not any(fatal(look) for look in found)
    assert found[-1].watch.violations == 3


def test_rl_04_memory_above_its_limit_twice_is_fatal() -> None:
    limits = ResourceLimits(kill_memory_mb=100, violations=2)
    found = looks(limits, Usage(memory_mb=500), Usage(memory_mb=500))
    assert [fatal(look) for look in found] == [False, True]


@pytest.mark.parametrize("resource", Resource)
def test_rl_05_exactly_at_the_limit_is_not_a_violation(resource: Resource) -> None:
    limits = ResourceLimits(**{f"kill_{resource.value}": 50, f"warn_{resource.value}": 50})
    at = Usage(memory_mb=50, cpu_percent=50.0, threads=50, descriptors=50)
    above = Usage(memory_mb=51, cpu_percent=51.0, threads=51, descriptors=51)
    assert assess(limits, UsageWatch(), at).findings == ()
    assert [type(found) for found in assess(limits, UsageWatch(), above).findings] == [Warned, Violated]


def test_rl_06_the_peak_is_the_most_that_was_seen_of_each() -> None:
    found = looks(ResourceLimits(), cpu(50), Usage(memory_mb=9, cpu_percent=80, threads=7), cpu(30))
    assert found[-1].watch.peak == Usage(memory_mb=10, cpu_percent=80, threads=7)


def test_a_warning_comes_once_and_is_taken_back_once() -> None:
    limits = ResourceLimits(warn_memory_mb=100)
    sizes = (50, 150, 160, 90, 80, 120)
    found = looks(limits, *(Usage(memory_mb=size) for size in sizes))
    kinds = [[type(finding) for finding in look.findings] for look in found]
    assert kinds == [[], [Warned], [], [Eased], [], [Warned]]


def test_the_rows_of_two_resources_are_counted_apart() -> None:
    limits = ResourceLimits(kill_cpu_percent=50, kill_memory_mb=100, violations=2)
    found = looks(limits, cpu(60), Usage(memory_mb=500, cpu_percent=1), cpu(60))
    assert not any(fatal(look) for look in found)


def test_an_unknown_value_is_not_a_violation() -> None:
    limits = ResourceLimits(kill_cpu_percent=1, kill_descriptors=1)
    assert assess(limits, UsageWatch(), Usage(memory_mb=1)).findings == ()


def test_a_warning_above_its_kill_is_refused() -> None:
    with pytest.raises(SpecError, match=r"warn_memory_mb = 200: must not exceed kill_memory_mb \(100\)"):
        ResourceLimits(warn_memory_mb=200, kill_memory_mb=100)


@pytest.mark.parametrize(
    ("before", "passed_s", "now", "worth"),
    [
        (None, 0.0, 10.0, True),
        (100.0, 59.0, 109.0, False),
        (100.0, 60.0, 100.0, True),
        (100.0, 1.0, 111.0, True),
        (100.0, 1.0, 89.0, True),
        (2.0, 1.0, 2.9, False),
        (2.0, 1.0, 3.1, True),
    ],
)
def test_what_is_used_is_noted_once_a_minute_and_when_memory_changes_by_a_tenth(
    before: float | None, passed_s: float, now: float, worth: bool
) -> None:
    noted = None if before is None else Usage(memory_mb=before)
    assert worth_noting(noted, passed_s, Usage(memory_mb=now)) is worth
