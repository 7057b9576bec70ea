"""What a host declares about its workers; checked when it is constructed.

A `WorkerSpec` names what to run (`Command` or `PythonCall`) and the policies that apply to it.
Everything here is immutable and compares by value. `presets` has the ready-made
sets of policies; `WorkerSpec.from_preset` takes one and overrides single fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType

from ..errors import Problem, SpecError
from .deployment.assigned import Assigned
from .deployment.rollout_policy import RolloutPolicy
from .deployment.socket_spec import MOST_SOCKETS, SocketSpec, set_problem, unknown_names
from .policies.alive_policy import AlivePolicy
from .policies.breaker_policy import BreakerPolicy
from .policies.group import Essential, Membership
from .policies.health_policy import HealthPolicy
from .policies.job_policy import JobPolicy
from .policies.log_policy import LogPolicy
from .policies.ready_policy import ReadyPolicy
from .policies.resource_limits import RecyclePolicy, ResourceLimits
from .policies.restart_policy import RestartOn, RestartPolicy
from .policies.schedule import SchedulePolicy, WorkerKind
from .policies.stop_policy import StopPolicy
from .policies.work_item_policy import ReleasePolicy
from .program import Command, PythonCall
from .surroundings import Surroundings
from .validation import (
    convert_words,
    field_problems,
    misfit,
    refuse,
    setting,
)

COMPONENT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class PauseMode(StrEnum):
    """What a pause does to the process."""

    STOP = "stop"
    IDLE = "idle"


class Until(StrEnum):
    """What a worker must be before those after it start."""

    READY = "ready"
    DONE = "done"
    """Only a task (`kind = "once"`) is ever done."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker: its id, what it runs, and the policies it lives under."""

    id: str
    run: Command | PythonCall
    restart: RestartPolicy = setting(None)
    health: HealthPolicy = setting(None)
    stop: StopPolicy = setting(None)
    pause_mode: PauseMode = setting(
        PauseMode.STOP,
        "What a pause does to the process: stop ends it; idle lets it run, and a worker that reports its "
        "health is told to idle.",
    )
    jobs: JobPolicy | None = setting(factory=JobPolicy)
    limits: ResourceLimits | None = setting(None)
    recycle: RecyclePolicy | None = setting(None)
    rollout: RolloutPolicy | None = setting(None)
    breaker: BreakerPolicy | None = None
    """Restarts of all workers with the same breaker are held while their dependency is unavailable."""
    release: ReleasePolicy | None = setting(None)
    group: str = ""
    """The name of the group of interchangeable workers that it belongs to; empty for none."""
    env: Mapping[str, str] = setting(
        description="The environment variables of the worker.", factory=lambda: MappingProxyType({})
    )
    inherit_env: tuple[str, ...] = setting(
        (), "Names of further variables to take over from the supervisor's environment; AWS_* takes all such."
    )
    cwd: str | None = setting(None, "The working directory; in a file, relative to that file.")
    user: str | None = setting(
        None,
        "The user that the process runs as; only root may set it. A worker that serves queues still gets the"
        " address of the database; see worker_database.",
    )
    after: tuple[str, ...] = ()
    """Ids of workers that must be ready, tasks done, before this one starts; they are stopped after it."""
    until: Mapping[str, Until] = field(default_factory=lambda: MappingProxyType({}))
    """By id: what workers of `after` must be, where that is not what their kind implies."""
    kind: WorkerKind = setting(
        WorkerKind.SERVICE,
        "service: the process is meant to run on; once: it is meant to end, and the worker is done when it "
        "exits with success; scheduled: the same by the clock, which every or cron say by themselves.",
    )
    ready: ReadyPolicy | None = setting(None)
    surroundings: Surroundings = Surroundings()
    """What the supervisor sets up for its process: limits, priorities, groups, stdin, control group."""
    log: LogPolicy | None = setting(None)
    alive: AlivePolicy | None = setting(None)
    essential: bool | Essential = setting(
        False,
        "Whether the supervisor stops, with the exit code of this worker, when the worker is given up or "
        "fails and is not restarted (true or on_failure), or also when it ends well (on_end).",
    )
    schedule: SchedulePolicy | None = None
    """Runs by the clock, if it has any; in a file its keys stand beside the others of the worker."""
    sockets: tuple[SocketSpec, ...] = ()
    """The listening sockets that each of its processes gets, as descriptors from 3 on."""
    membership: tuple[Membership, ...] = ()
    """Its places in groups, innermost first; `System` and the file derive them from the groups."""
    obstacle: str = field(default="", repr=False)
    """Why it cannot be started, if that was known when its settings were read: every start of it fails with
    this reason, and its restart policy decides how often it is tried."""
    assigned: Assigned | None = field(default=None, repr=False)
    """Its node and epoch in a cluster; set by the agent of the node. No part of its version: it stands in no
    fingerprint."""

    def __post_init__(self) -> None:
        # An explicit None must never surface later, when a crash is being handled.
        for name, default in (("restart", RestartPolicy), ("health", HealthPolicy), ("stop", StopPolicy)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default())
        if self.schedule is not None and self.kind in (WorkerKind.SERVICE, WorkerKind.ONCE):
            object.__setattr__(self, "kind", WorkerKind.SCHEDULED)
        if isinstance(self.env, Mapping):
            object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        if isinstance(self.until, Mapping) and not misfit(self.until, Mapping[str, Until]):
            words = {id_: Until(word) for id_, word in self.until.items()}
            object.__setattr__(self, "until", MappingProxyType(words))
        convert_words(self)
        refuse(self.id, self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this spec, field by field."""
        wrong = {problem.field: problem for problem in field_problems(self)}
        yield from wrong.values()
        if "id" not in wrong and not COMPONENT_ID.fullmatch(self.id):
            yield Problem("id", f"must match {COMPONENT_ID.pattern}", self.id)
        if "run" not in wrong:
            for problem in self.run.problems():
                yield problem if problem.field in ("warm", "standby") else replace(problem, field="run")
        if "env" not in wrong:
            yield from _environment_problems(self.env)
        if "cwd" not in wrong and self.cwd is not None and (not self.cwd or "\0" in self.cwd):
            yield Problem("cwd", "is not a path", self.cwd)
        if "user" not in wrong and self.user is not None and (not self.user or "\0" in self.user):
            yield Problem("user", "is not a user name", self.user)
        if not {"run", "jobs"} & wrong.keys() and self.serves and not self.run.reports_health:
            reason = "require reports_health = true (the queue address is sent over the health channel)"
            yield Problem("jobs.queues", reason)
        if "kind" not in wrong and self.is_task and self.recycle is not None:
            yield Problem("recycle", "is for services only: the process of a task ends by itself")
        if "kind" not in wrong and self.is_task and self.rollout is not None:
            yield Problem("rollout", "is for services only: the process of a task ends by itself")
        if "kind" not in wrong and self.kind is WorkerKind.SCHEDULED and self.schedule is None:
            yield Problem("kind", "needs every or cron, which say when it runs", self.kind.value)
        if "essential" not in wrong and self.schedule is not None and self.essential is not False:
            reason = "is not for a worker with a schedule: its runs end, and it is never given up"
            yield Problem("essential", reason)
        notifies = "ready" not in wrong and self.ready is not None and self.ready.notify
        if notifies and "env" not in wrong and "NOTIFY_SOCKET" in self.env:
            yield Problem("env", "NOTIFY_SOCKET is set by Rekindle, because of ready.notify")
        if "alive" not in wrong and self.alive is not None and self.alive.probe is None:
            yield Problem("alive", "must name what is asked: http, tcp or command")
        if not {"sockets", "run", "env"} & wrong.keys():
            yield from _socket_problems(self)
        if "after" not in wrong and self.id in self.after:
            yield Problem("after", "names the worker itself")

    @property
    def is_task(self) -> bool:
        """Whether its process is meant to end: an exit with success is not followed by a restart."""
        return self.kind is not WorkerKind.SERVICE

    @property
    def temporary(self) -> bool:
        """Whether the worker is never restarted, by itself or with its group."""
        never = self.restart.restart_on is RestartOn.NEVER and not self.restart.restart_on_signals
        return never or not self.restart.enabled

    @property
    def serves(self) -> tuple[str, ...]:
        """The queues that the worker takes jobs from; most workers have none."""
        return () if self.jobs is None else self.jobs.queues

    @classmethod
    def from_preset(
        cls,
        id: str,
        run: Command | PythonCall,
        preset: str = "steady",
        *,
        restart: Mapping[str, object] | None = None,
        health: Mapping[str, object] | None = None,
        stop: Mapping[str, object] | None = None,
        **others: object,
    ) -> WorkerSpec:
        """A spec under a named preset, with single fields overridden."""
        from .presets import PRESETS, overridden

        if preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise SpecError(str(id), [Problem("preset", f"must be one of {known}", preset)])
        chosen = PRESETS[preset]
        problems: list[Problem] = []
        settings: dict[str, object] = {
            "restart": overridden("restart", chosen.restart, restart, problems),
            "health": overridden("health", chosen.health, health, problems),
            "stop": overridden("stop", StopPolicy(), stop, problems),
            "pause_mode": chosen.pause_mode,
            "jobs": chosen.jobs,
            "limits": chosen.limits,
        }
        unknown = sorted(others.keys() - {each.name for each in fields(cls)})
        problems += [Problem(name, "is not a setting of a worker") for name in unknown]
        if isinstance(jobs := others.get("jobs"), Mapping):
            others["jobs"] = overridden("jobs", chosen.jobs or JobPolicy(), jobs, problems)
        settings |= {name: value for name, value in others.items() if name not in unknown}
        try:
            spec = cls(id, run, **settings)  # type: ignore[arg-type]
        except SpecError as error:
            raise SpecError(str(id), [*problems, *error.problems]) from None
        refuse(id, problems)
        return spec


def served_by(specs: Iterable[WorkerSpec]) -> tuple[str, ...]:
    """The queues that at least one of these workers serves, sorted by name."""
    return tuple(sorted({queue for spec in specs for queue in spec.serves}))


RESERVED = frozenset(
    f"REKINDLE_{name}"
    for name in (
        "FD", "GENERATION", "HEARTBEAT_S", "JOBS", "LAST_WORDS", "NODE", "PATH", "PYTHONPATH",
        "SUPERVISOR_PID", "SYSTEM", "TOKEN", "WORKER",
    )
)  # fmt: skip
"""Variables that identify a worker. A supervisor that is a worker itself does not pass its own on."""


LISTENING = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
"""The variables that tell a process of its sockets, as systemd does."""


def _socket_problems(spec: WorkerSpec) -> Iterator[Problem]:
    if len({each.name for each in spec.sockets}) < len(spec.sockets):
        yield Problem("sockets", "names a socket twice")
    elif (problem := set_problem(spec.sockets)) is not None:
        yield Problem("sockets", " ".join(problem))
    if len(spec.sockets) > MOST_SOCKETS:
        yield Problem("sockets", f"names more than {MOST_SOCKETS}")
    if spec.sockets and (names := [name for name in LISTENING if name in spec.env]):
        yield Problem("env", f"{names[0]} is set by Rekindle, because of sockets")
    argv = spec.run.argv if isinstance(spec.run, Command) else ()
    for name in unknown_names(argv, spec.sockets) if spec.sockets else ():
        yield Problem("run", f"has {{socket.{name}}}, which is not among its sockets")


def _environment_problems(env: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in env.items():
        if name in RESERVED:
            yield Problem("env", f"{name} is reserved: Rekindle sets it for the worker")
        if not name or "=" in name or "\0" in name or "\0" in value:
            yield Problem("env", f"{name!r:.80} is not valid in an environment")
