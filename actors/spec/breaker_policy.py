"""What a host declares about a circuit breaker; checked when it is constructed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import Problem
from .validation import SHORTEST_S, at_least, coerce, durations, exceeds, mistyped, refuse

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


_ADDRESS = re.compile(r"(?P<host>[^\s:]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """When restarts of the workers that share this breaker are held, and how they come back."""

    name: str
    deaths: int | None = 3
    """So many different workers dying within the window open it; None: only the probe does."""
    window_s: float = 30.0
    canary_delay_s: float = 10.0
    """How long after it opened the first canary tries; doubled after each that dies."""
    canary_max_delay_s: float = 60.0
    hold_s: float = 10.0
    """A canary that is healthy for this long closes it."""
    probe_tcp: str | None = None
    """`host:port` of what they need: it can be connected to, or restarts are held."""
    probe_command: tuple[str, ...] = ()
    """A program that exits with 0 while all is well."""
    probe_call: Callable[[], object] | None = None
    """A function that returns (not False) while all is well."""
    probe_interval_s: float = 5.0
    probe_timeout_s: float = 2.0

    def __post_init__(self) -> None:
        coerce(self)
        refuse(f"breaker {self.name!s:.64}", self.problems())

    @property
    def probes(self) -> bool:
        """Whether there is a probe."""
        return self.probe_tcp is not None or bool(self.probe_command) or self.probe_call is not None

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        wrong = {problem.field: problem for problem in mistyped(self)}
        yield from wrong.values()
        yield from at_least(1, self, "deaths")
        yield from durations(self, "window_s", "probe_interval_s", "probe_timeout_s", least=SHORTEST_S)
        yield from durations(self, "canary_delay_s", "canary_max_delay_s", "hold_s")
        if exceeds(self, "canary_delay_s", "canary_max_delay_s"):
            yield Problem("canary_max_delay_s", f"must not be below canary_delay_s ({self.canary_delay_s})")
        if "name" not in wrong and not _NAME.fullmatch(self.name):
            yield Problem("name", f"must match {_NAME.pattern}, is {self.name[:80]!r}")
        if not wrong:
            yield from self._probe_problems()

    def _probe_problems(self) -> Iterator[Problem]:
        if sum((self.probe_tcp is not None, bool(self.probe_command), self.probe_call is not None)) > 1:
            yield Problem("probe_tcp", "only one of probe_tcp, probe_command and probe_call can be set")
        if self.probe_tcp is not None and address(self.probe_tcp) is None:
            yield Problem("probe_tcp", f"must look like 'host:port', is {self.probe_tcp!r:.80}")
        if self.probe_command and not self.probe_command[0]:
            yield Problem("probe_command", "names no program")
        if self.deaths is None and not self.probes:
            yield Problem("deaths", "must be a number where there is no probe: nothing would ever open it")


def address(text: str) -> tuple[str, int] | None:
    """Host and port; None if it is no address."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        return None
    return found["host"].strip("[]"), int(found["port"])
