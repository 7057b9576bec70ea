"""What each route answers: the shapes, and how the operator is asked for them."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec.structs import replace

from ...errors import UnknownWorkerError
from ...facts.audit_entry import AuditEntry
from ...facts.records import DeathRecord
from ...messages import BreakerStatus, WorkerStatus
from ...messages.event_json import document
from ...messages.topics import Topics
from ...processes.watch.transcript import OutputLines
from ..gateway_state import GatewayState
from ..operator import Rolling
from ..serving.json_values import Outcome, view, view_type
from .event_log import read_log
from .request_bodies import InvalidRequestError, OutputQuery, Reading, topics_of
from .route import Asked

Worker = view_type(WorkerStatus)
Death = view_type(DeathRecord)
Order = view_type(AuditEntry)
Gateway = view_type(GatewayState)
Breaker = view_type(BreakerStatus)
WrittenLines = view_type(OutputLines)
RollingState = view_type(Rolling)


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor itself, and how its store is."""

    version: str
    pid: int
    started_at_wall_ms: int
    at_wall_ms: int
    """What its clock says now; that of who asks may say something else."""
    state_directory: str
    dashboard: str | None
    """Where the dashboard is, if it is turned on."""
    workers: int
    paused: bool
    unsaved: int
    """Records that the store could not take yet."""
    degraded: str | None
    """What is wrong with the store, if anything."""
    gateways: list[Gateway]  # type: ignore[valid-type]
    """Those that tell events to the outside."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """All workers, in the order in which they were declared, and how the store is."""

    workers: list[Worker]  # type: ignore[valid-type]
    paused: bool
    unsaved: int
    degraded: str | None
    breakers: list[Breaker]  # type: ignore[valid-type]
    """Those that are open: restarts of their workers are held back."""
    gateways: list[Gateway]  # type: ignore[valid-type]


class History(msgspec.Struct, frozen=True):
    """A worker's deaths that were kept, newest first."""

    id: str
    deaths: list[Death]  # type: ignore[valid-type]


class Deaths(msgspec.Struct, frozen=True):
    """The latest deaths of all workers that were kept, newest first."""

    deaths: list[Death]  # type: ignore[valid-type]


class Explanation(msgspec.Struct, frozen=True):
    """Why a worker is as it is, in sentences."""

    id: str
    text: str


class Output(msgspec.Struct, frozen=True):
    """The last lines that a worker wrote."""

    id: str
    lines: list[str]


class Used(msgspec.Struct, frozen=True):
    """What one worker and everything that it started use together."""

    id: str
    memory_mb: float
    cpu_percent: float | None
    threads: int
    descriptors: int | None


class Stray(msgspec.Struct, frozen=True):
    """A process that a worker started and that left its session."""

    pid: int
    id: str
    """The worker."""


class Resources(msgspec.Struct, frozen=True):
    """What the workers that run use now, and who left them."""

    workers: list[Used]
    strays: list[Stray]
    """They are not ended with their worker, but with the supervisor."""


class Audit(msgspec.Struct, frozen=True):
    """The latest orders that were kept, newest first."""

    entries: list[Order]  # type: ignore[valid-type]


class EventLog(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the log, oldest first, and which ones are kept at all."""

    events: list[dict[str, Any]]
    """Each as it is sent over the stream."""
    oldest: int
    newest: int
    next_after: int
    """Ask with `after` set to this for what comes next."""


# ── what there is to see ─────────────────────────────────────────────────────────────────


def info(asked: Asked) -> object:
    report = asked.operator.report()
    return Info(
        version=asked.identity.version,
        pid=asked.identity.pid,
        started_at_wall_ms=asked.identity.started_at_wall_ms,
        at_wall_ms=time.time_ns() // 1_000_000,
        state_directory=str(asked.identity.state_directory),
        dashboard=asked.identity.dashboard,
        workers=len(report.workers),
        paused=report.paused,
        unsaved=report.unsaved,
        degraded=report.degraded,
        gateways=view(asked.operator.gateways()),
    )


def workers(asked: Asked) -> object:
    return {**view(asked.operator.report()), "gateways": view(asked.operator.gateways())}


def worker(asked: Asked) -> object:
    return view(asked.operator.status(asked.target))


def history(asked: Asked) -> object:
    deaths = asked.operator.deaths(asked.target, limit=asked.arguments.limit)
    if not deaths:
        asked.operator.check(asked.target)  # a worker that was removed still has its deaths
    return History(asked.target, view(deaths))


def deaths(asked: Asked) -> object:
    return Deaths(view(asked.operator.deaths(limit=asked.arguments.limit)))


def explanation(asked: Asked) -> object:
    return Explanation(asked.target, asked.operator.explain(asked.target))


def output(asked: Asked) -> object:
    asked.operator.status(asked.target)
    return Output(asked.target, list(asked.operator.output(asked.target)))


def written(asked: Asked) -> object:
    wanted: OutputQuery = asked.arguments
    names = [name for name in wanted.ids.split(",") if name]
    ids = {id_ for name in names for id_ in _meant(asked, name, must_be=wanted.after is None)}
    if names and not ids:  # they have all left
        return view(replace(asked.operator.written(after=wanted.after), lines=()))
    return view(asked.operator.written(*ids, after=wanted.after, last=wanted.last))


def _meant(asked: Asked, name: str, *, must_be: bool) -> list[str]:
    """The workers that a name means: one, or those of a group. Who follows them may outlast them."""
    known = [worker.component_id for worker in asked.operator.report().workers]
    if name in known:
        return [name]
    members = [id_ for id_ in known if asked.operator.spec(id_).group == name]
    if must_be and not members:
        raise UnknownWorkerError(name[:80], known)
    return members


def resources(asked: Asked) -> object:
    usages = asked.operator.usages()
    strays = [Stray(pid, id_) for pid, id_ in asked.operator.strays()]
    return Resources([Used(id_, **view(usage)) for id_, usage in usages.items()], strays)


def event_log(asked: Asked) -> object:
    wanted: Reading = asked.arguments
    found = read_log(asked.operator.event_log, wanted.after, wanted.limit, Topics(topics_of(wanted.topics)))
    return EventLog(
        events=[msgspec.json.decode(document(record)) for record in found.events],
        oldest=found.oldest,
        newest=found.newest,
        next_after=found.next_after,
    )


def audit(asked: Asked) -> object:
    return Audit(view(asked.operator.audited(limit=asked.arguments.limit)))


def metrics(asked: Asked) -> object:
    text = asked.operator.metrics()
    if text is None:
        message = "there are no metrics here: [metrics] with enabled = true in the file turns them on"
        raise InvalidRequestError(404, "no_metrics", message)
    return text


# ── orders ───────────────────────────────────────────────────────────────────────────────


def restart(asked: Asked) -> object:
    asked.operator.restart(asked.target)
    return Outcome()


def stop(asked: Asked) -> object:
    return Outcome(detail=view(asked.operator.stop_worker(asked.target)))


def start(asked: Asked) -> object:
    return _outcome(asked.operator.start_worker(asked.target))


def _outcome(was_needed: bool) -> Outcome:
    return Outcome() if was_needed else Outcome(detail={"already": True})


def reset(asked: Asked) -> object:
    asked.operator.reset(asked.target)
    return Outcome()


def pause(asked: Asked) -> object:
    ids = (asked.target,) if asked.target else ()
    asked.operator.pause(*ids, reason=asked.arguments.reason, for_s=asked.arguments.for_s)
    return Outcome()


def resume(asked: Asked) -> object:
    return _outcome(asked.operator.resume(*((asked.target,) if asked.target else ())))


def reload(asked: Asked) -> object:
    return Outcome(detail=dict(asked.operator.reload()))


def shut_down(asked: Asked) -> object:
    asked.operator.shut_down()
    return Outcome()


def scale(asked: Asked) -> object:
    return Outcome(detail=dict(asked.operator.scale(asked.target, asked.arguments.count) or {}))


def roll(asked: Asked) -> object:
    return Outcome(detail=dict(asked.operator.rolling_restart(asked.target) or {}))


def rolling(asked: Asked) -> object:
    return view(asked.operator.rolling(asked.target))
