"""What a gateway needs of whoever runs the workers: ordinary methods that answer in time.

`System` has most of them; what belongs to a configuration file (reload, scale, rolling
restart) is added by whoever has read that file. Each method may be called from any thread,
blocks no longer than its own timeout, and raises what stands in `rekindle.actors.errors`:
`UnknownWorkerError`, `RequestRefusedError`, `RequestTimeoutError`, `StoreError`, `SpecError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ..deaths.crash_bundle import Bundle
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.records import DeathRecord, EventPage
from ..facts.usage import Usage
from ..messages import StatusReport, StopResult, WorkerStatus
from ..ports import Jobs, Receiver
from ..processes.watch.transcript import OutputLines
from ..spec.worker_spec import WorkerSpec
from ..views.timeline import Timeline
from .gateway_state import GatewayState

Summary = Mapping[str, object]
"""What an order led to, in a few words and numbers."""


class Rolling(msgspec.Struct, frozen=True):
    """How a rolling restart is."""

    under_way: bool
    given_up: str | None
    """Why the latest one came to nothing, if it did."""


class Operator(Protocol):
    """Shows the workers, and carries out orders."""

    # ── what there is to see ─────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """Every worker, and how the store is. Never waits for the store."""
        ...

    def status(self, component_id: str, /) -> WorkerStatus:
        """One worker. Never waits for the store."""
        ...

    def check(self, component_id: str, /) -> None:
        """Raise UnknownWorkerError if there is no such worker. Never waits for the store."""
        ...

    def explain(self, component_id: str, /) -> str:
        """In sentences: why it is down, where its counters stand, what happens next."""
        ...

    def deaths(self, component_id: str | None = None, /, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest deaths that were kept, newest first."""
        ...

    def bundles(self, component_id: str, /, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of its latest deaths, newest first."""
        ...

    def bundle(self, component_id: str, generation: int, /) -> Bundle:
        """The evidence of one death; `UnknownDeathError` if nothing is kept of it."""
        ...

    def timeline(self, component_id: str, /, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """What happened to it, newest first, and its mean time between failures."""
        ...

    def spec(self, component_id: str, /) -> WorkerSpec:
        """How it is declared."""
        ...

    def output(self, component_id: str, /) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        ...

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """What these workers wrote, or all: after the line of that number, or the last lines of each."""
        ...

    def usages(self) -> Mapping[str, Usage]:
        """What every worker that runs uses now; a look around, which takes its time."""
        ...

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that left their worker's session: pid and worker. A look around, too."""
        ...

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders that were kept, newest first."""
        ...

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The events that are kept, after a number, oldest first."""
        ...

    def subscribe(self, receiver: Receiver, /, *topics: str) -> None:
        """Tell a receiver a snapshot of these topics, then what changes. Never waits."""
        ...

    def unsubscribe(self, receiver: Receiver, /) -> None:
        """Stop telling it. Never waits."""
        ...

    def gateways(self) -> tuple[GatewayState, ...]:
        """How the gateways are that tell events to the outside. Never waits."""
        ...

    def metrics(self) -> bytes | None:
        """Numbers for Prometheus; None if they are turned off. Never waits for the store."""
        ...

    def alerts(self) -> tuple[Alert, ...]:
        """The alerts that are not over, and the latest of those that are; the worst first."""
        ...

    # ── jobs ─────────────────────────────────────────────────────────────────────────────

    @property
    def jobs(self) -> Jobs:
        """The queues. Every call may wait for the store."""
        ...

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that workers serve."""
        ...

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; `for_s` ends it by itself."""
        ...

    def resume(self, *component_ids: str) -> bool:
        """End a pause; False: there was none."""
        ...

    def start_worker(self, component_id: str, /) -> bool:
        """Start one worker now, whatever delay it is in; False: it runs already."""
        ...

    def stop_worker(self, component_id: str, /) -> StopResult:
        """Stop one worker; it stays down until it is started, or the supervisor is."""
        ...

    def restart(self, component_id: str, /) -> None:
        """Clear a worker's counters and start it afresh, now."""
        ...

    def reset(self, component_id: str, /) -> None:
        """Clear a worker's counters and failure; it is not started."""
        ...

    def reload(self) -> Summary:
        """Apply the changed configuration; a bad one changes nothing."""
        ...

    def shut_down(self) -> None:
        """Begin the end of the supervisor, or hurry it; returns at once."""
        ...

    def scale(self, name: str, count: int, /) -> Summary | None:
        """Have so many workers of a group."""
        ...

    def rolling(self, name: str, /) -> Rolling:
        """How the latest rolling restart of a group is."""
        ...

    def rolling_restart(self, name: str, /) -> Summary | None:
        """Restart a group without ever having too few of it up."""
        ...

    def acknowledge(self, alert_id: int, by: str, /) -> None:
        """Take note of an alert in somebody's name."""
        ...

    def audit(self, entry: AuditEntry, /) -> None:
        """Keep this order. Must not wait for the store."""
        ...
