"""How a worker is told to take no more work before it is asked to stop; checked when it is constructed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...errors import Problem
from ..probe import CommandProbe, HttpProbe, Probe
from ..validation import SHORTEST_S, Policy, seconds, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPolicy(Policy):
    """The step before a graceful stop: the worker takes no more work, and finishes what it has.

    A worker that reports its health is told so over its channel. The step is over when the program has
    ended or the request is answered, when a worker that was told over its channel says that it has no work
    left, and after `within_s` in any case.
    """

    command: CommandProbe | None = setting(
        None, "A program that drains the worker; it finds the pid of the worker in REKINDLE_WORKER_PID."
    )
    http: HttpProbe | None = setting(None, "A GET request to this address drains the worker.")
    within_s: float = seconds(
        10.0, "After this many seconds the worker is asked to stop in any case.", least=SHORTEST_S
    )

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Two ways at once."""
        if not {"command", "http"} & set(wrong) and None not in (self.command, self.http):
            yield Problem("http", "must not stand beside command: one of them drains the worker")

    @property
    def probe(self) -> Probe | None:
        """What is run or asked; None: the worker is only told over its channel."""
        return self.command or self.http
