"""What the HealthMonitor is told."""

from __future__ import annotations

import msgspec

from ...facts.frames import Frame
from ...ports import Receiver
from ...spec.worker_spec import HealthPolicy
from .to_proxy import ProcessExited, ProcessFound, ProcessStarted, SpawnFailed


class Attend(msgspec.Struct, frozen=True):
    """These are the Supervisor, the Broker and the JobDesk to tell."""

    supervisor: Receiver
    broker: Receiver
    desk: Receiver


class Register(msgspec.Struct, frozen=True):
    """Watch this incarnation. Refused while the worker is failed."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool


class Unregister(msgspec.Struct, frozen=True):
    """Forget the worker without a word; its end is expected, or it was reset."""

    component_id: str


class MarkFailed(msgspec.Struct, frozen=True):
    """The worker will not be started again."""

    component_id: str


class SetPaused(msgspec.Struct, frozen=True):
    """While a worker is paused its silence means nothing."""

    component_id: str
    paused: bool


class FrameReceived(msgspec.Struct, frozen=True):
    """A worker said something about itself."""

    component_id: str
    generation: int
    frame: Frame


class ChannelClosed(msgspec.Struct, frozen=True):
    """A worker's channel ended although its process still runs."""

    component_id: str
    generation: int


class ProtocolViolated(msgspec.Struct, frozen=True):
    """A worker sent too much that cannot be understood."""

    component_id: str
    generation: int
    detail: str


class ExpectLimitKill(msgspec.Struct, frozen=True):
    """This incarnation is being killed for using too much; that is the cause of the death to come."""

    component_id: str
    generation: int
    detail: str


class MirrorDue(msgspec.Struct, frozen=True):
    """Timer: write the changes of health for people to read."""


class DeadlineReached(msgspec.Struct, frozen=True):
    """Timer: some worker's deadline may have passed."""

    due: float


MonitorMessage = (
    Attend
    | Register
    | Unregister
    | MarkFailed
    | SetPaused
    | FrameReceived
    | ChannelClosed
    | ProtocolViolated
    | ExpectLimitKill
    | DeadlineReached
    | MirrorDue
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
)
