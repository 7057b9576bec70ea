"""Pure: the states of a worker's health, what can happen to it, and the change that follows.

`health` draws the machine and decides.
"""

from __future__ import annotations

import msgspec

from ...deaths.death import Cause, Exit
from ...facts.frames import Frame
from ...facts.health_status import Status
from ...spec.policies.ready_policy import Condition
from .readiness import Awaited, is_awaited


class Pending(msgspec.Struct, frozen=True, tag=True):
    """Started, and not ready yet."""

    since: float
    awaits: tuple[Awaited, ...] = ()
    """The conditions that are not met yet; empty: it only has to start, or to say that it is healthy."""
    lifetime_s: float = 0.0
    """How long its process must live, if that is a condition."""
    started: float | None = None
    """When its process started."""
    status = Status.PENDING

    @property
    def ripe(self) -> float | None:
        """When its process has lived long enough; None: that is not a condition, or it has not started."""
        if self.started is None or not is_awaited(self.awaits, Condition.AFTER_S):
            return None
        return self.started + self.lifetime_s


class Healthy(msgspec.Struct, frozen=True, tag=True):
    """The last healthy frame is recent."""

    since: float
    seen: float
    status = Status.HEALTHY


class Unhealthy(msgspec.Struct, frozen=True, tag=True):
    """Silent for at least one interval, unhealthy by its own report, or its probe fails."""

    seen: float
    misses: int
    reported: float | None = None
    """When it last reported that it is unhealthy; None if it is only silent."""
    said: str = ""
    """Its own words in that report."""
    failed: int = 0
    """How many probes of its liveness failed in a row."""
    failing: str = ""
    """What the last of them said; a healthy frame does not outweigh it."""
    status = Status.UNHEALTHY


class Recovering(msgspec.Struct, frozen=True, tag=True):
    """The worker asked for time; the whole recovery is bounded, however often it asks again."""

    entered: float
    until: float
    start: Pending | None = None
    """What it still awaits, if it was not ready when it asked."""
    status = Status.RECOVERING


class Dead(msgspec.Struct, frozen=True, tag=True):
    """Ended, or about to be ended."""

    status = Status.DEAD


class MarkedFailed(msgspec.Struct, frozen=True, tag="Failed"):
    """Given up until an operator resets it."""

    status = Status.FAILED


State = Pending | Healthy | Unhealthy | Recovering | Dead | MarkedFailed


class Reported(msgspec.Struct, frozen=True):
    """A frame arrived."""

    frame: Frame


class Elapsed(msgspec.Struct, frozen=True):
    """Time passed: check the deadline."""


class Launched(msgspec.Struct, frozen=True):
    """The process runs."""


class Checked(msgspec.Struct, frozen=True):
    """A look at a condition of the worker's readiness; one that was met once stays met."""

    condition: Condition
    is_met: bool
    words: str = ""


class Extended(msgspec.Struct, frozen=True):
    """The worker asks for more time to start: this many seconds from now."""

    seconds: float


class Probed(msgspec.Struct, frozen=True):
    """An answer of the probe of its liveness."""

    is_good: bool
    words: str = ""
    most: int | None = None
    """How many failures in a row end it; None: none do now."""


class Lost(msgspec.Struct, frozen=True):
    """The process ended, its channel closed, or it broke the protocol."""

    cause: Cause
    exit: Exit = Exit()
    detail: str = ""


class GivenUp(msgspec.Struct, frozen=True):
    """The supervisor will not start it again."""


class Granted(msgspec.Struct, frozen=True):
    """The monitor was away, or the worker paused: the silence until now does not count."""


Trigger = Reported | Elapsed | Launched | Checked | Extended | Probed | Lost | GivenUp | Granted


class HealthChange(msgspec.Struct, frozen=True):
    """One status change, with what led to it."""

    old: Status
    new: Status
    cause: Cause | None = None
    exit: Exit = Exit()
    detail: str = ""
    misses: int = 0
    recover_for_s: float | None = None
    """The recovery time that the worker asked for, before it was clamped."""


class HealthStep(msgspec.Struct, frozen=True):
    """The state after a trigger, and the change to report, if any."""

    state: State
    change: HealthChange | None = None
