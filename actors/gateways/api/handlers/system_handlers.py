"""The handlers of the routes about the supervisor itself, its events, audit and metrics."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from ....facts.audit_entry import AuditEntry
from ....facts.topic_states import QueueState
from ....messages import Snapshot
from ....messages.topics import QUEUES, Topics
from ....system.inboxes import Inbox
from ....views.event_sentences import document_with_text
from ...gateway_state import GatewayState
from ...operator import Operator
from ...serving.json_values import CommandResult, view, view_type
from ...serving.own_actors import ActorKind, libraries, own_actors
from ...serving.own_usage import own_usage
from ..event_log import read_log
from ..request_bodies import EventLogQuery, InvalidRequestError, topics_of
from ..route import Request

SNAPSHOT_S = 5.0
"""How long the actors may take to answer."""
Order = view_type(AuditEntry)
Gateway = view_type(GatewayState)


class InfoDocument(msgspec.Struct, frozen=True, kw_only=True):
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


class AuditDocument(msgspec.Struct, frozen=True):
    """The latest persisted commands, newest first."""

    entries: list[Order]  # type: ignore[valid-type]


class EventLogDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the log, oldest first, and the range that is persisted."""

    events: list[dict[str, Any]]
    """Each as the event stream sends it."""
    oldest: int
    newest: int
    next_after: int
    """Pass this as `after` to read on."""


def info(request: Request) -> object:
    report, origins = request.operator.report(), request.operator.origins()
    return InfoDocument(
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


def event_log(request: Request) -> object:
    query: EventLogQuery = request.arguments
    found = read_log(request.operator.event_log, query.after, query.limit, Topics(topics_of(query.topics)))
    return EventLogDocument(
        events=[msgspec.json.decode(document_with_text(record)) for record in found.events],
        oldest=found.oldest,
        newest=found.newest,
        next_after=found.next_after,
    )


def audit(request: Request) -> object:
    return AuditDocument(view(request.operator.audited(limit=request.arguments.limit)))


def metrics(request: Request) -> object:
    text = request.operator.metrics()
    if text is None:
        message = "metrics are disabled; to enable them set enabled = true in [metrics]"
        raise InvalidRequestError(404, "no_metrics", message)
    return text


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
