"""Of a process's life: to its proxy and from it."""

from __future__ import annotations

import msgspec

from ...deaths.death import Exit
from ...deaths.evidence import Remains
from ...spec.stop_urgency import Urgency
from ...spec.worker_spec import WorkerSpec


class ProcessStarted(msgspec.Struct, frozen=True):
    """The process is there."""

    component_id: str
    generation: int
    pid: int


class SpawnFailed(msgspec.Struct, frozen=True):
    """The process could not be started; the text is the system's own."""

    component_id: str
    generation: int
    error: str


class ProcessExited(msgspec.Struct, frozen=True):
    """The process ended and was reaped."""

    component_id: str
    generation: int
    exit: Exit
    remains: Remains | None = None


class ProcessFound(msgspec.Struct, frozen=True):
    """What runs under this id now, by the process table; generation None is nothing."""

    component_id: str
    generation: int | None
    pid: int | None = None
    told: int = 0
    """For a proxy: the latest generation that it was to start when it asked."""


class StartProcess(msgspec.Struct, frozen=True):
    """Start this incarnation."""

    generation: int


class StopProcess(msgspec.Struct, frozen=True):
    """End this incarnation, step by step; one that hangs says first where."""

    generation: int
    urgency: Urgency
    hung: bool = False


class UseSpec(msgspec.Struct, frozen=True):
    """From the next start on, this is what the worker is."""

    spec: WorkerSpec


class PauseProcess(msgspec.Struct, frozen=True):
    """Tell the worker to idle, or to go on."""

    generation: int
    paused: bool


class ReportProcess(msgspec.Struct, frozen=True):
    """Tell the Supervisor `ProcessReported`: what runs now."""


class LadderElapsed(msgspec.Struct, frozen=True):
    """Timer: a step of the stop ladder has waited long enough."""

    generation: int
    step: int


ProxyMessage = (
    StartProcess
    | StopProcess
    | PauseProcess
    | UseSpec
    | ReportProcess
    | LadderElapsed
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
)
