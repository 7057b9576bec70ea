"""A supervisor for worker processes, as actors: what a host imports.

`System` is the typed front; `messages` has what a host's own actors tell and hear.
"""

from loguru import logger

from .deaths.crash_bundle import Bundle
from .deaths.death import Cause, Death, Exit
from .deaths.findings import Confidence, Finding
from .errors import (
    ConfigurationError,
    ExecutorBrokenError,
    PausedError,
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
    UnknownDeathError,
    UnknownJobError,
    UnknownQueueError,
    UnknownWorkerError,
    WorkerCrashedError,
)
from .executor import RekindleExecutor
from .facts.health_status import Status
from .facts.jobs import JobState as JobStatus
from .facts.jobs import JobView, QueueStats
from .facts.topic_states import JobTopicState as JobState
from .facts.topic_states import QueueState, SystemHealthState, WorkerState
from .messages import (
    AddWorker,
    BreakerClosed,
    BreakerOpened,
    BreakerStatus,
    CanaryStarted,
    Done,
    EssentialEnded,
    FailureLifted,
    GroupEscalated,
    GroupGivenUp,
    GroupRestarting,
    GroupRestored,
    GroupStatus,
    JobConvicted,
    JobRequeued,
    PauseBegan,
    PauseEnded,
    PauseWorkers,
    Published,
    Refused,
    RemoveWorker,
    ReportStatus,
    ResetWorker,
    ResourceViolated,
    ResourceWarned,
    RestartWorker,
    ResumeWorkers,
    Snapshot,
    StartWorkers,
    StateChanged,
    StatusChanged,
    StatusReport,
    StopResult,
    StopWorkers,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerRemoved,
    WorkerReset,
    WorkerSignalled,
    WorkersStopped,
    WorkerStarted,
    WorkerStatus,
    WorkerStopped,
    WorkerStopping,
    WorkReleased,
    WorkReleaseFailed,
)
from .processes.spawn.env_file import read_env_file
from .spec.policies.breaker_policy import BreakerPolicy
from .spec.policies.group import Essential, Group, GroupExhausted, Strategy
from .spec.policies.health_policy import HealthPolicy
from .spec.policies.job_policy import JobPolicy
from .spec.policies.log_policy import LogFormat, LogPolicy
from .spec.policies.ready_policy import ReadyPolicy
from .spec.policies.resource_limits import RecyclePolicy, ResourceLimits
from .spec.policies.restart_policy import RestartOn, RestartPolicy, WindowMode
from .spec.policies.stop_policy import StopPolicy
from .spec.policies.work_release import Release, ReleasePolicy
from .spec.presets import PRESETS
from .spec.program import Command, PythonCall, command
from .spec.surroundings import Rlimits, Surroundings
from .spec.worker_spec import PauseMode, WorkerSpec
from .system.facade import System
from .system.inboxes import EventStream

# A library stays silent until its host asks for its log: `logger.enable("rekindle")`.
logger.disable("rekindle")

__all__ = [
    "PRESETS",
    "AddWorker",
    "BreakerClosed",
    "BreakerOpened",
    "BreakerPolicy",
    "BreakerStatus",
    "Bundle",
    "CanaryStarted",
    "Cause",
    "Command",
    "Confidence",
    "ConfigurationError",
    "Death",
    "Done",
    "Essential",
    "EssentialEnded",
    "EventStream",
    "ExecutorBrokenError",
    "Exit",
    "FailureLifted",
    "Finding",
    "Group",
    "GroupEscalated",
    "GroupExhausted",
    "GroupGivenUp",
    "GroupRestarting",
    "GroupRestored",
    "GroupStatus",
    "HealthPolicy",
    "JobConvicted",
    "JobPolicy",
    "JobRequeued",
    "JobState",
    "JobStatus",
    "JobView",
    "LogFormat",
    "LogPolicy",
    "PauseBegan",
    "PauseEnded",
    "PauseMode",
    "PauseWorkers",
    "PausedError",
    "PayloadError",
    "Published",
    "PythonCall",
    "QueueState",
    "QueueStats",
    "ReadyPolicy",
    "RecyclePolicy",
    "Refused",
    "RekindleError",
    "RekindleExecutor",
    "Release",
    "ReleasePolicy",
    "RemoveWorker",
    "ReportStatus",
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
    "Rlimits",
    "Snapshot",
    "SpecError",
    "StartWorkers",
    "StateChanged",
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
    "Strategy",
    "Surroundings",
    "System",
    "SystemHealthState",
    "TaskError",
    "UnknownDeathError",
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
    "WorkerRemoved",
    "WorkerReset",
    "WorkerSignalled",
    "WorkerSpec",
    "WorkerStarted",
    "WorkerState",
    "WorkerStatus",
    "WorkerStopped",
    "WorkerStopping",
    "WorkersStopped",
    "command",
    "read_env_file",
]
