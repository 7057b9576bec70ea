"""The message with which an upgrade asks the actors for what only they know."""

from __future__ import annotations

import msgspec

from ...ports import Receiver


class ReportMemory(msgspec.Struct, frozen=True):
    """To the Supervisor, the HealthMonitor and the proxies: send what only you know, for a hand-over."""

    reply_to: Receiver
    final: bool = False
    """Whether the answer is handed over, so that there is no time to wait for another moment."""
    holds: bool = False
    """Whether the hand-over follows at once: until another request, no rollout begins."""


class GoOn(msgspec.Struct, frozen=True):
    """To the Supervisor: watch the processes that the former program of this process left, and continue."""

    reply_to: Receiver


class WentOn(msgspec.Struct, frozen=True):
    """The answer: the processes are watched."""

    was_ending: bool = False
    """Whether the former program was ending all workers, so that this one has to."""
