"""The closed list of what can be asked of the control socket, in one table.

The application serves this table and `openapi` describes it; nothing else is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import alarms, answers, autopsy
from .job_routes import JOB_ROUTES
from .lanes import Lane
from .openapi import document
from .requests import Following, Looking, OutputQuery, PauseArguments, Reading, Rows, ScaleArguments
from .served import Asked, Served
from .wire import Outcome

METRICS = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus calls its format."""


def _order(path: str, action: str, summary: str, answer: Callable[[Asked], object], **more: Any) -> Served:
    settings: dict[str, Any] = {"lane": Lane.ORDER, "result": Outcome, **more}
    return Served(method="POST", path=path, action=action, summary=summary, answer=answer, **settings)


def _description(asked: Asked) -> object:
    return document(ROUTES, asked.identity.version)


ROUTES: tuple[Served, ...] = (
    Served(path="/info", summary="The supervisor itself", answer=answers.info, result=answers.Info),
    Served(path="/workers", summary="Every worker", answer=answers.workers, result=answers.Workers),
    Served(path="/workers/{id}", summary="One worker", answer=answers.worker, result=answers.Worker),
    Served(
        path="/workers/{id}/history",
        summary="Its deaths and the decisions on them",
        answer=answers.history,
        result=answers.History,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/workers/{id}/bundles",
        summary="What it died of, each time, and which deaths were the same crash",
        answer=autopsy.bundles,
        result=autopsy.Bundles,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/workers/{id}/bundles/{generation}",
        summary="The evidence of one death",
        answer=autopsy.bundle,
        result=autopsy.Evidence,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/report",
        summary="Everything for a bug report, without secrets",
        answer=autopsy.bug_report,
        result=autopsy.BugReport,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/timeline",
        summary="What happened to it, newest first, and its mean time between failures",
        answer=autopsy.timeline,
        result=autopsy.Happened,
        lane=Lane.STORE,
        query=Looking,
    ),
    Served(
        path="/workers/{id}/explain",
        summary="Why it is as it is, in sentences",
        answer=answers.explanation,
        result=answers.Explanation,
        lane=Lane.STORE,
    ),
    Served(
        path="/workers/{id}/output", summary="Its last lines", answer=answers.output, result=answers.Output
    ),
    Served(
        path="/output",
        summary="What workers write, line by line; ask again after the newest",
        answer=answers.written,
        result=answers.WrittenLines,
        query=OutputQuery,
    ),
    Served(
        path="/resources",
        summary="What the workers use now",
        answer=answers.resources,
        result=answers.Resources,
        lane=Lane.STORE,
    ),
    Served(
        path="/deaths",
        summary="The latest deaths of all workers",
        answer=answers.deaths,
        result=answers.Deaths,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(
        path="/events",
        summary="Everything that happens, as server-sent events; resumes after Last-Event-ID",
        answer=answers.event_log,
        result=str,
        query=Following,
        streams=True,
    ),
    Served(
        path="/events/log",
        summary="Events that are kept, oldest first",
        answer=answers.event_log,
        result=answers.EventLog,
        lane=Lane.STORE,
        query=Reading,
    ),
    Served(
        path="/audit",
        summary="Who gave which order, and what came of it",
        answer=answers.audit,
        result=answers.Audit,
        lane=Lane.STORE,
        query=Rows,
    ),
    Served(path="/alerts", summary="What is wrong", answer=alarms.alerts, result=alarms.Alarms),
    _order(
        "/alerts/{id}/acknowledge",
        "acknowledge",
        "Take note of an alert",
        alarms.acknowledge,
        body=alarms.NotedBy,
    ),
    _order("/workers/{id}/restart", "restart", "Clear its counters and start it afresh", answers.restart),
    _order("/workers/{id}/stop", "stop", "Stop it; answers once it is gone", answers.stop, lane=Lane.LONG),
    _order("/workers/{id}/start", "start", "Start it now", answers.start),
    _order("/workers/{id}/reset", "reset", "Clear its counters and failure", answers.reset),
    _order("/workers/{id}/pause", "pause", "Pause it", answers.pause, body=PauseArguments),
    _order("/workers/{id}/resume", "resume", "End its pause", answers.resume),
    _order("/pause", "pause", "Pause the whole system", answers.pause, body=PauseArguments),
    _order("/resume", "resume", "End the pause of the whole system", answers.resume),
    _order("/reload", "reload", "Apply the changed configuration", answers.reload, lane=Lane.LONG),
    _order("/shutdown", "shutdown", "Stop all workers, then the supervisor", answers.shut_down, local=True),
    _order(
        "/groups/{name}/scale",
        "scale",
        "Have so many workers of a group",
        answers.scale,
        body=ScaleArguments,
        lane=Lane.LONG,
    ),
    _order(
        "/groups/{name}/restart",
        "rolling_restart",
        "Restart a group, keeping enough of it up",
        answers.roll,
        lane=Lane.LONG,
    ),
    Served(
        path="/groups/{name}/rolling",
        summary="How the latest rolling restart of a group is",
        answer=answers.rolling,
        result=answers.RollingState,
    ),
    *JOB_ROUTES,
    Served(
        path="/metrics",
        rooted=True,
        summary="Numbers for Prometheus, if they are turned on",
        answer=answers.metrics,
        result=str,
        text=METRICS,
    ),
    Served(path="/openapi.json", summary="This description", answer=_description, result=dict[str, Any]),
)
