"""Puts the actors together, the same way in every runtime."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import pykka
from loguru import logger
from msgspec.structs import replace

from ..alert_desk import AlertDesk
from ..broker import Broker
from ..errors import StoreUnavailableError
from ..facts.commit_times import CommitTimes
from ..facts.generations import EVERY_OTHER, GenerationsReserved, mark_after
from ..facts.jobs import CURRENT_RUN
from ..facts.queues import QueueLimits
from ..facts.records import FormerClaimsReleased, MetaSet, MirrorWiped, Record, Remembered
from ..health_monitor import HealthMonitor
from ..job_desk import JobDesk
from ..messages.internal.to_desks import DeclarePeriodic, WatchQueues
from ..messages.internal.to_monitor import Attend
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_supervisor import Declare
from ..periodic_desk import PeriodicDesk
from ..persistence_actor import PersistenceActor
from ..ports import Processes, Receiver, Runtime, Store
from ..queue_watch import QueueWatch
from ..spec.policies.alert_policy import AlertPolicy
from ..spec.policies.queues.periodic import Periodic
from ..spec.policies.retention_policy import Retention
from ..spec.worker_spec import WorkerSpec, served_by
from ..supervisor.actor import Supervisor
from ..supervisor.breakers import META as BREAKER_META
from ..supervisor.left_behind import LeftBehind

RETRY_S = 0.1
"""How soon a store that cannot be written is tried again before the workers start, and after they ended."""

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
    periodic: Ref | None = None


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
    declared: Receiver | None = None,
    opening: tuple[Record, ...] = (),
    patience_s: float = 0.0,
    periodic: Iterable[Periodic] = (),
    left: LeftBehind | None = None,
    limits: Iterable[QueueLimits] = (),
) -> Actors:
    """Start the actors and tell them about the workers; nothing runs until it is started.

    What is remembered of them comes from the store, unless it was loaded before. An event that
    comes without a record waits for one for `event_linger_s`. `run` tells this run from all
    others: a claim of another run is void. `opening` is committed before any actor starts, with the
    numbers that the processes will have; a store that cannot be written may take `patience_s` to return.
    `left` is what the former program of this process left, if it was upgraded.
    """
    specs = tuple(specs)
    wall_ms, commits = runtime.clock.wall_ms(), CommitTimes()
    remembered, unsaved = _begin(specs, remembered or store.load(), opening, store, patience_s, wall_ms)
    last_id = remembered.last_event_id if left is None else max(left.last_event_id, remembered.last_event_id)
    persistence = runtime.start(
        PersistenceActor,
        runtime=runtime,
        store=store,
        last_id=last_id,
        linger_s=event_linger_s,
        retention=retention,
        times=commits,
    )
    broker = runtime.start(Broker, persistence=persistence, last_id=last_id, began_wall_ms=wall_ms)
    desk = runtime.start(JobDesk, runtime=runtime, persistence=persistence, run=run)
    monitor = runtime.start(
        HealthMonitor,
        runtime=runtime,
        processes=processes,
        persistence=persistence,
        known={} if left is None else left.health,
        known_at=0.0 if left is None else left.at,
    )
    supervisor = runtime.start(
        Supervisor,
        runtime=runtime,
        processes=processes,
        monitor=monitor,
        persistence=persistence,
        desk=desk,
        max_concurrent_starts=max_concurrent_starts,
        releases=releases,
        declared=declared,
        prober=prober,
        left=left,
    )
    for actor in (persistence, monitor):
        actor.tell(Attend(supervisor, broker, desk))
    persistence.tell(Persist((*unsaved, MirrorWiped())))
    # Together: from then on no process of a former run claims a job, and what it held is released.
    is_current = MetaSet(CURRENT_RUN, run)
    persistence.tell(Persist((is_current, _former_claims(specs, run, wall_ms))))
    # Before anything can happen that it has to receive.
    alert_desk = _alert_desk(runtime, persistence, broker, store, alerts, specs, remembered, left)
    watch = runtime.start(
        QueueWatch,
        runtime=runtime,
        store=store,
        persistence=persistence,
        broker=broker,
        alerts=alert_desk,
        processes=processes,
        supervisor=supervisor,
    )
    watch.tell(queues_to_watch(specs))
    supervisor.tell(Declare(specs, remembered))
    clock_desk = runtime.start(
        PeriodicDesk, runtime=runtime, store=store, persistence=persistence, watch=watch
    )
    if served_by(specs):
        clock_desk.tell(DeclarePeriodic(tuple(periodic), tuple(limits)))
    return Actors(broker, persistence, monitor, supervisor, desk, watch, commits, alert_desk, clock_desk)


def _begin(
    specs: tuple[WorkerSpec, ...],
    remembered: Remembered,
    opening: tuple[Record, ...],
    store: Store,
    patience_s: float,
    wall_ms: int,
) -> tuple[Remembered, tuple[Record, ...]]:
    """Reserve the numbers of the processes; returns what is remembered, and what is still to be written."""
    if not _commit(store, (*opening, *_reserved_numbers(specs, remembered)), patience_s):
        return remembered, ()
    remembered = _from_the_clock(remembered, wall_ms)
    return remembered, (*opening, *_reserved_numbers(specs, remembered))


def _commit(store: Store, records: tuple[Record, ...], patience_s: float) -> tuple[Record, ...]:
    """Commit what must be in the store before a process starts; return what could not be written."""
    deadline = time.monotonic() + patience_s
    has_warned = False
    while True:
        try:
            store.commit(records)
        except StoreUnavailableError as error:
            if time.monotonic() >= deadline:
                text = (
                    "store: not writable yet; until it is, a next run would not recognise our processes: {}"
                )
                logger.warning(text, str(error))
                return records
            if not has_warned:
                logger.warning("store: no worker starts for up to {:g} s: {}", patience_s, str(error))
                has_warned = True
            time.sleep(RETRY_S)
        else:
            return ()


def _reserved_numbers(specs: Iterable[WorkerSpec], remembered: Remembered) -> tuple[Record, ...]:
    # Also of workers that are not declared now: they may be added while the store is unavailable.
    known = {*remembered.generations, *remembered.workers, *(spec.id for spec in specs)}
    latest = {id_: remembered.of(id_).last_generation for id_ in known}
    latest[EVERY_OTHER] = remembered.generations.get(EVERY_OTHER, 0)
    return tuple(GenerationsReserved(id_, mark_after(number)) for id_, number in latest.items())


def _from_the_clock(remembered: Remembered, wall_ms: int) -> Remembered:
    """Let all numbers continue with the time: without a reservation the next ones may be in use already."""
    known = {*remembered.generations, *remembered.workers, EVERY_OTHER}
    latest = {id_: max(wall_ms, remembered.generations.get(id_, 0)) for id_ in known}
    return replace(remembered, generations=MappingProxyType(latest))


def queues_to_watch(specs: Iterable[WorkerSpec]) -> WatchQueues:
    """Which queues are served, and by which workers."""
    serving = tuple(spec for spec in specs if spec.serves)
    grace_s = {spec.id: spec.jobs.cancel_grace_s for spec in serving if spec.jobs is not None}
    return WatchQueues(served_by(serving), frozenset(grace_s), MappingProxyType(grace_s))


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
    specs: Sequence[WorkerSpec],
    remembered: Remembered,
    left: LeftBehind | None,
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
        open_breakers=frozenset(
            spec.breaker.name
            for spec in specs
            if spec.breaker is not None and BREAKER_META + spec.breaker.name in remembered.meta
        ),
        healthy_since={} if left is None else left.healthy_since(),
    )
