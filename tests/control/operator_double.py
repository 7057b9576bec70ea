"""An operator over a real system, which a test can observe, delay and break."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rekindle.actors import RequestRefusedError, StatusReport, StopResult, System, UnknownWorkerError
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.records import DeathRecord, EventPage
from rekindle.actors.gateways.event_source import EventSource
from rekindle.actors.gateways.gateway_state import GatewayState
from rekindle.actors.gateways.metrics.exposition import MetricsSource
from rekindle.actors.gateways.operator import Rolling, Summary
from rekindle.actors.views.log_page import LogPage, LogQuery
from rekindle.actors.views.timeline import Timeline
from rekindle.actors.views.worker_history import WorkerHistory

GROUPS = ("tag",)
"""The groups that exist; the system itself has none."""

if TYPE_CHECKING:
    _Passing = System
else:

    class _Passing:
        """Passes every method of the gateways' protocols on to the system, and nothing else."""

        def __getattr__(self, name: str) -> Any:
            if not (hasattr(EventSource, name) or hasattr(MetricsSource, name)):
                raise AttributeError(f"a gateway may not use {name!r}: it is not part of its protocol")
            return getattr(self.system, name)


class OperatorDouble(_Passing):
    """A system with one group; what stands here differs from the system, everything else is passed on."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.orders: list[tuple[object, ...]] = []
        self.store_is_back = threading.Event()
        self.store_is_back.set()
        self.store_was_asked = threading.Event()
        self.stops_may_end = threading.Event()
        self.stops_may_end.set()
        self.logs_are_read = threading.Event()
        self.logs_are_read.set()
        self.logs_asked = 0
        self.error: Exception | None = None
        """What `report` raises instead."""
        self.store_error: Exception | None = None
        """What every method that reads the store raises instead."""

    def _ask_the_store(self) -> None:
        self.store_was_asked.set()
        if self.store_error is not None:
            raise self.store_error
        self.store_is_back.wait(60.0)

    # ── what can be delayed or broken ────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        if self.error is not None:
            raise self.error
        return self.system.report()

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        self._ask_the_store()
        return self.system.deaths(component_id, limit)

    def history(self, component_id: str, /, limit: int = 100) -> WorkerHistory:
        self._ask_the_store()
        return self.system.history(component_id, limit)

    def logged(self, component_id: str, /, query: LogQuery) -> LogPage:
        self.logs_asked += 1
        self.logs_are_read.wait(60.0)
        return self.system.logged(component_id, query)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        self._ask_the_store()
        return self.system.bundles(component_id, limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        self._ask_the_store()
        return self.system.bundle(component_id, generation)

    def timeline(self, component_id: str, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        self._ask_the_store()
        return self.system.timeline(component_id, since_wall_ms, limit)

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        self._ask_the_store()
        return self.system.audited(limit)

    def event_log(self, after_id: int = 0, limit: int = 100) -> EventPage:
        self._ask_the_store()
        return self.system.event_log(after_id, limit)

    def stop_worker(self, component_id: str, timeout_s: float | None = None) -> StopResult:
        self.stops_may_end.wait(60.0)
        return self.system.stop_worker(component_id, timeout_s)

    # ── what is recorded ─────────────────────────────────────────────────────────────────

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        self.orders.append(("pause", *component_ids, reason, for_s))
        self.system.pause(*component_ids, reason=reason, for_s=for_s)

    # ── what a system alone does not have ────────────────────────────────────────────────

    def gateways(self) -> tuple[GatewayState, ...]:
        return ()

    def metrics(self) -> bytes | None:
        return None

    def shut_down(self) -> None:
        self.orders.append(("shut_down",))

    def reload(self) -> Summary:
        self.orders.append(("reload",))
        return {"added": ["worker:tag:1"], "unchanged": 1}

    def upgrade(self, python: str | None = None, /, *, only_check: bool = False) -> Summary:
        self.orders.append(("upgrade", python, only_check))
        return {"from": "1.0", "to": "1.1", "number": 0, "pid": 1}

    def latest_upgrade(self) -> Summary:
        return {"version": "1.1", "number": 1, "failed": None, "blind_ms": 400, "pid": 1}

    def scale(self, name: str, count: int) -> Summary | None:
        if name not in GROUPS:
            raise UnknownWorkerError(name)
        self.orders.append(("scale", name, count))
        return {"count": count}

    def rolling(self, name: str) -> Rolling:
        return Rolling(under_way=False, given_up=None)

    def rolling_restart(self, name: str, surge: int | None = None, roll_back: bool = True) -> Summary | None:
        if name not in GROUPS:
            raise RequestRefusedError(f"{name} is not a group")
        self.orders.append(("rolling_restart", name))
        return None
