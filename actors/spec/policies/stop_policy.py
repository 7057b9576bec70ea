"""How a process is stopped, and how firmly."""

from __future__ import annotations

import signal as signals
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ...deaths.death import NOT_A_SIGNAL, signal_name, signal_number
from ...errors import Problem, SpecError
from ..deployment.drain_policy import DrainPolicy
from ..validation import (
    Policy,
    check,
    seconds,
    setting,
)


class Urgency(IntEnum):
    """How firmly a process is stopped; a firmer request shortens a gentler one."""

    GRACEFUL = 0
    """Ask first, and let it finish what it does."""
    FIRM = 1
    """It is taken for dead or stuck: SIGTERM (or what its policy says), then SIGKILL."""
    KILL = 2
    """At once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPolicy(Policy):
    """The stop ladder: drain, request, SIGTERM, SIGKILL, and how long to wait after each step.

    A plain command cannot be asked. A graceful stop begins with SIGTERM and waits `ask_s` after
    it; `term_s` is not used then.
    """

    signal: int | str = setting(
        "SIGTERM", "The signal that is sent instead of SIGTERM, by name or number: SIGINT, INT or 2."
    )
    ask_s: float = seconds(
        10.0, "How long to wait after the request to stop; for a plain command: after SIGTERM."
    )
    term_s: float = seconds(
        2.0, "How long to wait after SIGTERM, where SIGTERM follows a request or the worker is unresponsive."
    )
    kill_s: float = seconds(1.0, "How long to wait after SIGKILL.")
    last_s: float = seconds(
        0.5, "How much longer to wait before a process that survived SIGKILL is reported as unkillable."
    )
    end_detached: bool = setting(
        True, "Whether `rekindle run` ends the processes that the worker detached when the worker ends."
    )

    drain: DrainPolicy | None = setting(None)

    def __post_init__(self) -> None:
        if isinstance(self.drain, Mapping):
            object.__setattr__(self, "drain", _drain(self.drain))
        check(self)
        name = signal_name(self.signal_number)
        if signal_number(name) is not None:  # real-time signals have numbers only
            object.__setattr__(self, "signal", name)

    @property
    def signal_number(self) -> int:
        """The number of the signal."""
        number = signal_number(self.signal)
        assert number is not None
        return number

    @property
    def total_s(self) -> float:
        """How long a stop may take at most, with every step of the ladder."""
        drain_s = 0.0 if self.drain is None else self.drain.within_s
        return drain_s + self.ask_s + self.term_s + self.kill_s + self.last_s

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A signal that does not exist, or that does not end a process."""
        if "signal" in wrong:
            return
        number = signal_number(self.signal)
        if number is None:
            yield Problem("signal", NOT_A_SIGNAL, self.signal)
        elif number == signals.SIGSTOP:
            reason = "only suspends a process; use a signal that ends it, such as SIGTERM"
            yield Problem("signal", reason, self.signal)


def _drain(table: Mapping[str, Any]) -> DrainPolicy:
    """The policy that a table describes.

    Raises:
        SpecError: it has problems.
    """
    try:
        return DrainPolicy(**table)
    except SpecError as error:
        problems = [Problem("drain", f"{each.field} {each.reason}", each.value) for each in error.problems]
        raise SpecError("StopPolicy", problems, "policy") from None
