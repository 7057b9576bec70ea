"""What a host may tell the Supervisor and the AlertDesk."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..evidence import Versions, no_versions
from ..lifecycle import Urgency
from ..ports import Receiver
from ..spec import WorkerSpec


@dataclass(frozen=True, slots=True)
class StartWorkers:
    """Start these workers, or all of them; what runs already is left alone.

    With `versions`, a failed worker that is another version now may be tried afresh.
    """

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    versions: Versions = field(default_factory=no_versions, hash=False)


@dataclass(frozen=True, slots=True)
class StopWorkers:
    """Stop these workers, or all of them. The reply is `WorkersStopped`, once they are gone."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


@dataclass(frozen=True, slots=True)
class RestartWorker:
    """Clear the worker's counters and start it afresh, now."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ResetWorker:
    """Clear the worker's counters and failure; it is not started."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class PauseWorkers:
    """Pause these workers, or the whole system; remembered across restarts, ends by itself if told so."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    reason: str = ""
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class ResumeWorkers:
    """End a pause; workers that it held back start at once."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class AddWorker:
    """Supervise one more worker, and start it if the others are started."""

    spec: WorkerSpec
    reply_to: Receiver | None = None
    versions: Versions = field(default_factory=no_versions, hash=False)


@dataclass(frozen=True, slots=True)
class RemoveWorker:
    """Stop a worker and forget it, its restart state included."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ChangeWorkers:
    """Supervise exactly these workers from now on. The reply is `WorkersChanged`.

    What did not change is left alone; new ones are started, missing ones stopped and forgotten;
    one whose command changed is restarted, without counting; a changed policy holds from the
    next decision on. With `versions`, a failed worker that is another version now may be tried
    afresh.
    """

    specs: tuple[WorkerSpec, ...]
    reply_to: Receiver | None = None
    versions: Versions = field(default_factory=no_versions, hash=False)


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """Answer with `StatusReport`."""

    reply_to: Receiver


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop everything for good. The reply is `WorkersStopped`."""

    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


HostCommand = (
    StartWorkers
    | StopWorkers
    | RestartWorker
    | ResetWorker
    | PauseWorkers
    | ResumeWorkers
    | AddWorker
    | RemoveWorker
    | ChangeWorkers
    | ReportStatus
    | Shutdown
)


@dataclass(frozen=True, slots=True)
class AcknowledgeAlert:
    """Take note of an alert: it makes no more noise, and stays until it is over."""

    alert_id: int
    by: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ReportAlerts:
    """Answer with `AlertReport`."""

    reply_to: Receiver
