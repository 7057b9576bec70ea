"""An operator over a real system, whose doings a test can look at and hold up."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from rekindle.actors import (
    RequestRefusedError,
    StatusReport,
    StopResult,
    System,
    UnknownWorkerError,
    WorkerSpec,
    WorkerStatus,
)
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.facts.alert import Alert
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.records import DeathRecord, EventPage
from rekindle.actors.facts.usage import Usage
from rekindle.actors.gateways.gateway_state import GatewayState
from rekindle.actors.gateways.operator import Rolling, Summary
from rekindle.actors.ports import Jobs, Receiver
from rekindle.actors.processes.watch.transcript import OutputLines
from rekindle.actors.views.timeline import Timeline

GROUPS = ("tag",)
"""The groups that there are; the system itself knows none."""


class Desk:
    """Passes everything on to a system, and has one group."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.orders: list[tuple[object, ...]] = []
        self.store_is_back = threading.Event()
        self.store_is_back.set()
        self.store_was_asked = threading.Event()
        self.stops_may_end = threading.Event()
        self.stops_may_end.set()
        self.error: Exception | None = None
        """What the next look at the workers raises instead."""
        self.store_error: Exception | None = None
        """What every look into the store raises instead."""

    def _ask_the_store(self) -> None:
        self.store_was_asked.set()
        if self.store_error is not None:
            raise self.store_error
        self.store_is_back.wait(60.0)

    def report(self) -> StatusReport:
        if self.error is not None:
            raise self.error
        return self.system.report()

    def status(self, component_id: str) -> WorkerStatus:
        return self.system.status(component_id)

    def explain(self, component_id: str) -> str:
        return self.system.explain(component_id)

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        self._ask_the_store()
        return self.system.deaths(component_id, limit)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        self._ask_the_store()
        return self.system.bundles(component_id, limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        self._ask_the_store()
        return self.system.bundle(component_id, generation)

    def timeline(self, component_id: str, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        self._ask_the_store()
        return self.system.timeline(component_id, since_wall_ms, limit)

    def spec(self, component_id: str) -> WorkerSpec:
        return self.system.spec(component_id)

    def output(self, component_id: str) -> tuple[str, ...]:
        return self.system.output(component_id)

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        return self.system.written(*ids, after=after, last=last)

    def check(self, component_id: str) -> None:
        self.system.check(component_id)

    def strays(self) -> tuple[tuple[int, str], ...]:
        return self.system.strays()

    def usages(self) -> Mapping[str, Usage]:
        return self.system.usages()

    @property
    def jobs(self) -> Jobs:
        return self.system.jobs

    @property
    def queues(self) -> tuple[str, ...]:
        return self.system.queues

    def alerts(self) -> tuple[Alert, ...]:
        return self.system.alerts()

    def acknowledge(self, alert_id: int, by: str) -> None:
        self.system.acknowledge(alert_id, by)

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        self._ask_the_store()
        return self.system.audited(limit)

    def event_log(self, after_id: int = 0, limit: int = 100) -> EventPage:
        self._ask_the_store()
        return self.system.event_log(after_id, limit)

    def subscribe(self, receiver: Receiver, *topics: str) -> None:
        self.system.subscribe(receiver, *topics)

    def unsubscribe(self, receiver: Receiver) -> None:
        self.system.unsubscribe(receiver)

    def gateways(self) -> tuple[GatewayState, ...]:
        return ()

    def metrics(self) -> bytes | None:
        return None

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        self.orders.append(("pause", *component_ids, reason, for_s))
        self.system.pause(*component_ids, reason=reason, for_s=for_s)

    def resume(self, *component_ids: str) -> bool:
        return self.system.resume(*component_ids)

    def start_worker(self, component_id: str) -> bool:
        return self.system.start_worker(component_id)

    def stop_worker(self, component_id: str) -> StopResult:
        self.stops_may_end.wait(60.0)
        return self.system.stop_worker(component_id)

    def restart(self, component_id: str) -> None:
        self.system.restart(component_id)

    def reset(self, component_id: str) -> None:
        self.system.reset(component_id)

    def shut_down(self) -> None:
        self.orders.append(("shut_down",))

    def reload(self) -> Summary:
        self.orders.append(("reload",))
        return {"added": ["worker:tag:1"], "unchanged": 1}

    def scale(self, name: str, count: int) -> Summary | None:
        if name not in GROUPS:
            raise UnknownWorkerError(name)
        self.orders.append(("scale", name, count))
        return {"count": count}

    def rolling(self, name: str) -> Rolling:
        return Rolling(under_way=False, given_up=None)

    def rolling_restart(self, name: str) -> Summary | None:
        if name not in GROUPS:
            raise RequestRefusedError(f"{name} is no group")
        self.orders.append(("rolling_restart", name))
        return None

    def audit(self, entry: AuditEntry) -> None:
        self.system.audit(entry)
