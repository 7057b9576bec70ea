"""The handlers of the routes, and the shapes of their results."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec.structs import replace

from ...deaths.death import signal_number
from ...errors import UnknownWorkerError
from ...facts.audit_entry import AuditEntry
from ...facts.records import DeathRecord
from ...facts.topic_states import QueueState
from ...messages import BreakerStatus, GroupStatus, RolloutStatus, Snapshot, WorkerStatus
from ...messages.topics import QUEUES, Topics
from ...processes.watch.transcript import OutputLines
from ...spec.worker_spec import PauseMode
from ...system.inboxes import Inbox
from ...views.diagnosis import WorkerDiagnosis
from ...views.event_sentences import document_with_text
from ...views.log_page import LogPage, LogQuery
from ..gateway_state import GatewayState
from ..operator import Operator, Rolling
from ..serving.json_values import CommandResult, view, view_type
from ..serving.own_actors import ActorKind, libraries, own_actors
from ..serving.own_usage import own_usage
from .event_log import read_log
from .request_bodies import EventLogQuery, InvalidRequestError, OutputQuery, SignalArguments, topics_of
from .route import Request

SNAPSHOT_S = 5.0
"""How long the actors may take to answer."""

Worker = view_type(WorkerStatus)
Explanation = view_type(WorkerDiagnosis)
Death = view_type(DeathRecord)
Order = view_type(AuditEntry)
Gateway = view_type(GatewayState)
Breaker = view_type(BreakerStatus)
StandingGroup = view_type(GroupStatus)
WrittenLines = view_type(OutputLines)
LoggedLines = view_type(LogPage)
RollingState = view_type(Rolling)
RolloutState = view_type(RolloutStatus)


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor itself, and the state of its store."""

    version: str
    pid: int
    started_at_wall_ms: int
    at_wall_ms: int
    """The supervisor's clock now; the client's may differ."""
    state_directory: str
    dashboard: str | None
    """The URL of the dashboard, if it is enabled."""
    workers: int
    paused: bool
    unsaved: int
    """Records that are not persisted yet."""
    degraded: str | None
    """Why the store is unavailable, if it is."""
    gateways: list[Gateway]  # type: ignore[valid-type]
    """The gateways that send events elsewhere."""
    queue_depth: int
    """How many jobs wait in all queues, when they were last looked at."""
    python: str
    """The version of the interpreter."""
    memory_mb: float | None
    """What the supervisor's process uses now, without its workers."""
    threads: int
    descriptors: int | None
    configuration: str | None
    """The configuration file, if there is one."""
    database: str | None
    """Where the state is stored, without a password; None if only the host knows."""
    libraries: dict[str, str]
    """The versions of the libraries that the supervisor uses."""
    actors: list[ActorKind]
    """The actors of the supervisor's process."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """All workers, in the order of declaration, and the state of the store."""

    workers: list[Worker]  # type: ignore[valid-type]
    paused: bool
    unsaved: int
    degraded: str | None
    breakers: list[Breaker]  # type: ignore[valid-type]
    """The open ones, which hold back the restarts of their workers."""
    gateways: list[Gateway]  # type: ignore[valid-type]
    groups: list[StandingGroup]  # type: ignore[valid-type]
    """The groups of workers that stand and fall together, the enclosing ones first."""
    rollouts: list[RolloutState]  # type: ignore[valid-type]
    """Those under way, and for each table the latest one that has ended."""


class History(msgspec.Struct, frozen=True):
    """The persisted deaths of a worker, newest first."""

    id: str
    deaths: list[Death]  # type: ignore[valid-type]


class Deaths(msgspec.Struct, frozen=True):
    """The latest persisted deaths of all workers, newest first."""

    deaths: list[Death]  # type: ignore[valid-type]


class Output(msgspec.Struct, frozen=True):
    """The last output lines of a worker."""

    id: str
    lines: list[str]


class Used(msgspec.Struct, frozen=True):
    """What one worker and its child processes use together."""

    id: str
    memory_mb: float
    cpu_percent: float | None
    threads: int
    descriptors: int | None
    component_id: str
    """The same as `id`, under the name that it has everywhere else."""


class Stray(msgspec.Struct, frozen=True):
    """A process that a worker started and that left the worker's session."""

    pid: int
    id: str
    """The worker that started it."""
    component_id: str
    """The same as `id`, under the name that it has everywhere else."""


class Resources(msgspec.Struct, frozen=True):
    """What the running workers use now, and their stray processes."""

    workers: list[Used]
    strays: list[Stray]
    """They end with the supervisor, not with their worker."""


class Audit(msgspec.Struct, frozen=True):
    """The latest persisted commands, newest first."""

    entries: list[Order]  # type: ignore[valid-type]


class EventLog(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the log, oldest first, and the range that is persisted."""

    events: list[dict[str, Any]]
    """Each as the event stream sends it."""
    oldest: int
    newest: int
    next_after: int
    """Pass this as `after` to read on."""


# ── queries ──────────────────────────────────────────────────────────────────────────────


def info(request: Request) -> object:
    report, origins = request.operator.report(), request.operator.origins()
    return Info(
        version=request.identity.version,
        pid=request.identity.pid,
        started_at_wall_ms=request.identity.started_at_wall_ms,
        at_wall_ms=time.time_ns() // 1_000_000,
        state_directory=str(request.identity.state_directory),
        dashboard=request.identity.dashboard,
        workers=len(report.workers),
        paused=report.paused,
        unsaved=report.unsaved,
        degraded=report.degraded,
        gateways=view(request.operator.gateways()),
        queue_depth=_queue_depth(request.operator),
        **view(own_usage()),
        configuration=origins["configuration"],
        database=origins["database"],
        libraries=libraries(),
        actors=own_actors(),
    )


def _queue_depth(operator: Operator) -> int:
    """The figure that the actors have; the store is not read."""
    inbox = Inbox()
    operator.subscribe(inbox, QUEUES)
    try:
        snapshot: Snapshot = inbox.get(SNAPSHOT_S)
    finally:
        operator.unsubscribe(inbox)
    return sum(each.state.pending for each in snapshot.states if isinstance(each.state, QueueState))


def workers(request: Request) -> object:
    return {**view(request.operator.report()), "gateways": view(request.operator.gateways())}


def worker(request: Request) -> object:
    return view(request.operator.status(request.target))


def history(request: Request) -> object:
    deaths = request.operator.deaths(request.target, limit=request.arguments.limit)
    if not deaths:
        request.operator.check(request.target)  # a removed worker still has its deaths
    return History(request.target, view(deaths))


def deaths(request: Request) -> object:
    return Deaths(view(request.operator.deaths(limit=request.arguments.limit)))


def explanation(request: Request) -> object:
    return view(request.operator.diagnose(request.target))


def output(request: Request) -> object:
    request.operator.status(request.target)
    return Output(request.target, list(request.operator.output(request.target)))


def written(request: Request) -> object:
    query: OutputQuery = request.arguments
    names = [name for name in query.ids.split(",") if name]
    ids = {id_ for name in names for id_ in _ids_of(request, name, required=query.after is None)}
    if names and not ids:  # all of them were removed
        return view(replace(request.operator.written(after=query.after), lines=()))
    return view(request.operator.written(*ids, after=query.after, last=query.last))


def logged(request: Request) -> object:
    query = msgspec.convert(request.arguments, LogQuery, from_attributes=True)
    return view(request.operator.logged(request.target, query))


def _ids_of(request: Request, name: str, *, required: bool) -> list[str]:
    """The workers that a name means: one, or a group. A client that follows them may outlast them."""
    report = request.operator.report()
    known = [worker.component_id for worker in report.workers]
    if name in known:
        return [name]
    together = next((group.workers for group in report.groups if group.name == name), ())
    members = list(together) or [id_ for id_ in known if request.operator.spec(id_).group == name]
    if required and not members:
        raise UnknownWorkerError(name[:80], known)
    return members


def resources(request: Request) -> object:
    usages = request.operator.usages()
    strays = [Stray(pid, id_, id_) for pid, id_ in request.operator.strays()]
    return Resources([Used(id_, **view(usage), component_id=id_) for id_, usage in usages.items()], strays)


def event_log(request: Request) -> object:
    query: EventLogQuery = request.arguments
    found = read_log(request.operator.event_log, query.after, query.limit, Topics(topics_of(query.topics)))
    return EventLog(
        events=[msgspec.json.decode(document_with_text(record)) for record in found.events],
        oldest=found.oldest,
        newest=found.newest,
        next_after=found.next_after,
    )


def audit(request: Request) -> object:
    return Audit(view(request.operator.audited(limit=request.arguments.limit)))


def metrics(request: Request) -> object:
    text = request.operator.metrics()
    if text is None:
        message = "metrics are disabled; to enable them set enabled = true in [metrics]"
        raise InvalidRequestError(404, "no_metrics", message)
    return text


# ── commands ─────────────────────────────────────────────────────────────────────────────


def restart(request: Request) -> object:
    request.operator.restart(request.target)
    return CommandResult()


def stop(request: Request) -> object:
    return CommandResult(detail=view(request.operator.stop_worker(request.target)))


def start(request: Request) -> object:
    return _outcome(request.operator.start_worker(request.target))


def _outcome(was_needed: bool) -> CommandResult:
    return CommandResult() if was_needed else CommandResult(detail={"already": True})


def reset(request: Request) -> object:
    request.operator.reset(request.target)
    return CommandResult()


def signal(request: Request) -> object:
    arguments: SignalArguments = request.arguments
    if signal_number(arguments.signal) is None:
        raise InvalidRequestError(422, "invalid", f"{arguments.signal!r} is not a signal")
    request.operator.signal(request.target, arguments.signal)
    return CommandResult()


def pause(request: Request) -> object:
    ids = (request.target,) if request.target else ()
    running = [
        worker
        for worker in request.operator.report().workers
        if worker.pid is not None and (not ids or worker.component_id in ids)
    ]
    request.operator.pause(*ids, reason=request.arguments.reason, for_s=request.arguments.for_s)
    modes = {mode: [each.component_id for each in running if each.pause_mode is mode] for mode in PauseMode}
    return CommandResult(detail={"stopped": modes[PauseMode.STOP], "idle": modes[PauseMode.IDLE]})


def resume(request: Request) -> object:
    return _outcome(request.operator.resume(*((request.target,) if request.target else ())))


def reload(request: Request) -> object:
    return CommandResult(detail=dict(request.operator.reload()))


def shut_down(request: Request) -> object:
    request.operator.shut_down()
    return CommandResult()


def upgrade(request: Request) -> object:
    arguments = request.arguments
    return CommandResult(detail=dict(request.operator.upgrade(arguments.python, only_check=arguments.check)))


def latest_upgrade(request: Request) -> object:
    return CommandResult(detail=dict(request.operator.latest_upgrade()))


def scale(request: Request) -> object:
    return CommandResult(detail=dict(request.operator.scale(request.target, request.arguments.count) or {}))


def roll(request: Request) -> object:
    wanted = request.arguments
    begun = request.operator.rolling_restart(request.target, surge=wanted.surge, roll_back=wanted.roll_back)
    return CommandResult(detail=dict(begun or {}))


def rolling(request: Request) -> object:
    return view(request.operator.rolling(request.target))
