"""The metrics, each with all of its series from the start: a count of zero is shown, not missing.

So rates and alerts work from the first scrape on: a counter that appears with its first death has no
rate for that death.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ...deaths.death import Cause
from ...facts.commit_times import CommitTimes
from ...facts.health_status import ShownStatus
from ...facts.jobs import JobState, QueueStats
from ...facts.node_figures import NodeFigures
from ...messages import (
    Budget,
    ClusterEvent,
    EngineAway,
    EngineBack,
    Event,
    LeaseLost,
    NodeStatus,
    SharedDatabaseAway,
    SharedDatabaseBack,
    StatusReport,
    WorkerMoved,
    WorkerStatus,
)
from ...messages.event_json import event_type
from ..gateway_state import GatewayState
from ..server_identity import Identity
from ..settings.subjects import Name
from .event_counts import EventTotals

LIMITS = ("window", "lifetime", "consecutive")
_WORKER = ["worker", "group"]
NODE_STATES = ("up", "cordoned", "suspect", "convicted", "paroled", "draining", "lost", "left")
_OF_CLUSTERS = get_args(ClusterEvent)
"""Shown once they happen: without a cluster they never do."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """Everything that one scrape shows."""

    identity: Identity
    report: StatusReport
    counted: EventTotals
    commits: CommitTimes
    gateways: tuple[GatewayState, ...]
    queues: Mapping[str, QueueStats]
    nodes: tuple[NodeStatus, ...] = ()
    """The nodes of the cluster; none without one."""
    unplaced: int = 0
    figures: NodeFigures | None = None
    """What this node measures of its ties to the cluster."""


def families(scrape: Scrape) -> Iterator[Metric]:
    """Every metric of one scrape."""
    workers = scrape.report.workers
    yield from _supervisor(scrape)
    yield from _statuses(workers)
    yield from _happened(workers, scrape.counted)
    yield from _restarting(workers)
    yield from _store(scrape)
    yield from _queues(scrape.queues)
    yield from _gateways(scrape.gateways)
    if scrape.nodes:
        yield from _cluster(scrape)


def _supervisor(scrape: Scrape) -> Iterator[Metric]:
    info = GaugeMetricFamily("rekindle_info", "The running version.", labels=["version"])
    info.add_metric([scrape.identity.version], 1)
    yield info
    yield _gauge(
        "rekindle_start_time_seconds",
        "Start time of the supervisor, in seconds since 1970.",
        scrape.identity.started_at_wall_ms / 1000,
    )
    yield _gauge("rekindle_paused", "1 while the whole system is paused.", scrape.report.paused)


def _statuses(workers: Iterable[WorkerStatus]) -> Iterator[Metric]:
    each = list(workers)
    counts = GaugeMetricFamily("rekindle_workers", "Workers by status.", labels=["status"])
    for word in ShownStatus:
        counts.add_metric([word], sum(worker.shown == word for worker in each))
    yield counts
    status = GaugeMetricFamily(
        "rekindle_worker_status", "1 for the current status of a worker.", labels=[*_WORKER, "status"]
    )
    for worker in each:
        for word in ShownStatus:
            status.add_metric([*_labels(worker), word], worker.shown == word)
    yield status
    yield _by_worker("rekindle_worker_paused", "1 while the worker is paused.", ((w, w.paused) for w in each))
    yield _by_worker(
        "rekindle_worker_uptime_seconds",
        "Age of the worker's process; 0 without one.",
        ((w, w.uptime_s or 0.0) for w in each),
    )


def _happened(workers: Iterable[WorkerStatus], counted: EventTotals) -> Iterator[Metric]:
    each = list(workers)
    deaths = CounterMetricFamily(
        "rekindle_worker_deaths", "Deaths since the supervisor started.", labels=[*_WORKER, "cause"]
    )
    restarts = CounterMetricFamily(
        "rekindle_worker_restarts", "Restarts after a death since the supervisor started.", labels=_WORKER
    )
    for worker in each:
        for cause in Cause:
            deaths.add_metric([*_labels(worker), cause.value], counted.deaths[worker.component_id, cause])
        restarts.add_metric(_labels(worker), counted.restarts[worker.component_id])
    yield deaths
    yield restarts
    events = CounterMetricFamily("rekindle_events", "Events since the supervisor started.", labels=["type"])
    for kind in get_args(Event):
        if kind in _OF_CLUSTERS and not counted.events[event_type(kind)]:
            continue
        events.add_metric([event_type(kind)], counted.events[event_type(kind)])
    yield events


def _restarting(workers: Iterable[WorkerStatus]) -> Iterator[Metric]:
    each = list(workers)
    budget = GaugeMetricFamily(
        "rekindle_worker_budget_left",
        "Remaining restarts within a limit; +Inf without that limit.",
        labels=[*_WORKER, "limit"],
    )
    for worker in each:
        for limit, left in zip(LIMITS, _left(worker.budget), strict=True):
            budget.add_metric([*_labels(worker), limit], left)
    yield budget
    yield _by_worker(
        "rekindle_worker_next_attempt_seconds",
        "Seconds until the next start; 0 if no start is scheduled.",
        ((w, w.next_attempt_in_s or 0.0) for w in each),
    )


def _store(scrape: Scrape) -> Iterator[Metric]:
    yield _gauge(
        "rekindle_store_degraded", "1 while the store is unavailable.", scrape.report.degraded is not None
    )
    yield _gauge(
        "rekindle_store_unsaved_records", "Records that are not persisted yet.", scrape.report.unsaved
    )
    yield _histogram("rekindle_store_commit_seconds", "Duration of commits.", scrape.commits)
    yield _gauge(
        "rekindle_event_last_id", "The number of the latest published event.", scrape.counted.last_event_id
    )


_FIGURES = {JobState.DONE: "completed", JobState.ERROR: "errors"}
"""The figures of a queue that have another name than the state."""


def _queues(queues: Mapping[str, QueueStats]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("rekindle_queue_jobs", "Jobs of a queue by state.", labels=["queue", "state"])
    for name, stats in queues.items():
        for state in JobState:
            jobs.add_metric([name, state.value], getattr(stats, _FIGURES.get(state, state.value)))
    yield jobs


def _gateways(gateways: Iterable[GatewayState]) -> Iterator[Metric]:
    up = GaugeMetricFamily("rekindle_gateway_up", "1 while the gateway is connected.", labels=["gateway"])
    lag = GaugeMetricFamily(
        "rekindle_gateway_event_lag", "Events that are not delivered yet.", labels=["gateway"]
    )
    sent = CounterMetricFamily(
        "rekindle_gateway_events_delivered", "Events that were delivered.", labels=["gateway"]
    )
    lost = CounterMetricFamily(
        "rekindle_gateway_events_dropped", "Events that were dropped.", labels=["gateway"]
    )
    for state in gateways:
        up.add_metric([state.name], state.connected)
        lag.add_metric([state.name], state.waiting)
        sent.add_metric([state.name], state.delivered)
        lost.add_metric([state.name], state.dropped)
    yield from (up, lag, sent, lost)


def _cluster(scrape: Scrape) -> Iterator[Metric]:
    states = GaugeMetricFamily("rekindle_nodes", "Nodes of the cluster by state.", labels=["state"])
    for state in NODE_STATES:
        states.add_metric([state], sum(node.state == state for node in scrape.nodes))
    yield states
    own = next((node for node in scrape.nodes if node.is_own), None)
    left_s = 0.0 if own is None else own.lease_left_s or 0.0
    yield _gauge("rekindle_node_lease_left_seconds", "How long this node may run its workers.", left_s)
    yield _gauge(
        "rekindle_leader", "1 while this node places and moves workers.", own is not None and own.leads
    )
    yield _gauge("rekindle_unplaced", "Workers of the cluster that no node takes.", scrape.unplaced)
    ages = [node.age_s for node in scrape.nodes if node.age_s is not None]
    text = "Age of the oldest news of a node that this one has."
    yield _gauge("rekindle_node_news_age_seconds", text, max(ages, default=0.0))
    happened = scrape.counted.events
    moves = CounterMetricFamily("rekindle_moves", "Workers that moved, as this node has seen.")
    moves.add_metric([], happened[event_type(WorkerMoved)])
    fenced = CounterMetricFamily("rekindle_fenced", "Times that this node lost its lease with workers.")
    fenced.add_metric([], happened[event_type(LeaseLost)])
    engine = happened[event_type(EngineAway)] <= happened[event_type(EngineBack)]
    yield from (moves, fenced, _gauge("rekindle_engine_up", "1 while the engine answers.", engine))
    is_up = happened[event_type(SharedDatabaseAway)] <= happened[event_type(SharedDatabaseBack)]
    yield _gauge("rekindle_shared_database_up", "1 while this node reaches its cluster's database.", is_up)
    if scrape.figures is not None:
        yield from _figures(scrape.figures)


def _figures(figures: NodeFigures) -> Iterator[Metric]:
    text = "From the moment in which a renewal of the lease is sent to its answer."
    yield _histogram("rekindle_lease_renew_seconds", text, figures.renewals)
    text = "Age of the oldest event of this node that the shared database lacks."
    yield _gauge("rekindle_ship_lag_seconds", text, figures.ship_lag_s(time.time_ns() // 1_000_000))
    text = "How probable the deaths of workers on a node are by chance, as the leading node sees it."
    suspicion = GaugeMetricFamily("rekindle_node_suspicion_p", text, labels=["node"])
    for node, p in sorted(figures.suspicions.items()):
        suspicion.add_metric([node], p)
    yield suspicion


def _left(budget: Budget) -> tuple[float, float, float]:
    def left(limit: int | None, used: int) -> float:
        return float("inf") if limit is None else float(max(0, limit - used))

    return (
        left(budget.max_in_window, budget.in_window),
        left(budget.max_lifetime, budget.lifetime),
        left(budget.max_consecutive, budget.consecutive),
    )


def _labels(worker: WorkerStatus) -> list[str]:
    return [worker.component_id, Name.of(worker.component_id).type]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _histogram(name: str, text: str, times: CommitTimes) -> Metric:
    family = HistogramMetricFamily(name, text)
    buckets = [(_bound(bound), count) for bound, count in times.cumulative()]
    family.add_metric([], buckets=buckets, sum_value=times.total_s)
    return family


def _by_worker(name: str, text: str, values: Iterable[tuple[WorkerStatus, float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=_WORKER)
    for worker, value in values:
        family.add_metric(_labels(worker), float(value))
    return family


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
