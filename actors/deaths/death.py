"""What is known of a worker's death."""

from __future__ import annotations

import signal as signals
from enum import StrEnum

import msgspec

from .evidence import Remains
from .last_error import last_error
from .left_processes import left_running


class Cause(StrEnum):
    """Why a worker counts as dead; exit code and signal are recorded beside it."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    HEARTBEAT_LOST = "heartbeat_lost"
    UNHEALTHY = "unhealthy"
    """By its own report, for longer than its policy allows; it was not silent."""
    NO_PROGRESS = "no_progress"
    PROBE_FAILED = "probe_failed"
    """It did not answer the probe of its liveness well, several times in a row."""
    STARTUP_TIMEOUT = "startup_timeout"
    RECOVERY_TIMEOUT = "recovery_timeout"
    CHANNEL_CLOSED = "channel_closed"
    SPAWN_FAILED = "spawn_failed"
    RESOURCE_LIMIT = "resource_limit"
    TIMEOUT = "timeout"
    """A run of a schedule took longer than it may."""
    PROTOCOL = "protocol"
    SUPERVISOR_LOST = "supervisor_lost"
    """It was running when its supervisor was killed; how it ended is not known."""
    UNKNOWN = "unknown"


HUNG = frozenset(
    {
        Cause.HEARTBEAT_LOST,
        Cause.UNHEALTHY,
        Cause.NO_PROGRESS,
        Cause.PROBE_FAILED,
        Cause.STARTUP_TIMEOUT,
        Cause.RECOVERY_TIMEOUT,
    }
)
"""Causes that mean that the process still ran."""

Job = int | str
"""The job that a worker reports."""


class Exit(msgspec.Struct, frozen=True):
    """How a process ended. Both are None if other code in the host collected the status."""

    code: int | None = None
    signal: int | None = None

    @property
    def cause(self) -> Cause:
        """The cause of death for an unexpected exit."""
        if self.signal is not None:
            return Cause.SIGNALLED
        return Cause.UNKNOWN if self.code is None else Cause.EXITED

    @property
    def clean(self) -> bool:
        """Whether the process exited with code 0."""
        return self.code == 0

    def __str__(self) -> str:
        if self.signal is not None:
            return f"killed by {signal_name(self.signal)}"
        return "ended, exit status unknown" if self.code is None else f"exited with code {self.code}"


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """One death of one incarnation of a worker."""

    component_id: str
    generation: int
    cause: Cause
    exit: Exit = Exit()
    detail: str = ""
    """More about the cause: the text of an errno, the number of missed heartbeats."""
    healthy_for_ms: int = 0
    """How long it had been continuously healthy when it died."""
    was_ready: bool = True
    """Whether it had been ready at any time of its life; one that had not failed to start."""
    counts_as_success: bool = False
    """Whether its restart policy counts its exit code as success, which need not be 0."""
    uptime_ms: int = 0
    job: Job | None = None
    pid: int | None = None
    silent_ms: int | None = None
    """The time from its last message to its death; None without a message."""
    progress: Job | None = None
    """Its last mark of progress."""
    probes: tuple[str, ...] = ()
    """The latest answers of the probe of its liveness, newest first."""
    remains: Remains | None = None
    """What the process left behind; None until it has ended."""

    @property
    def output(self) -> tuple[str, ...]:
        """The last lines that it wrote."""
        return () if self.remains is None else tuple(text for _, text in self.remains.output)

    @property
    def last_error(self) -> str:
        """The last line that it wrote about an error; empty if it did not end with one of its own."""
        failed = bool(self.exit.code) or self.exit.signal == signals.SIGABRT
        return last_error(self.remains.output) if failed and self.remains is not None else ""

    @property
    def summary(self) -> str:
        """How it died, with the last error that it wrote: `exited with code 98 (cannot bind to port 80)`.

        Of a program that daemonised: `exited with code 0 (left process 7: does it daemonise?)`.
        """
        left = None if self.remains is None else self.remains.left
        more = self.last_error or left_running(self.exit, self.uptime_ms, left)
        return f"{self} ({more})" if more else str(self)

    @property
    def ended_well(self) -> bool:
        """Whether it exited by itself with code 0, or with another code that counts as success."""
        return self.cause is Cause.EXITED and (self.exit.clean or self.counts_as_success)

    def __str__(self) -> str:
        match self.cause:
            case Cause.EXITED | Cause.SIGNALLED | Cause.UNKNOWN:
                return str(self.exit)
            case Cause.SUPERVISOR_LOST:
                return "ended with its supervisor"
            case _:
                text = self.cause.value.replace("_", " ")
                return f"{text} ({self.detail})" if self.detail else text


_SIGNAL_NAMES = {int(signal): signal.name for signal in signals.Signals}


def signal_name(number: int) -> str:
    """SIGKILL for 9; the number if it has no name."""
    return _SIGNAL_NAMES.get(number) or f"signal {number}"


NOT_A_SIGNAL = "is not a signal; use a name such as SIGTERM or a number"


def signal_number(signal: int | str) -> int | None:
    """9 for 9, SIGKILL and KILL; None if it is not a signal."""
    if isinstance(signal, int):
        return int(signal) if signal in signals.valid_signals() else None
    name = signal.upper()
    known = signals.Signals.__members__.get(name if name.startswith("SIG") else f"SIG{name}")
    return None if known is None else int(known)


class Action(StrEnum):
    """The decision on a death."""

    RESTART = "restart"
    RESTART_UNCOUNTED = "restart_uncounted"
    """It is restarted, and the counters of restarts stay as they are."""
    MARK_FAILED = "mark_failed"
    NOTIFY_ONLY = "notify_only"
    HELD = "held"
    """A breaker is open: not counted, restarted when it closes."""
    NONE = "none"

    @property
    def restarts(self) -> bool:
        """Whether the worker is restarted."""
        return self in (Action.RESTART, Action.RESTART_UNCOUNTED)
