"""What a host may tell the Supervisor and the AlertDesk."""

from __future__ import annotations

import msgspec

from ..deaths.evidence import Versions, no_versions
from ..ports import Receiver
from ..spec.stop_urgency import Urgency
from ..spec.worker_spec import WorkerSpec


class StartWorkers(msgspec.Struct, frozen=True):
    """Start these workers, or all of them; what runs already is left alone.

    With `versions`, a failed worker that is another version now may be tried afresh.
    """

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)


class StopWorkers(msgspec.Struct, frozen=True):
    """Stop these workers, or all of them. The reply is `WorkersStopped`, once they are gone."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


class RestartWorker(msgspec.Struct, frozen=True):
    """Clear the worker's counters and start it afresh, now."""

    component_id: str
    reply_to: Receiver | None = None


class ResetWorker(msgspec.Struct, frozen=True):
    """Clear the worker's counters and failure; it is not started."""

    component_id: str
    reply_to: Receiver | None = None


class PauseWorkers(msgspec.Struct, frozen=True):
    """Pause these workers, or the whole system; remembered across restarts, ends by itself if told so."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    reason: str = ""
    for_s: float | None = None


class ResumeWorkers(msgspec.Struct, frozen=True):
    """End a pause; workers that it held back start at once."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


class AddWorker(msgspec.Struct, frozen=True):
    """Supervise one more worker, and start it if the others are started."""

    spec: WorkerSpec
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)


class RemoveWorker(msgspec.Struct, frozen=True):
    """Stop a worker and forget it, its restart state included."""

    component_id: str
    reply_to: Receiver | None = None


class ChangeWorkers(msgspec.Struct, frozen=True):
    """Supervise exactly these workers from now on. The reply is `WorkersChanged`.

    What did not change is left alone; new ones are started, missing ones stopped and forgotten;
    one whose command changed is restarted, without counting; a changed policy holds from the
    next decision on. With `versions`, a failed worker that is another version now may be tried
    afresh.
    """

    specs: tuple[WorkerSpec, ...]
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)


class ReportStatus(msgspec.Struct, frozen=True):
    """Answer with `StatusReport`."""

    reply_to: Receiver


class Shutdown(msgspec.Struct, frozen=True):
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


class AcknowledgeAlert(msgspec.Struct, frozen=True):
    """Take note of an alert: it makes no more noise, and stays until it is over."""

    alert_id: int
    by: str
    reply_to: Receiver | None = None


class ReportAlerts(msgspec.Struct, frozen=True):
    """Answer with `AlertReport`."""

    reply_to: Receiver
