"""The closed list of what can be asked of the control socket, in one table.

The application serves this table and `openapi` describes it; nothing else is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..serving.call_pools import Lane
from ..serving.json_values import Outcome
from . import alert_handlers, evidence_handlers, handlers
from .job_routes import JOB_ROUTES
from .openapi import document
from .request_bodies import (
    Following,
    Looking,
    OutputQuery,
    PauseArguments,
    Reading,
    Rows,
    ScaleArguments,
)
from .route import Asked, Served

METRICS = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus calls its format."""


def _order(path: str, action: str, summary: str, answer: Callable[[Asked], object], **more: Any) -> Served:
    settings: dict[str, Any] = {"lane": Lane.ORDER, "result": Outcome, **more}
    return Served(method="POST", path=path, action=action, summary=summary, answer=answer, **settings)


def _description(asked: Asked) -> object:
    return document(ROUTES, asked.identity.version)


ROUTES: tuple[Served, ...] = (
    Served(path="/info", summary="The supervisor itself", answer=handlers.info, result=handlers.Info),
    Served(path="/workers", summary="Every worker", answer=handlers.workers, result=handlers.Workers),
    Served(path="/workers/{id}", summary="One worker", answer=handlers.worker, result=handlers.Worker),
    Served(
        path="/workers/{id}/history",
        summary="Its deaths and the decisions on them",
        answer=handlers.history,
        result=handlers.History,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/workers/{id}/bundles",
        summary="What it died of, each time, and which deaths were the same crash",
        answer=evidence_handlers.bundles,
        result=evidence_handlers.Bundles,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/workers/{id}/bundles/{generation}",
        summary="The evidence of one death",
        answer=evidence_handlers.bundle,
        result=evidence_handlers.Evidence,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/report",
        summary="Everything for a bug report, without secrets",
        answer=evidence_handlers.bug_report,
        result=evidence_handlers.BugReport,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/timeline",
        summary="What happened to it, newest first, and its mean time between failures",
        answer=evidence_handlers.timeline,
        result=evidence_handlers.Happened,
        lane=Lane.STORE,
        query=Looking,
    ),
    Served(
        path="/workers/{id}/explain",
        summary="Why it is as it is, in sentences",
        answer=handlers.explanation,
        result=handlers.Explanation,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/output", summary="Its last lines", answer=handlers.output, result=handlers.Output
    ),
    Served(
        path="/output",
        summary="What workers write, line by line; ask again after the newest",
        answer=handlers.written,
        result=handlers.WrittenLines,
        query=OutputQuery,
    ),
    Served(
        path="/resources",
        summary="What the workers use now",
        answer=handlers.resources,
        result=handlers.Resources,
        lane=Lane.STORE,
    ),
    Served(
        path="/deaths",
        summary="The latest deaths of all workers",
        answer=handlers.deaths,
        result=handlers.Deaths,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/events",
        summary="Everything that happens, as server-sent events; resumes after Last-Event-ID",
        answer=handlers.event_log,
        result=str,
        query=Following,
        streams=True,
    ),
    Served(
        path="/events/log",
        summary="Events that are kept, oldest first",
        answer=handlers.event_log,
        result=handlers.EventLog,
        lane=Lane.STORE,
        query=Reading,
    ),
    Served(
        path="/audit",
        summary="Who gave which order, and what came of it",
        answer=handlers.audit,
        result=handlers.Audit,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/alerts", summary="What is wrong", answer=alert_handlers.alerts, result=alert_handlers.Alarms
    ),
    _order(
        "/alerts/{id}/acknowledge",
        "acknowledge",
        "Take note of an alert",
        alert_handlers.acknowledge,
        body=alert_handlers.NotedBy,
    ),
    _order("/workers/{id}/restart", "restart", "Clear its counters and start it afresh", handlers.restart),
    _order("/workers/{id}/stop", "stop", "Stop it; answers once it is gone", handlers.stop, lane=Lane.LONG),
    _order("/workers/{id}/start", "start", "Start it now", handlers.start),
    _order("/workers/{id}/reset", "reset", "Clear its counters and failure", handlers.reset),
    _order("/workers/{id}/pause", "pause", "Pause it", handlers.pause, body=PauseArguments),
    _order("/workers/{id}/resume", "resume", "End its pause", handlers.resume),
    _order("/pause", "pause", "Pause the whole system", handlers.pause, body=PauseArguments),
    _order("/resume", "resume", "End the pause of the whole system", handlers.resume),
    _order("/reload", "reload", "Apply the changed configuration", handlers.reload, lane=Lane.LONG),
    _order("/shutdown", "shutdown", "Stop all workers, then the supervisor", handlers.shut_down, local=True),
    _order(
        "/groups/{name}/scale",
        "scale",
        "Have so many workers of a group",
        handlers.scale,
        body=ScaleArguments,
        lane=Lane.LONG,
    ),
    _order(
        "/groups/{name}/restart",
        "rolling_restart",
        "Restart a group, keeping enough of it up",
        handlers.roll,
        lane=Lane.LONG,
    ),
    Served(
        path="/groups/{name}/rolling",
        summary="How the latest rolling restart of a group is",
        answer=handlers.rolling,
        result=handlers.RollingState,
    ),
    *JOB_ROUTES,
    Served(
        path="/metrics",
        rooted=True,
        summary="Numbers for Prometheus, if they are turned on",
        answer=handlers.metrics,
        result=str,
        text=METRICS,
    ),
    Served(path="/openapi.json", summary="This description", answer=_description, result=dict[str, Any]),
)
