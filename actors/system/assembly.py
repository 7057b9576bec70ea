"""Puts the actors together, the same way in every runtime."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import msgspec
import pykka
from loguru import logger

from ..alert_desk import AlertDesk
from ..broker import Broker
from ..errors import StoreUnavailableError
from ..facts.commit_times import CommitTimes
from ..facts.records import FormerClaimsReleased, MirrorWiped, Remembered
from ..health_monitor import HealthMonitor
from ..job_desk import JobDesk
from ..messages.internal.to_desks import WatchQueues
from ..messages.internal.to_monitor import Attend
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_supervisor import Declare
from ..persistence_actor import PersistenceActor
from ..ports import Processes, Receiver, Runtime, Store
from ..queue_watch import QueueWatch
from ..spec.alert_policy import AlertPolicy
from ..spec.retention_policy import Retention
from ..spec.worker_spec import WorkerSpec, served_by
from ..supervisor.actor import Supervisor

EVENT_LINGER_S = 0.02
"""How long an event without a record waits for one: a commit of its own would hold up a death's."""

Ref = pykka.ActorRef[Any]


class Actors(msgspec.Struct, frozen=True):
    """The six actors that every system has, and the desk of alerts; the proxies belong to the Supervisor."""

    broker: Ref
    persistence: Ref
    monitor: Ref
    supervisor: Ref
    desk: Ref
    watch: Ref
    commits: CommitTimes
    """What the persistence actor notes of its commits."""
    alerts: Ref | None = None


def assemble(
    specs: Iterable[WorkerSpec],
    *,
    runtime: Runtime,
    processes: Processes,
    store: Store,
    max_concurrent_starts: int | None = None,
    remembered: Remembered | None = None,
    event_linger_s: float = 0.0,
    retention: Retention | None = None,
    run: str = "",
    releases: Receiver | None = None,
    alerts: AlertPolicy | None = None,
    prober: Receiver | None = None,
) -> Actors:
    """Start the actors and tell them about the workers; nothing runs until it is started.

    What is remembered of them comes from the store, unless it was loaded before. An event that
    comes without a record waits for one for `event_linger_s`. `run` tells this run from all
    others: a claim of another run is void.
    """
    specs = tuple(specs)
    remembered = remembered or store.load()
    commits = CommitTimes()
    persistence = runtime.start(
        PersistenceActor,
        runtime=runtime,
        store=store,
        last_id=remembered.last_event_id,
        linger_s=event_linger_s,
        retention=retention,
        times=commits,
    )
    broker = runtime.start(Broker, persistence=persistence, last_id=remembered.last_event_id)
    desk = runtime.start(JobDesk, runtime=runtime, persistence=persistence, run=run)
    monitor = runtime.start(HealthMonitor, runtime=runtime, processes=processes, persistence=persistence)
    supervisor = runtime.start(
        Supervisor,
        runtime=runtime,
        processes=processes,
        monitor=monitor,
        persistence=persistence,
        desk=desk,
        max_concurrent_starts=max_concurrent_starts,
        releases=releases,
        prober=prober,
    )
    for actor in (persistence, monitor):
        actor.tell(Attend(supervisor, broker, desk))
    persistence.tell(Persist((MirrorWiped(),)))
    persistence.tell(Persist((_former_claims(specs, run, runtime.clock.wall_ms()),)))
    # Before anything can happen that it has to receive.
    alert_desk = _alert_desk(runtime, persistence, broker, store, alerts, specs)
    watch = runtime.start(
        QueueWatch, runtime=runtime, store=store, persistence=persistence, broker=broker, alerts=alert_desk
    )
    watch.tell(queues_to_watch(specs))
    supervisor.tell(Declare(specs, remembered))
    return Actors(broker, persistence, monitor, supervisor, desk, watch, commits, alert_desk)


def queues_to_watch(specs: Iterable[WorkerSpec]) -> WatchQueues:
    """Which queues are served, and by which workers."""
    serving = tuple(spec for spec in specs if spec.serves)
    return WatchQueues(served_by(serving), frozenset(spec.id for spec in serving))


def _former_claims(specs: Iterable[WorkerSpec], run: str, wall_ms: int) -> FormerClaimsReleased:
    """The workers of other runs are gone: their claims are released before any worker starts."""
    retries = {spec.id: spec.jobs.crash_retries for spec in specs if spec.jobs is not None}
    return FormerClaimsReleased(run=run, at_wall_ms=wall_ms, crash_retries=MappingProxyType(retries))


def _alert_desk(
    runtime: Runtime,
    persistence: Ref,
    broker: Ref,
    store: Store,
    policy: AlertPolicy | None,
    specs: Iterable[WorkerSpec],
) -> Ref | None:
    """The AlertDesk, if the policy asks for one."""
    if policy is None or not policy.enabled:
        return None
    try:
        known = store.alerts()
    except StoreUnavailableError as error:
        logger.warning("store: the alerts of the former run cannot be read: {}", str(error))
        known = ()
    ids = tuple(spec.id for spec in specs)
    return runtime.start(
        AlertDesk,
        runtime=runtime,
        persistence=persistence,
        broker=broker,
        policy=policy,
        known=known,
        component_ids=ids,
    )
