"""Commands from a host to the Supervisor and the AlertDesk."""

from __future__ import annotations

import msgspec

from ..deaths.evidence import Versions, no_versions
from ..facts.records import RememberedWorker
from ..ports import Receiver
from ..spec.policies.stop_policy import Urgency
from ..spec.worker_spec import WorkerSpec


class StartWorkers(msgspec.Struct, frozen=True):
    """Start these workers, or all; running ones are left alone.

    With `versions`, a failed worker whose version changed may be started again.
    """

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)


class StopWorkers(msgspec.Struct, frozen=True):
    """Stop these workers, or all. The reply is `WorkersStopped`, once they are gone."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


class RestartWorker(msgspec.Struct, frozen=True):
    """Clear the worker's counters and start it now, in a new process."""

    component_id: str
    reply_to: Receiver | None = None


class ResetWorker(msgspec.Struct, frozen=True):
    """Clear the worker's counters and failure; it is not started."""

    component_id: str
    reply_to: Receiver | None = None


class PauseWorkers(msgspec.Struct, frozen=True):
    """Pause these workers, or the whole system, across restarts; `for_s` limits the pause."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    reason: str = ""
    for_s: float | None = None


class ResumeWorkers(msgspec.Struct, frozen=True):
    """End a pause; workers that it held back start at once."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


class RunNow(msgspec.Struct, frozen=True):
    """Begin a run of a scheduled worker now, beside those of its schedule."""

    component_id: str
    reply_to: Receiver | None = None


class RollOut(msgspec.Struct, frozen=True):
    """Give the workers of a table new processes; each is ready before an old one stops.

    Without `surge` the policy of the workers says how many additional workers there may be. With
    `roll_back`, the first new process that is not well has those that were replaced put back.
    """

    name: str
    reply_to: Receiver | None = None
    surge: int | None = None
    roll_back: bool = True


class AddWorker(msgspec.Struct, frozen=True):
    """Supervise one more worker, and start it if the others are started."""

    spec: WorkerSpec
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)
    known: RememberedWorker | None = None
    """The counters and the failure that it arrives with; None: those that belong to its id here."""


class RemoveWorker(msgspec.Struct, frozen=True):
    """Stop a worker and no longer supervise it. The reply is `WorkersStopped`, once it is gone.

    Its counters and history belong to its id: they are still there if it is added again.
    """

    component_id: str
    reply_to: Receiver | None = None
    moves: bool = False
    """The worker continues on another node: no operator stopped it."""


class FenceWorkers(msgspec.Struct, frozen=True):
    """Kill these workers, or all that need a lease, at once: the node may not run them.

    `StartWorkers` starts them again.
    """

    reply_to: Receiver | None = None
    ids: tuple[str, ...] | None = None


class RefundRestarts(msgspec.Struct, frozen=True):
    """Count restarts of a worker no longer, which another node of the cluster was at fault for."""

    component_id: str
    restarts: int
    reply_to: Receiver | None = None


class ChangeWorkers(msgspec.Struct, frozen=True):
    """Supervise exactly these workers from now on. The reply is `WorkersChanged`.

    Unchanged workers are left alone, new ones started, missing ones stopped and removed. A worker
    whose command changed is restarted without counting; a changed policy applies from the next
    decision on. With `versions`, a failed worker whose version changed may be started again.
    """

    specs: tuple[WorkerSpec, ...]
    reply_to: Receiver | None = None
    versions: Versions = msgspec.field(default_factory=no_versions)


class ReportStatus(msgspec.Struct, frozen=True):
    """Answer with `StatusReport`."""

    reply_to: Receiver | None = None


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
    | RunNow
    | RollOut
    | AddWorker
    | RemoveWorker
    | FenceWorkers
    | RefundRestarts
    | ChangeWorkers
    | ReportStatus
    | Shutdown
)


class AcknowledgeAlert(msgspec.Struct, frozen=True):
    """Acknowledge an alert: it is silent from now on, and stays until it is resolved."""

    alert_id: int
    by: str
    reply_to: Receiver | None = None


class ReportAlerts(msgspec.Struct, frozen=True):
    """Answer with `AlertReport`."""

    reply_to: Receiver | None = None
