"""Puts the actors together, the same way in every runtime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pykka

from .broker import Broker
from .health_monitor import HealthMonitor
from .internal_messages import Attend, Declare, Keep
from .ports import Processes, Runtime, Store
from .recorder import Recorder
from .records import MirrorWiped, Remembered
from .spec import WorkerSpec
from .supervisor import Supervisor

Ref = pykka.ActorRef[Any]


@dataclass(frozen=True, slots=True)
class Actors:
    """The four actors that every system has; the proxies belong to the Supervisor."""

    broker: Ref
    recorder: Ref
    monitor: Ref
    supervisor: Ref


def assemble(
    specs: Iterable[WorkerSpec],
    *,
    runtime: Runtime,
    processes: Processes,
    store: Store,
    max_concurrent_starts: int | None = None,
    remembered: Remembered | None = None,
    event_linger_s: float = 0.0,
) -> Actors:
    """Start the actors and tell them about the workers; nothing runs until it is started.

    What is remembered of them comes from the store, unless it was loaded before. An event that
    comes without a record waits for one for `event_linger_s`.
    """
    remembered = remembered or store.load()
    recorder = runtime.start(Recorder, runtime=runtime, store=store)
    broker = runtime.start(
        Broker,
        runtime=runtime,
        recorder=recorder,
        last_id=remembered.last_event_id,
        linger_s=event_linger_s,
    )
    monitor = runtime.start(
        HealthMonitor, runtime=runtime, processes=processes, recorder=recorder, broker=broker
    )
    supervisor = runtime.start(
        Supervisor,
        runtime=runtime,
        processes=processes,
        monitor=monitor,
        recorder=recorder,
        broker=broker,
        max_concurrent_starts=max_concurrent_starts,
    )
    for actor in (recorder, monitor):
        actor.tell(Attend(supervisor, broker))
    recorder.tell(Keep(MirrorWiped()))
    supervisor.tell(Declare(tuple(specs), remembered))
    return Actors(broker, recorder, monitor, supervisor)
