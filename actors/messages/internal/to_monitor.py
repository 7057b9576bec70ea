"""Messages to the HealthMonitor."""

from __future__ import annotations

import msgspec

from ...facts.frames import Frame
from ...facts.notify_datagram import NotifyDatagram
from ...ports import Receiver
from ...spec.policies.alive_policy import AlivePolicy
from ...spec.policies.health_policy import HealthPolicy
from ...spec.policies.ready_policy import Condition, ReadyPolicy
from ..replies import StatusReport
from .hand_over import ReportMemory
from .to_proxy import ProcessExited, ProcessFound, ProcessStarted, SpawnFailed


class Attend(msgspec.Struct, frozen=True):
    """Send reports to this Supervisor, Broker and JobDesk."""

    supervisor: Receiver
    broker: Receiver
    desk: Receiver


class Register(msgspec.Struct, frozen=True):
    """Watch this incarnation; refused while the worker is marked as failed."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool
    ready: ReadyPolicy | None = None
    """When it is ready, if its spec says so."""
    alive: AlivePolicy | None = None
    """How it is asked whether it is alive."""
    breaker: str | None = None
    """Its circuit breaker: while that is open, failed probes do not end it."""
    stop_s: float = 0.0
    """How long a worker that says that it is stopping may take."""


class Unregister(msgspec.Struct, frozen=True):
    """Forget the worker without reporting its end, which is expected; or it was reset."""

    component_id: str


class MarkFailed(msgspec.Struct, frozen=True):
    """The worker will not be started again."""

    component_id: str


class SetPaused(msgspec.Struct, frozen=True):
    """Expect no heartbeats from the worker while it is paused."""

    component_id: str
    paused: bool


class FrameReceived(msgspec.Struct, frozen=True):
    """A worker sent a frame over its channel."""

    component_id: str
    generation: int
    frame: Frame


class ConditionChecked(msgspec.Struct, frozen=True):
    """A look at a condition of a worker's readiness: by a probe, its output or its notify socket.

    `words` say what was seen, such as `connection refused`. A condition that was met once stays met.
    """

    component_id: str
    generation: int
    condition: Condition
    is_met: bool
    words: str = ""


class NoticeReceived(msgspec.Struct, frozen=True):
    """A worker said something over its notify socket."""

    component_id: str
    generation: int
    notice: NotifyDatagram


class LifeProbed(msgspec.Struct, frozen=True):
    """An answer of the probe that asks whether a worker is alive."""

    component_id: str
    generation: int
    is_good: bool
    words: str


class BreakerTurned(msgspec.Struct, frozen=True):
    """A circuit breaker opened or closed."""

    name: str
    is_open: bool


class ChannelClosed(msgspec.Struct, frozen=True):
    """A worker closed its channel although its process still runs."""

    component_id: str
    generation: int


class ProtocolViolated(msgspec.Struct, frozen=True):
    """A worker sent too many invalid frames."""

    component_id: str
    generation: int
    detail: str


class ExpectLimitKill(msgspec.Struct, frozen=True):
    """This incarnation is being ended because it exceeded a limit: record that as the cause of its death."""

    component_id: str
    generation: int
    detail: str
    timeout: bool = False
    """The limit is the time that a run may take."""


class CompleteReport(msgspec.Struct, frozen=True):
    """Add to this report when each worker was last heard from, and send it on."""

    report: StatusReport
    reply_to: Receiver


class MirrorDue(msgspec.Struct, frozen=True):
    """Timer: persist the changes of health for people to read."""


class DeadlineReached(msgspec.Struct, frozen=True):
    """Timer: the deadline of a worker may have passed."""

    due: float


MonitorMessage = (
    Attend
    | Register
    | Unregister
    | MarkFailed
    | SetPaused
    | FrameReceived
    | ConditionChecked
    | NoticeReceived
    | LifeProbed
    | BreakerTurned
    | ChannelClosed
    | ProtocolViolated
    | ExpectLimitKill
    | DeadlineReached
    | MirrorDue
    | CompleteReport
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
    | ReportMemory
)
