"""Pure: the resources that a worker uses, and their words."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import msgspec

N = TypeVar("N", int, float)


class Resource(StrEnum):
    """A resource with a limit."""

    CPU = "cpu_percent"
    MEMORY = "memory_mb"
    THREADS = "threads"
    DESCRIPTORS = "descriptors"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker and all of its child processes use together; None: not known."""

    memory_mb: float
    cpu_percent: float | None = None
    """Of one core, since the previous sample or since its start."""
    threads: int = 1
    descriptors: int | None = None

    def of(self, resource: Resource) -> float | None:
        """How much of one resource."""
        value: float | None = getattr(self, resource.value)
        return value

    def above(self, other: Usage | None) -> Usage:
        """The greater of both, resource by resource."""
        if other is None:
            return self
        return Usage(
            memory_mb=max(self.memory_mb, other.memory_mb),
            cpu_percent=_greater(self.cpu_percent, other.cpu_percent),
            threads=max(self.threads, other.threads),
            descriptors=_greater(self.descriptors, other.descriptors),
        )

    def __str__(self) -> str:
        cpu = "" if self.cpu_percent is None else f", {self.cpu_percent:.0f} % CPU"
        return f"{self.memory_mb:.0f} MB{cpu}, {self.threads} threads"


_NOUNS = {
    Resource.CPU.value: "CPU",
    Resource.MEMORY.value: "memory",
    Resource.THREADS.value: "thread",
    Resource.DESCRIPTORS.value: "descriptor",
}
_UNITS = {Resource.CPU.value: " %", Resource.MEMORY.value: " MB"}


def amount(resource: str, value: float) -> str:
    """`80 % CPU`, `130 MB`, `4 threads`."""
    match resource:
        case Resource.CPU:
            return f"{value:.0f} % CPU"
        case Resource.MEMORY:
            return f"{value:.0f} MB"
        case _:
            return f"{value:.0f} {resource}"


def bound_words(resource: str, limit: float, bound: str) -> str:
    """`memory limit of 128 MB`; `bound` is what the limit is called."""
    return f"{_NOUNS.get(resource, resource)} {bound} of {amount(resource, limit)}"


def excess_words(resource: str, used: float, limit: float, bound: str) -> str:
    """`memory 512 MB exceeds the limit of 400 MB`; `bound` is what the limit is called."""
    noun, unit = _NOUNS.get(resource, resource), _UNITS.get(resource, "")
    return f"{noun}{'' if unit else ' count'} {used:.0f}{unit} exceeds the {bound} of {limit:g}{unit}"


def _greater(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
