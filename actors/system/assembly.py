"""Puts the actors together, the same way in every runtime."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import msgspec
import pykka
from loguru import logger
from msgspec.structs import replace

from ..alert_desk import AlertDesk
from ..broker import Broker
from ..errors import StoreUnavailableError
from ..facts.alert import Alert
from ..facts.commit_times import CommitTimes
from ..facts.generations import EVERY_OTHER, GenerationsReserved, highest_mark, mark_after
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
from ..supervision.pauses import Pauses
from ..supervisor.actor import Supervisor
from ..supervisor.breakers import META as BREAKER_META
from ..supervisor.handed_over_actors import HandedOverActors

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


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one system has and another one may not have."""

    run: str = ""
    """Tells this run from all others: a claim of another run is void."""
    max_concurrent_starts: int | None = None
    event_linger_s: float = 0.0
    """How long an event that comes without a record waits for one."""
    retention: Retention | None = None
    alerts: AlertPolicy | None = None
    periodic: tuple[Periodic, ...] = ()
    limits: tuple[QueueLimits, ...] = ()
    releases: Receiver | None = None
    prober: Receiver | None = None
    declared: Receiver | None = None
    opening: tuple[Record, ...] = ()
    """Committed before any actor starts, with the numbers that the processes will have."""
    patience_s: float = 0.0
    """How long a store that cannot be written may take to return."""
    left: HandedOverActors | None = None
    """What the former program of this process left, if it was upgraded."""
    unwritten: tuple[Record, ...] = ()
    """The records that the former program could not write."""


def assemble(
    specs: Iterable[WorkerSpec],
    *,
    runtime: Runtime,
    processes: Processes,
    store: Store,
    remembered: Remembered | None = None,
    options: Options | None = None,
) -> Actors:
    """Start the actors and tell them about the workers; nothing runs until it is started.

    What is remembered of the workers comes from the store, unless it was loaded before.
    """
    specs, options, wall_ms = tuple(specs), options or Options(), runtime.clock.wall_ms()
    remembered, unsaved = _begin(specs, remembered or store.load(), store, options, wall_ms)
    return _Assembly(specs, runtime, processes, store, remembered, options).actors(unsaved)


class _Assembly:
    """Starts the actors of one system."""

    def __init__(
        self,
        specs: tuple[WorkerSpec, ...],
        runtime: Runtime,
        processes: Processes,
        store: Store,
        remembered: Remembered,
        options: Options,
    ) -> None:
        self._specs = specs
        self._runtime, self._processes, self._store = runtime, processes, store
        self._remembered = remembered
        self._options = options
        self._wall_ms = runtime.clock.wall_ms()

    def actors(self, unsaved: tuple[Record, ...]) -> Actors:
        """Start all of them; each gets its first messages before anything can happen that it has to hear."""
        commits = CommitTimes()
        persistence, broker = self._persistence_and_broker(commits)
        desk = self._runtime.start(
            JobDesk, runtime=self._runtime, persistence=persistence, run=self._options.run
        )
        monitor, supervisor = self._monitor_and_supervisor(persistence, desk)
        for actor in (persistence, monitor):
            actor.tell(Attend(supervisor, broker, desk))
        persistence.tell(Persist((*unsaved, MirrorWiped())))
        # Together: from then on no process of a former run claims a job, and what it held is released.
        is_current = MetaSet(CURRENT_RUN, self._options.run)
        persistence.tell(Persist((is_current, _former_claims(self._specs, self._options.run, self._wall_ms))))
        alerts = self._alert_desk(persistence, broker)
        watch = self._queue_watch(persistence, broker, alerts, supervisor)
        supervisor.tell(Declare(self._specs, self._remembered))
        periodic = self._periodic_desk(persistence, watch)
        return Actors(broker, persistence, monitor, supervisor, desk, watch, commits, alerts, periodic)

    def _persistence_and_broker(self, commits: CommitTimes) -> tuple[Ref, Ref]:
        left, last_id = self._options.left, self._remembered.last_event_id
        if left is not None:
            last_id = max(left.last_event_id, last_id)
        persistence = self._runtime.start(
            PersistenceActor,
            runtime=self._runtime,
            store=self._store,
            last_id=last_id,
            linger_s=self._options.event_linger_s,
            retention=self._options.retention,
            times=commits,
            waiting=self._options.unwritten,
        )
        broker = self._runtime.start(
            Broker, persistence=persistence, last_id=last_id, began_wall_ms=self._wall_ms
        )
        return persistence, broker

    def _monitor_and_supervisor(self, persistence: Ref, desk: Ref) -> tuple[Ref, Ref]:
        left = self._options.left
        monitor = self._runtime.start(
            HealthMonitor,
            runtime=self._runtime,
            processes=self._processes,
            persistence=persistence,
            known={} if left is None else left.health,
            known_at=0.0 if left is None else left.at,
        )
        supervisor = self._runtime.start(
            Supervisor,
            runtime=self._runtime,
            processes=self._processes,
            monitor=monitor,
            persistence=persistence,
            desk=desk,
            max_concurrent_starts=self._options.max_concurrent_starts,
            releases=self._options.releases,
            declared=self._options.declared,
            prober=self._options.prober,
            left=left,
        )
        return monitor, supervisor

    def _queue_watch(self, persistence: Ref, broker: Ref, alerts: Ref | None, supervisor: Ref) -> Ref:
        watch = self._runtime.start(
            QueueWatch,
            runtime=self._runtime,
            store=self._store,
            persistence=persistence,
            broker=broker,
            alerts=alerts,
            processes=self._processes,
            supervisor=supervisor,
        )
        watch.tell(queues_to_watch(self._specs))
        return watch

    def _periodic_desk(self, persistence: Ref, watch: Ref) -> Ref:
        desk = self._runtime.start(
            PeriodicDesk, runtime=self._runtime, store=self._store, persistence=persistence, watch=watch
        )
        if served_by(self._specs):
            desk.tell(DeclarePeriodic(self._options.periodic, self._options.limits))
        return desk

    def _alert_desk(self, persistence: Ref, broker: Ref) -> Ref | None:
        """The AlertDesk, if the policy asks for one."""
        policy, left = self._options.alerts, self._options.left
        if policy is None or not policy.enabled:
            return None
        return self._runtime.start(
            AlertDesk,
            runtime=self._runtime,
            persistence=persistence,
            broker=broker,
            policy=policy,
            known=self._known_alerts(),
            component_ids=tuple(spec.id for spec in self._specs),
            open_breakers=frozenset(
                spec.breaker.name
                for spec in self._specs
                if spec.breaker is not None and BREAKER_META + spec.breaker.name in self._remembered.meta
            ),
            paused=frozenset(Pauses.from_meta(self._remembered.meta).by_id),
            healthy_since={} if left is None else left.healthy_since(),
        )

    def _known_alerts(self) -> tuple[Alert, ...]:
        try:
            return self._store.alerts()
        except StoreUnavailableError as error:
            logger.warning("store: the alerts of the former run cannot be read: {}", str(error))
            return ()


def _begin(
    specs: tuple[WorkerSpec, ...], remembered: Remembered, store: Store, options: Options, wall_ms: int
) -> tuple[Remembered, tuple[Record, ...]]:
    """Reserve the numbers of the processes; returns what is remembered, and what is still to be written."""
    reserved = _reserved_numbers(specs, remembered)
    unsaved = _commit(store, (*options.opening, *reserved), options.patience_s)
    if not unsaved or store.keep_mark(highest_mark(reserved)):
        return remembered, unsaved
    remembered = _from_the_clock(remembered, wall_ms)
    return remembered, (*options.opening, *_reserved_numbers(specs, remembered))


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
                    "store: not writable yet; after a crash now, the next run cannot find our processes: {}"
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
