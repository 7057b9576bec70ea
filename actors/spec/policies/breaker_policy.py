"""What a host declares about a circuit breaker; checked when it is constructed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from ...errors import Problem
from ..probe import address
from ..validation import SHORTEST_S, Policy, check, exceeds, seconds, setting

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy(Policy):
    """When the restarts of all workers that share this breaker are held, and how they resume."""

    name: str
    deaths: int | None = setting(
        3,
        "Deaths of this many different workers within window_s open the breaker; none: only the probe does.",
        least=1,
    )
    window_s: float = seconds(30.0, "The window of deaths, in seconds.", least=SHORTEST_S)
    canary_delay_s: float = seconds(
        10.0, "The delay before the first canary restarts; it doubles after each canary that dies."
    )
    canary_max_delay_s: float = seconds(60.0, "The longest delay before a canary, in seconds.")
    hold_s: float = seconds(10.0, "A canary that stays healthy for this long closes the breaker.")
    probe_tcp: str | None = setting(None, "A host:port; restarts are held while it refuses connections.")
    probe_command: tuple[str, ...] = setting(
        (), "A program that exits with 0 while the dependency is available."
    )
    probe_call: Callable[[], object] | None = None
    """A function that returns anything but False while the dependency is available."""
    probe_interval_s: float = seconds(5.0, "Seconds between two probes.", least=SHORTEST_S)
    probe_timeout_s: float = seconds(2.0, "After this many seconds a probe has failed.", least=SHORTEST_S)

    def __post_init__(self) -> None:
        check(self, f"breaker {self.name!s:.64}")

    @property
    def probes(self) -> bool:
        """Whether there is a probe."""
        return self.probe_tcp is not None or bool(self.probe_command) or self.probe_call is not None

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name that is not valid, and settings that contradict each other."""
        if exceeds(self, "canary_delay_s", "canary_max_delay_s"):
            reason = f"must not be below canary_delay_s ({self.canary_delay_s})"
            yield Problem("canary_max_delay_s", reason, self.canary_max_delay_s)
        if "name" not in wrong and not _NAME.fullmatch(self.name):
            yield Problem("name", f"must match {_NAME.pattern}", self.name)
        if not wrong:
            yield from self._probe_problems()

    def _probe_problems(self) -> Iterator[Problem]:
        if sum((self.probe_tcp is not None, bool(self.probe_command), self.probe_call is not None)) > 1:
            yield Problem("probe_tcp", "conflicts: set only one of probe_tcp, probe_command and probe_call")
        if self.probe_tcp is not None and address(self.probe_tcp) is None:
            yield Problem("probe_tcp", "must have the form 'host:port'", self.probe_tcp)
        if self.probe_command and not self.probe_command[0]:
            yield Problem("probe_command", "does not name a program")
        if self.deaths is None and not self.probes:
            yield Problem("deaths", "must be a number if there is no probe: nothing else opens the breaker")
