"""The closed list of routes, in one table.

The application serves this table, `openapi` describes it, and NATS answers the same requests.
A new route is a line here and a handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...views.health_summary import HealthSummary
from ..serving.call_pools import CallPool
from ..serving.json_values import CommandResult
from .handlers import (
    alert_handlers,
    declaration_handlers,
    evidence_handlers,
    health_handlers,
    job_handlers,
    order_handlers,
    queue_handlers,
    run_handlers,
    system_handlers,
    worker_handlers,
)
from .openapi import PROBES, document
from .request_bodies import (
    LARGEST_ENQUEUE,
    BatchArguments,
    EnqueueArguments,
    EventLogQuery,
    EventStreamQuery,
    HealthQuery,
    JobQuery,
    LimitQuery,
    LogPageQuery,
    OutputQuery,
    PauseArguments,
    RollArguments,
    ScaleArguments,
    SignalArguments,
    TimelineQuery,
    UpgradeArguments,
)
from .route import Request, Route

METRICS = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of the Prometheus text format."""

Handler = Callable[[Request], object]


def _query(path: str, summary: str, handler: Handler, result: Any, **more: Any) -> Route:
    """A route that only reads."""
    return Route(path=path, summary=summary, handler=handler, result=result, **more)


def _stored(path: str, summary: str, handler: Handler, result: Any, **more: Any) -> Route:
    """A route that reads the store, which may be slow or unavailable."""
    return _query(path, summary, handler, result, pool=CallPool.STORE, **more)


def _command(path: str, action: str, summary: str, handler: Handler, **more: Any) -> Route:
    """A route that changes something, and is audited."""
    settings: dict[str, Any] = {"pool": CallPool.COMMAND, "result": CommandResult, **more}
    return Route(method="POST", path=path, action=action, summary=summary, handler=handler, **settings)


def _description(request: Request) -> object:
    return document(ROUTES, request.identity.version, PROBES if request.identity.has_probes else {})


ROUTES: tuple[Route, ...] = (
    _query("/info", "The supervisor itself", system_handlers.info, system_handlers.InfoDocument),
    _query(
        "/health",
        "Whether all is well, or one worker, and what is not",
        health_handlers.health,
        HealthSummary,
        query=HealthQuery,
    ),
    _stored(
        "/configuration",
        "Every effective setting and where its value comes from, without secrets",
        declaration_handlers.configuration,
        declaration_handlers.EffectiveSettings,
    ),
    # ── workers ──────────────────────────────────────────────────────────────────────────
    _query("/workers", "Every worker", worker_handlers.workers, worker_handlers.WorkersDocument),
    _query("/workers/{id}", "One worker", worker_handlers.worker, worker_handlers.Worker),
    _stored(
        "/declarations",
        "What every worker runs and by which policy, without secrets",
        declaration_handlers.declarations,
        declaration_handlers.DeclarationsDocument,
    ),
    _stored(
        "/workers/{id}/declaration",
        "What a worker runs and by which policy, without secrets",
        declaration_handlers.declaration,
        dict[str, Any],
    ),
    _stored(
        "/workers/{id}/history",
        "The deaths of a worker and what the supervisor decided",
        worker_handlers.history,
        worker_handlers.HistoryDocument,
        query=LimitQuery,
    ),
    _stored(
        "/workers/{id}/runs",
        "The runs of a scheduled worker, newest first, with those that were missed",
        run_handlers.runs,
        run_handlers.RunsDocument,
        query=LimitQuery,
    ),
    _stored(
        "/workers/{id}/bundles",
        "The cause of each death of a worker, and which deaths were the same crash",
        evidence_handlers.bundles,
        evidence_handlers.BundlesDocument,
        query=LimitQuery,
    ),
    _stored(
        "/workers/{id}/bundles/{generation}",
        "The evidence of one death",
        evidence_handlers.bundle,
        evidence_handlers.Evidence,
    ),
    _stored(
        "/workers/{id}/report",
        "Everything for a bug report, without secrets",
        evidence_handlers.bug_report,
        evidence_handlers.BugReportDocument,
    ),
    _stored(
        "/workers/{id}/timeline",
        "What happened to a worker, newest first, and its mean time between failures",
        evidence_handlers.timeline,
        evidence_handlers.WorkerTimeline,
        query=TimelineQuery,
    ),
    _stored(
        "/workers/{id}/explain",
        "Why a worker is in its current state, in sentences and fields",
        worker_handlers.explanation,
        worker_handlers.Explanation,
    ),
    _query(
        "/workers/{id}/output",
        "The last output lines of a worker",
        worker_handlers.output,
        worker_handlers.OutputDocument,
    ),
    _query(
        "/workers/{id}/log",
        "Lines of a worker's log file, also of former generations, newest page first",
        worker_handlers.logged,
        worker_handlers.LoggedLines,
        query=LogPageQuery,
        pool=CallPool.LOG,
    ),
    _query(
        "/output",
        "The output of workers, line by line; ask again with the newest number",
        worker_handlers.written,
        worker_handlers.WrittenLines,
        query=OutputQuery,
    ),
    _stored(
        "/resources", "What the workers use now", worker_handlers.resources, worker_handlers.ResourcesDocument
    ),
    _stored(
        "/deaths",
        "The latest deaths of all workers",
        worker_handlers.deaths,
        worker_handlers.DeathsDocument,
        query=LimitQuery,
    ),
    # ── events, audit, alerts ────────────────────────────────────────────────────────────
    _query(
        "/events",
        "All events, as server-sent events; resumes after Last-Event-ID",
        system_handlers.event_log,
        str,
        query=EventStreamQuery,
        streams=True,
    ),
    _stored(
        "/events/log",
        "The persisted events, oldest first",
        system_handlers.event_log,
        system_handlers.EventLogDocument,
        query=EventLogQuery,
    ),
    _stored(
        "/audit",
        "Who sent which command, and its result",
        system_handlers.audit,
        system_handlers.AuditDocument,
        query=LimitQuery,
    ),
    _query("/alerts", "The alerts", alert_handlers.alerts, alert_handlers.AlarmsDocument),
    _command(
        "/alerts/{id}/acknowledge",
        "acknowledge",
        "Acknowledge an alert",
        alert_handlers.acknowledge,
        body=alert_handlers.NotedBy,
    ),
    # ── commands ─────────────────────────────────────────────────────────────────────────
    _command("/workers/{id}/restart", "restart", "Clear its counters and restart it", order_handlers.restart),
    _command(
        "/workers/{id}/stop",
        "stop",
        "Stop it; replies once it has exited",
        order_handlers.stop,
        pool=CallPool.LONG,
    ),
    _command("/workers/{id}/start", "start", "Start it now", order_handlers.start),
    _command("/workers/{id}/reset", "reset", "Clear its counters and failure", order_handlers.reset),
    _command("/workers/{id}/run-now", "run_now", "Begin a run of its schedule now", run_handlers.run_now),
    _command("/workers/{id}/pause", "pause", "Pause it", order_handlers.pause, body=PauseArguments),
    _command("/workers/{id}/resume", "resume", "End its pause", order_handlers.resume),
    _command(
        "/workers/{id}/signal", "signal", "Send it a signal", order_handlers.signal, body=SignalArguments
    ),
    _command("/pause", "pause", "Pause the whole system", order_handlers.pause, body=PauseArguments),
    _command("/resume", "resume", "End the pause of the whole system", order_handlers.resume),
    _command(
        "/reload", "reload", "Apply the changed configuration", system_handlers.reload, pool=CallPool.LONG
    ),
    _command(
        "/shutdown",
        "shutdown",
        "Stop all workers, then the supervisor",
        system_handlers.shut_down,
        local=True,
    ),
    _query("/upgrade", "What became of the latest upgrade", system_handlers.latest_upgrade, CommandResult),
    _command(
        "/upgrade",
        "upgrade",
        "Replace the supervisor by another version, in the same process",
        system_handlers.upgrade,
        body=UpgradeArguments,
        pool=CallPool.LONG,
        local=True,
    ),
    # ── groups ───────────────────────────────────────────────────────────────────────────
    _command(
        "/groups/{name}/scale",
        "scale",
        "Set the number of workers of a group",
        order_handlers.scale,
        body=ScaleArguments,
        pool=CallPool.LONG,
    ),
    _command(
        "/groups/{name}/restart",
        "rolling_restart",
        "Restart a group, keeping enough of its workers up",
        order_handlers.roll,
        body=RollArguments,
        pool=CallPool.LONG,
    ),
    _query(
        "/groups/{name}/rolling",
        "The latest rolling restart of a group",
        order_handlers.rolling,
        order_handlers.RollingState,
    ),
    # ── jobs ─────────────────────────────────────────────────────────────────────────────
    _stored("/queues", "The figures of every queue", job_handlers.queues, job_handlers.QueuesDocument),
    _stored(
        "/jobs", "Jobs, newest first", job_handlers.listing, job_handlers.JobListDocument, query=JobQuery
    ),
    _stored("/jobs/{number}", "One job and its crashes", job_handlers.detail, job_handlers.JobDetailDocument),
    _command(
        "/queues/{name}/jobs",
        "enqueue",
        "Add jobs to a queue, all or none",
        job_handlers.enqueue,
        pool=CallPool.STORE,
        body=EnqueueArguments,
        largest_body=LARGEST_ENQUEUE,
    ),
    _stored(
        "/queues/pauses",
        "The queues that are paused",
        queue_handlers.pauses,
        queue_handlers.PausedQueuesDocument,
    ),
    _stored(
        "/batches",
        "Batches of jobs, newest first",
        queue_handlers.batches,
        queue_handlers.BatchesDocument,
        query=LimitQuery,
    ),
    _stored("/batches/{number}", "One batch", queue_handlers.batch, queue_handlers.Batch),
    _command(
        "/queues/{name}/batches",
        "enqueue_batch",
        "Add jobs to a queue as a batch, all or none, and a job that runs when all of them have ended",
        job_handlers.enqueue_batch,
        pool=CallPool.STORE,
        body=BatchArguments,
        largest_body=LARGEST_ENQUEUE,
    ),
    _stored(
        "/periodic",
        "The periodic jobs, by name",
        queue_handlers.periodic,
        queue_handlers.PeriodicJobsDocument,
    ),
    _command(
        "/queues/{name}/pause",
        "pause_queue",
        "Start no further job of a queue",
        queue_handlers.pause,
        pool=CallPool.STORE,
        body=PauseArguments,
    ),
    _command(
        "/queues/{name}/resume",
        "resume_queue",
        "End the pause of a queue",
        queue_handlers.resume,
        pool=CallPool.STORE,
    ),
    _command(
        "/jobs/{number}/retry",
        "retry_job",
        "Make a toxic, failed, cancelled or expired job pending again, with its counts cleared",
        job_handlers.retry,
        pool=CallPool.STORE,
    ),
    _command(
        "/jobs/{number}/cancel",
        "cancel_job",
        "Cancel a pending job, or ask a running one to end",
        job_handlers.cancel,
        pool=CallPool.STORE,
    ),
    _command(
        "/jobs/{number}/drop",
        "drop_job",
        "Delete a job that is not running, with its crashes",
        job_handlers.drop,
        pool=CallPool.STORE,
    ),
    # ── the gateway itself ───────────────────────────────────────────────────────────────
    _query(
        "/metrics",
        "Metrics for Prometheus, if they are enabled",
        system_handlers.metrics,
        str,
        at_root=True,
        media_type=METRICS,
    ),
    _query("/openapi.json", "This description", _description, dict[str, Any]),
)
