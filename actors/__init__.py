"""A supervisor for worker processes, as actors: what a host imports.

`System` is the typed front; `messages` has what a host's own actors tell and hear.
"""

from typing import TYPE_CHECKING

from loguru import logger

from . import messages
from .deaths.crash_bundle import Bundle
from .deaths.death import Cause, Death, Exit
from .deaths.findings import Confidence, Finding
from .errors import (
    ConfigurationError,
    ExecutorBrokenError,
    JobFailedError,
    PausedError,
    PayloadError,
    RekindleError,
    RequestRefusedError,
    RequestTimeoutError,
    SocketError,
    SpecError,
    StoreDamagedError,
    StoreError,
    StoreOwnedError,
    StoreTooNewError,
    StoreUnavailableError,
    TaskError,
    TaskTimeoutError,
    UnknownBatchError,
    UnknownDeathError,
    UnknownJobError,
    UnknownQueueError,
    UnknownWorkerError,
    WorkerCrashedError,
)
from .facts.health_status import Status
from .facts.jobs import JobState as JobStatus
from .facts.jobs import JobView, QueueStats, Unique
from .facts.runs import Run, RunState
from .facts.topic_states import JobTopicState as JobState
from .facts.topic_states import QueueState, SystemHealthState, WorkerState
from .messages import *  # noqa: F403  # every command, reply and event
from .processes.spawn.env_file import read_env_file
from .spec.deployment.drain_policy import DrainPolicy
from .spec.deployment.rollout_policy import RolloutPolicy
from .spec.deployment.socket_spec import SocketSpec
from .spec.policies.alive_policy import AlivePolicy
from .spec.policies.breaker_policy import BreakerPolicy
from .spec.policies.group import Essential, Group, GroupExhausted, Strategy
from .spec.policies.health_policy import HealthPolicy
from .spec.policies.job_policy import JobPolicy
from .spec.policies.log_policy import LogFormat, LogPolicy
from .spec.policies.queues.periodic import Periodic
from .spec.policies.queues.queue_policy import QueuePolicy
from .spec.policies.ready_policy import ReadyPolicy
from .spec.policies.resource_limits import RecyclePolicy, ResourceLimits
from .spec.policies.restart_policy import RestartOn, RestartPolicy, WindowMode
from .spec.policies.schedule import Missed, Overlap, SchedulePolicy
from .spec.policies.stop_policy import StopPolicy
from .spec.policies.work_item_policy import Release, ReleasePolicy
from .spec.presets import PRESETS
from .spec.program import Command, PythonCall, command
from .spec.surroundings import CgroupPolicy, Rlimits, Surroundings
from .spec.worker_spec import PauseMode, WorkerSpec
from .system.facade import System
from .system.inboxes import EventStream

if TYPE_CHECKING:
    from .executor import RekindleExecutor
else:

    def __getattr__(name):
        """Load the executor when it is used first: a supervisor of workers needs none of it."""
        if name == "RekindleExecutor":
            from .executor import RekindleExecutor

            return RekindleExecutor
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# A library stays silent until its host asks for its log: `logger.enable("rekindle")`.
logger.disable("rekindle")

__all__ = [
    "PRESETS",
    "AlivePolicy",
    "BreakerPolicy",
    "Bundle",
    "Cause",
    "CgroupPolicy",
    "Command",
    "Confidence",
    "ConfigurationError",
    "Death",
    "DrainPolicy",
    "Essential",
    "EventStream",
    "ExecutorBrokenError",
    "Exit",
    "Finding",
    "Group",
    "GroupExhausted",
    "HealthPolicy",
    "JobFailedError",
    "JobPolicy",
    "JobState",
    "JobStatus",
    "JobView",
    "LogFormat",
    "LogPolicy",
    "Missed",
    "Overlap",
    "PauseMode",
    "PausedError",
    "PayloadError",
    "Periodic",
    "PythonCall",
    "QueuePolicy",
    "QueueState",
    "QueueStats",
    "ReadyPolicy",
    "RecyclePolicy",
    "RekindleError",
    "RekindleExecutor",
    "Release",
    "ReleasePolicy",
    "RequestRefusedError",
    "RequestTimeoutError",
    "ResourceLimits",
    "RestartOn",
    "RestartPolicy",
    "Rlimits",
    "RolloutPolicy",
    "Run",
    "RunState",
    "SchedulePolicy",
    "SocketError",
    "SocketSpec",
    "SpecError",
    "Status",
    "StopPolicy",
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
    "TaskTimeoutError",
    "Unique",
    "UnknownBatchError",
    "UnknownDeathError",
    "UnknownJobError",
    "UnknownQueueError",
    "UnknownWorkerError",
    "WindowMode",
    "WorkerCrashedError",
    "WorkerSpec",
    "WorkerState",
    "command",
    "read_env_file",
]
__all__ += messages.__all__
