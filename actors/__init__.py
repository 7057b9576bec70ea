"""A supervisor for worker processes, as actors: what a host imports.

`System` is the typed front; `messages` has what a host's own actors tell and hear.
"""

from loguru import logger

from .deaths import Cause, Death, Exit
from .edges import EventStream
from .errors import (
    ExecutorBrokenError,
    PayloadError,
    RekindleError,
    RequestRefusedError,
    RequestTimeoutError,
    SpecError,
    StoreDamagedError,
    StoreError,
    StoreOwnedError,
    StoreTooNewError,
    StoreUnavailableError,
    TaskError,
    UnknownJobError,
    UnknownQueueError,
    UnknownWorkerError,
    WorkerCrashedError,
)
from .executor import RekindleExecutor
from .health import Status
from .job_policy import JobPolicy
from .jobs import JobState, JobView, QueueStats
from .limits import RecyclePolicy, ResourceLimits
from .messages import (
    JobConvicted,
    JobRequeued,
    PauseBegan,
    PauseEnded,
    PauseWorkers,
    ResetWorker,
    ResourceViolated,
    ResourceWarned,
    RestartWorker,
    ResumeWorkers,
    StartWorkers,
    StatusChanged,
    StatusReport,
    StopResult,
    StopWorkers,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerReset,
    WorkerStarted,
    WorkerStatus,
    WorkerStopped,
    WorkReleased,
    WorkReleaseFailed,
)
from .presets import PRESETS
from .spec import (
    Command,
    HealthPolicy,
    PauseMode,
    PythonCall,
    RestartOn,
    RestartPolicy,
    StopPolicy,
    WindowMode,
    WorkerSpec,
    command,
)
from .system import System
from .work_items import Release, ReleasePolicy

# A library stays silent until its host asks for its log: `logger.enable("rekindle")`.
logger.disable("rekindle")

__all__ = [
    "PRESETS",
    "Cause",
    "Command",
    "Death",
    "EventStream",
    "ExecutorBrokenError",
    "Exit",
    "HealthPolicy",
    "JobConvicted",
    "JobPolicy",
    "JobRequeued",
    "JobState",
    "JobView",
    "PauseBegan",
    "PauseEnded",
    "PauseMode",
    "PauseWorkers",
    "PayloadError",
    "PythonCall",
    "QueueStats",
    "RecyclePolicy",
    "RekindleError",
    "RekindleExecutor",
    "Release",
    "ReleasePolicy",
    "RequestRefusedError",
    "RequestTimeoutError",
    "ResetWorker",
    "ResourceLimits",
    "ResourceViolated",
    "ResourceWarned",
    "RestartOn",
    "RestartPolicy",
    "RestartWorker",
    "ResumeWorkers",
    "SpecError",
    "StartWorkers",
    "Status",
    "StatusChanged",
    "StatusReport",
    "StopPolicy",
    "StopResult",
    "StopWorkers",
    "StoreDamagedError",
    "StoreError",
    "StoreOwnedError",
    "StoreTooNewError",
    "StoreUnavailableError",
    "System",
    "TaskError",
    "UnknownJobError",
    "UnknownQueueError",
    "UnknownWorkerError",
    "WindowMode",
    "WorkReleaseFailed",
    "WorkReleased",
    "WorkerCrashedError",
    "WorkerDied",
    "WorkerFailed",
    "WorkerRecycled",
    "WorkerReset",
    "WorkerSpec",
    "WorkerStarted",
    "WorkerStatus",
    "WorkerStopped",
    "command",
]
