"""Pure: compares what a worker uses with its limits, sample by sample.

A limit is exceeded above it, never at it. A worker is killed after a number of consecutive samples
over a limit; a warning is given once when its threshold is passed, and withdrawn once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ..facts.usage import Resource, Usage, amount
from ..spec.policies.resource_limits import ResourceLimits

# ── What a sample shows ──────────────────────────────────────────────────────────────────


class Excess(msgspec.Struct, frozen=True):
    """A limit, and what was used."""

    resource: Resource
    used: float
    limit: float

    def __str__(self) -> str:
        return f"{amount(self.resource, self.used)}, the limit is {amount(self.resource, self.limit)}"


class Warned(msgspec.Struct, frozen=True):
    """A warning threshold was exceeded."""

    excess: Excess


class Eased(msgspec.Struct, frozen=True):
    """Usage is below the warning threshold again, or below the limit if there is none."""

    excess: Excess


class Violated(msgspec.Struct, frozen=True):
    """A limit was exceeded; `fatal`: the worker is killed."""

    excess: Excess
    in_a_row: int
    fatal: bool


Finding = Warned | Eased | Violated


class UsageWatch(msgspec.Struct, frozen=True):
    """The resource state of one incarnation."""

    peak: Usage | None = None
    violations: int = 0
    """Samples over a limit, in total."""
    in_a_row: Mapping[Resource, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    warned: frozenset[Resource] = frozenset()
    condemned: bool = False
    """It is being killed; nothing more is reported."""


SAMPLE_EVERY_S = 60.0
"""How often a sample is recorded even if nothing changes."""

NEWS = 0.1
"""A change of memory by more than this share is recorded at once."""

TRIFLE_MB = 1.0
"""A smaller change is not."""


def worth_noting(noted: Usage | None, passed_s: float, usage: Usage) -> bool:
    """Whether to record a sample, `passed_s` after the last recorded one."""
    if noted is None or passed_s >= SAMPLE_EVERY_S:
        return True
    return abs(usage.memory_mb - noted.memory_mb) > max(TRIFLE_MB, NEWS * noted.memory_mb)


class Look(msgspec.Struct, frozen=True):
    """The watch after a sample, and the findings."""

    watch: UsageWatch
    findings: tuple[Finding, ...] = ()


def assess(limits: ResourceLimits, watch: UsageWatch, usage: Usage) -> Look:
    """Evaluate one sample."""
    watch = replace(watch, peak=usage.above(watch.peak))
    if watch.condemned:
        return Look(watch)
    warnings, warned = _warnings(limits, watch, usage)
    in_a_row = {
        excess.resource: watch.in_a_row.get(excess.resource, 0) + 1 for excess in _excesses(limits, usage)
    }
    violations = tuple(
        Violated(excess, in_a_row[excess.resource], in_a_row[excess.resource] >= limits.violations)
        for excess in _excesses(limits, usage)
    )
    watch = replace(
        watch,
        warned=warned,
        in_a_row=MappingProxyType(in_a_row),
        violations=watch.violations + bool(violations),
        condemned=any(violation.fatal for violation in violations),
    )
    return Look(watch, (*warnings, *violations))


def _excesses(limits: ResourceLimits, usage: Usage) -> Iterator[Excess]:
    for resource in Resource:
        used, limit = usage.of(resource), limits.kill(resource.value)
        if used is not None and limit is not None and used > limit:
            yield Excess(resource, used, limit)


def _warnings(
    limits: ResourceLimits, watch: UsageWatch, usage: Usage
) -> tuple[tuple[Warned | Eased, ...], frozenset[Resource]]:
    findings: list[Warned | Eased] = []
    warned = set(watch.warned)
    for resource in Resource:
        used, threshold = usage.of(resource), limits.warn(resource.value)
        if used is None or threshold is None:
            continue
        excess = Excess(resource, used, threshold)
        if used > threshold and resource not in warned:
            warned.add(resource)
            findings.append(Warned(excess))
        elif used <= threshold and resource in warned:
            warned.discard(resource)
            findings.append(Eased(excess))
    return (*findings, *_relief(limits, watch, usage)), frozenset(warned)


def _relief(limits: ResourceLimits, watch: UsageWatch, usage: Usage) -> Iterator[Eased]:
    """Resources that fell below a limit, if no warning threshold reports it."""
    for resource in watch.in_a_row:
        used, limit = usage.of(resource), limits.kill(resource.value)
        if used is not None and limit is not None and used <= limit and limits.warn(resource.value) is None:
            yield Eased(Excess(resource, used, limit))
