"""What a host declares about the readiness of a worker; checked when it is constructed.

Until every condition is met the worker is starting: workers that come after it, and everything else that
waits for a healthy worker, wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ...errors import Problem
from ..probe import CommandProbe, HttpProbe, Probe, TcpProbe
from ..search_pattern import pattern_problem
from ..validation import SHORTEST_S, Policy, seconds, setting

READY_AFTER_S = 1.0
"""How long a command that says nothing of itself must live before it is ready."""


class Condition(StrEnum):
    """What a worker must do before it is ready. The values are the keys of `ready`, except `frame`."""

    AFTER_S = "after_s"
    HTTP = "http"
    TCP = "tcp"
    COMMAND = "command"
    OUTPUT = "output"
    NOTIFY = "notify"
    FRAME = "frame"
    """A worker that speaks the protocol says that it is healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPolicy(Policy):
    """When a worker is ready: all the conditions that are set here must be met.

    `health.startup_timeout_s` limits the time until then. A worker that reports its health must also
    have reported that it is healthy. Without any condition, a command that does not report its health is
    ready after it has lived for one second.
    """

    after_s: float | None = seconds(
        None, "Ready after the process has lived for this many seconds; 0: as soon as it is started."
    )
    http: HttpProbe | None = setting(None, "Ready when this URL answers well.")
    tcp: TcpProbe | None = setting(None, "Ready when this host:port accepts a connection.")
    command: CommandProbe | None = setting(None, "Ready when this program exits with 0.")
    output: str | None = setting(
        None, "Ready when a line of its output matches this regular expression in its first 1000 characters."
    )
    notify: bool = setting(
        False, "Ready when it sends READY=1 to its NOTIFY_SOCKET, as programs for systemd do (sd_notify)."
    )
    watchdog_s: float | None = seconds(
        None,
        "With notify: ended like a hung worker if it sends no WATCHDOG=1 for this many seconds once it is "
        "ready; the worker finds the time in WATCHDOG_USEC.",
        least=SHORTEST_S,
    )
    every_s: float = seconds(1.0, "Seconds between two probes by http, tcp or command.", least=SHORTEST_S)
    timeout_s: float = seconds(2.0, "After this many seconds a probe has failed.", least=SHORTEST_S)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A pattern that is not a regular expression; a watchdog that could not be heard."""
        if self.watchdog_s is not None and not {"notify", "watchdog_s"} & set(wrong) and not self.notify:
            yield Problem("watchdog_s", "requires notify = true", self.watchdog_s)
        if self.output is not None and "output" not in wrong and (reason := pattern_problem(self.output)):
            yield Problem("output", reason, self.output)

    @property
    def conditions(self) -> dict[Condition, str]:
        """The conditions that are set, each with the words by which people know it."""
        named = {
            Condition.AFTER_S: None if self.after_s is None else lifetime_words(self.after_s),
            Condition.HTTP: None if self.http is None else f"http {self.http.url.partition('?')[0]}",
            Condition.TCP: None if self.tcp is None else f"tcp {self.tcp.address}",
            Condition.COMMAND: None if self.command is None else f"command {self.command.argv[0]}",
            Condition.OUTPUT: None if self.output is None else f"output matching /{self.output}/",
            Condition.NOTIFY: "READY=1 to its NOTIFY_SOCKET" if self.notify else None,
        }
        return {condition: words for condition, words in named.items() if words is not None}

    @property
    def probes(self) -> dict[Condition, Probe]:
        """The conditions that a probe looks at."""
        asked = {Condition.HTTP: self.http, Condition.TCP: self.tcp, Condition.COMMAND: self.command}
        return {condition: probe for condition, probe in asked.items() if probe is not None}


def lifetime_words(seconds: float) -> str:
    """The condition that a process has lived for a while, in words."""
    return f"a lifetime of {seconds:g} s"
