"""The interface between gateways and the supervisor: ordinary methods that return in time.

`System` implements most of them; the command line's subclass adds those that need a configuration
file (reload, scale, rolling restart). Each method may be called from any thread, blocks no longer
than its own timeout, and raises errors of `rekindle.actors.errors`: `UnknownWorkerError`,
`RequestRefusedError`, `RequestTimeoutError`, `StoreError`, `SpecError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ..deaths.crash_bundle import Bundle
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.records import DeathRecord, EventPage
from ..facts.runs import Run
from ..facts.usage import Usage
from ..messages import NodeStatus, StatusReport, StopResult, WorkerStatus
from ..ports import Jobs, Receiver
from ..processes.watch.transcript import OutputLines
from ..spec.worker_spec import WorkerSpec
from ..views.diagnosis import WorkerDiagnosis
from ..views.log_page import LogPage, LogQuery
from ..views.setting_origin import Configuration
from ..views.timeline import Timeline
from ..views.worker_history import WorkerHistory
from .gateway_state import GatewayState

Summary = Mapping[str, object]
"""The result of a command, in a few words and numbers."""


class Rolling(msgspec.Struct, frozen=True):
    """The state of a rolling restart."""

    under_way: bool
    given_up: str | None
    """Why the latest one was given up, if it was."""
    steps: tuple[str, ...] = ()
    """What a rollout has done so far, in words."""


class Operator(Protocol):
    """Answers queries about the workers, and carries out commands."""

    # ── queries ──────────────────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """Every worker, and the state of the store. Never waits for the store."""
        ...

    def status(self, component_id: str, /) -> WorkerStatus:
        """One worker. Never waits for the store."""
        ...

    def check(self, component_id: str, /) -> None:
        """Raise UnknownWorkerError if there is no such worker. Never waits for the store."""
        ...

    def explain(self, component_id: str, /) -> str:
        """In sentences: its state and the reason, its counters, what happens next."""
        ...

    def diagnose(self, component_id: str, /) -> WorkerDiagnosis:
        """The same, with fields for programs beside the sentences."""
        ...

    def deaths(self, component_id: str | None = None, /, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest persisted deaths, newest first."""
        ...

    def history(self, component_id: str, /, limit: int = 100) -> WorkerHistory:
        """The latest persisted deaths of one worker, newest first, and where they are known from."""
        ...

    def runs(self, component_id: str, /, limit: int = 100) -> tuple[Run, ...]:
        """The latest runs of a scheduled worker, newest first."""
        ...

    def bundles(self, component_id: str, /, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of its latest deaths, newest first."""
        ...

    def bundle(self, component_id: str, generation: int, /) -> Bundle:
        """The evidence of one death; `UnknownDeathError` if none is persisted."""
        ...

    def timeline(self, component_id: str, /, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """Its events, newest first, and its mean time between failures."""
        ...

    def spec(self, component_id: str, /) -> WorkerSpec:
        """Its declaration."""
        ...

    def secrets(self, component_id: str, /) -> frozenset[str]:
        """What must not be shown of a worker: secrets of its environment, the database's password.

        Raises:
            RequestRefusedError: only another node of a cluster knows them.
        """
        ...

    def output(self, component_id: str, /) -> tuple[str, ...]:
        """The last output lines of a worker."""
        ...

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """The output of these workers, or of all: after a line's number, or the last lines of each."""
        ...

    def logged(self, component_id: str, /, query: LogQuery) -> LogPage:
        """Older output of a worker, found from the newest line to the oldest, a page at a time."""
        ...

    def usages(self) -> Mapping[str, Usage]:
        """What every running worker uses now. Scans the process table, which takes time."""
        ...

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that left their worker's session: pid and worker. Scans the process table, too."""
        ...

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest persisted commands, newest first."""
        ...

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The persisted events after a number, oldest first."""
        ...

    def subscribe(self, receiver: Receiver, /, *topics: str) -> None:
        """Send a receiver a snapshot of these topics, then every change. Never waits."""
        ...

    def unsubscribe(self, receiver: Receiver, /) -> None:
        """End a subscription. Never waits."""
        ...

    def origins(self) -> Mapping[str, str | None]:
        """Where its `configuration` and its `database` are, without passwords. Never waits."""
        ...

    def gateways(self) -> tuple[GatewayState, ...]:
        """The states of the gateways that send events. Never waits."""
        ...

    def metrics(self) -> bytes | None:
        """Metrics for Prometheus; None if they are disabled. Never waits for the store."""
        ...

    def alerts(self) -> tuple[Alert, ...]:
        """The active alerts and the latest resolved ones, most severe first."""
        ...

    def nodes(self) -> tuple[NodeStatus, ...]:
        """The nodes of the cluster; none without one. Never waits for the store."""
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

    # ── commands ─────────────────────────────────────────────────────────────────────────

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; after `for_s` seconds the pause ends by itself."""
        ...

    def resume(self, *component_ids: str) -> bool:
        """End a pause; False: nothing was paused."""
        ...

    def start_worker(self, component_id: str, /) -> bool:
        """Start one worker now, even within a restart delay; False: it already runs."""
        ...

    def stop_worker(self, component_id: str, /) -> StopResult:
        """Stop one worker; it stays stopped until it is started or the supervisor restarts."""
        ...

    def restart(self, component_id: str, /) -> None:
        """Clear a worker's counters and restart it now."""
        ...

    def reset(self, component_id: str, /) -> None:
        """Clear a worker's counters and failure; it is not started."""
        ...

    def run_now(self, component_id: str, /) -> None:
        """Begin a run of a scheduled worker now."""
        ...

    def signal(self, component_id: str, signal: int | str, /) -> None:
        """Send a worker's process a signal."""
        ...

    def reload(self) -> Summary:
        """Apply the changed configuration; an invalid one changes nothing."""
        ...

    def shut_down(self) -> None:
        """Begin to shut down, or escalate a shutdown in progress; returns at once."""
        ...

    def upgrade(self, python: str | None, /, *, only_check: bool = False) -> Summary:
        """Check another installation, and begin to replace this program by it unless only that is wanted."""
        ...

    def configuration(self) -> Configuration | None:
        """Every setting with its origin; None if a host program has declared the workers."""
        ...

    def latest_upgrade(self) -> Summary:
        """How often the supervisor was upgraded, and what became of the latest attempt."""
        ...

    def scale(self, name: str, count: int, /) -> Summary | None:
        """Set the number of workers of a group."""
        ...

    def rolling(self, name: str, /) -> Rolling:
        """The latest rolling restart of a group."""
        ...

    def rolling_restart(
        self, name: str, /, surge: int | None = None, roll_back: bool = True
    ) -> Summary | None:
        """Restart a group, keeping enough of its workers up; with a surge, all that are wanted."""
        ...

    def acknowledge(self, alert_id: int, by: str, /) -> None:
        """Acknowledge an alert in the name of `by`."""
        ...

    def audit(self, entry: AuditEntry, /) -> None:
        """Record this command. Must not wait for the store."""
        ...
