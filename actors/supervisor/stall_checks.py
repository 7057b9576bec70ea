"""Whether supervision stalled: the whole supervisor was suspended, or the watcher of the processes blocks.

Both are looked for once a second while a worker sends heartbeats. Without any, a supervisor that has
nothing to do must not wake up; then the watcher is looked at when a command or a question arrives.
"""

from __future__ import annotations

from ..messages import SupervisionStalled
from ..messages.internal.to_supervisor import StallCheckDue
from ..ports import Processes, Receiver, Runtime, Timer
from ..runtime.resilient_actor import tell
from .workers import Workers

STALL_CHECK_S = 1.0

STALL_S = 2.0
"""How late a check must be; a busy machine delays it for less."""

WATCHER_STALL_S = 5.0
"""How long the watcher must have been busy with one thing."""


class StallChecks:
    """Publishes each stall once."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        processes: Processes,
        *,
        supervisor: Receiver,
        persistence: Receiver,
    ) -> None:
        self._runtime = runtime
        self._workers = workers
        self._processes = processes
        self._supervisor = supervisor
        self._persistence = persistence
        self._is_on = False
        """In virtual time nothing suspends the supervisor."""
        self._watcher_blocks = False
        self._timer: Timer | None = None

    def check(self, due_at: float) -> None:
        """Publish how late this check is, if it is late, and schedule the next one."""
        self._is_on, self._timer = True, None
        late_s = self._runtime.clock.monotonic() - due_at
        if late_s >= STALL_S:
            tell(self._persistence, SupervisionStalled(round(late_s, 1)))
        self.command_came()

    def command_came(self) -> None:
        """Look at the watcher; continue with the checks if a worker sends heartbeats by now."""
        if not self._is_on:
            return
        self._check_watcher()
        if self._timer is None and any(worker.spec.run.reports_health for worker in self._workers):
            due = StallCheckDue(self._runtime.clock.monotonic() + STALL_CHECK_S)
            self._timer = self._runtime.timers.after(STALL_CHECK_S, self._supervisor, due)

    def _check_watcher(self) -> None:
        busy_s = self._processes.busy_s()
        before, self._watcher_blocks = self._watcher_blocks, busy_s >= WATCHER_STALL_S
        if self._watcher_blocks and not before:
            tell(self._persistence, SupervisionStalled(round(busy_s, 1), part="watcher"))
