"""Messages to a worker's proxy, and those from it about the process."""

from __future__ import annotations

import msgspec

from ...deaths.death import Exit
from ...deaths.evidence import Remains
from ...spec.policies.stop_policy import Urgency
from ...spec.worker_spec import WorkerSpec
from .hand_over import ReportMemory


class ProcessStarted(msgspec.Struct, frozen=True):
    """The process runs."""

    component_id: str
    generation: int
    pid: int
    note: str = ""
    """How a worker was started that may be forked from a warm process, in words."""


class SpawnFailed(msgspec.Struct, frozen=True):
    """The process could not be started; `error` is the operating system's text."""

    component_id: str
    generation: int
    error: str
    scarce: bool = False
    """The machine has no descriptor, process or memory left for it: the worker is not to blame."""


class ProcessExited(msgspec.Struct, frozen=True):
    """The process ended and was reaped."""

    component_id: str
    generation: int
    exit: Exit
    remains: Remains | None = None


class ProcessFound(msgspec.Struct, frozen=True):
    """What runs under this id according to the process table; generation None: nothing."""

    component_id: str
    generation: int | None
    pid: int | None = None
    ordered: int = 0
    """For a proxy: the latest generation that it had been asked to start when it sent the request."""


class StartProcess(msgspec.Struct, frozen=True):
    """Start this incarnation."""

    generation: int


class StopProcess(msgspec.Struct, frozen=True):
    """Stop this incarnation step by step; a hung one first dumps its stack."""

    generation: int
    urgency: Urgency
    hung: bool = False


class AdoptProcess(msgspec.Struct, frozen=True):
    """The monitor knows the incarnation that the former program left: watch its process."""


class UseSpec(msgspec.Struct, frozen=True):
    """Use this spec from the next start on."""

    spec: WorkerSpec


class PauseProcess(msgspec.Struct, frozen=True):
    """Pause the worker, or let it continue."""

    generation: int
    paused: bool


class ReportProcess(msgspec.Struct, frozen=True):
    """Report to the Supervisor what runs now, as `ProcessReported`."""


class WorkDrained(msgspec.Struct, frozen=True):
    """A worker that was told to take no more work has none left, or cannot be drained."""

    component_id: str
    generation: int
    problem: str = ""
    """Why it cannot be drained, in words."""


class LadderElapsed(msgspec.Struct, frozen=True):
    """Timer: a step of the stop ladder has timed out."""

    generation: int
    step: int


ProxyMessage = (
    StartProcess
    | StopProcess
    | PauseProcess
    | UseSpec
    | ReportProcess
    | ReportMemory
    | AdoptProcess
    | LadderElapsed
    | WorkDrained
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
)
