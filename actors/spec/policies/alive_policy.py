"""What a host declares about the liveness of a worker; checked when it is constructed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...errors import Problem
from ..probe import CommandProbe, HttpProbe, Probe, TcpProbe
from ..validation import SHORTEST_S, Policy, seconds, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AlivePolicy(Policy):
    """How a running worker is asked whether it is alive, and when it is ended because it is not.

    One of http, tcp and command says what is asked. A failure makes the worker unhealthy; `failures` of them
    in a row end it as a silence does, and one success in between resets the count. Failures do not count
    before the worker is ready, while it is paused, and while its circuit breaker is open.
    """

    http: HttpProbe | None = setting(None, "Alive while this URL answers well.")
    tcp: TcpProbe | None = setting(None, "Alive while this host:port accepts a connection.")
    command: CommandProbe | None = setting(None, "Alive while this program exits with 0.")
    every_s: float = seconds(10.0, "Seconds between two probes.", least=SHORTEST_S)
    timeout_s: float = seconds(2.0, "After this many seconds a probe has failed.", least=SHORTEST_S)
    failures: int = setting(3, "How many failures in a row end the worker.", least=1)
    grace_s: float = seconds(0.0, "Seconds from the start of the process until the first probe.")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """More than one question."""
        named = [name for name in ("http", "tcp", "command") if getattr(self, name) is not None]
        for name in named[1:]:
            if name not in wrong:
                yield Problem(name, f"must not be set beside {named[0]}: one probe decides", None)

    @property
    def probe(self) -> Probe | None:
        """What is asked."""
        return self.http or self.tcp or self.command

    def __str__(self) -> str:
        return "" if self.probe is None else str(self.probe).partition("?")[0]
