"""Begins the checks of a process: the conditions of its readiness, and the probe of its liveness.

The HealthMonitor decides what an answer means. Probes of all workers share one thread.
"""

from __future__ import annotations

from functools import partial

from ...messages.internal.to_monitor import ConditionChecked
from ...ports import Control
from ...runtime.resilient_actor import tell
from ...spec.deployment.drain_policy import DrainPolicy
from ..child import Child
from ..probes.probe_pool import ProbePool, ProbeQuestion, ProbeResult
from ..watch.epoll_loop import EpollLoop
from .life_probe import LifeProbe
from .ready_checks import ReadyProbe, seek_line

RETRY_S = 1.0
"""When the first probe is asked again if this process has no thread or descriptor left for it."""


class WorkerChecks:
    """Used on the loop that watches the processes. Without a probe there is no thread."""

    def __init__(self, mark: str, loop: EpollLoop, outputs: EpollLoop) -> None:
        self._mark = mark
        self._loop = loop
        self._outputs = outputs
        self._pool: ProbePool | None = None

    def begin(self, child: Child) -> None:
        """Look at a process whose start was reported."""
        spec = child.request.spec
        if spec.ready is not None and spec.ready.output is not None:
            self._outputs.post(partial(seek_line, child, spec.ready.output))
        if (spec.ready is not None and spec.ready.probes) or spec.alive is not None:
            self._begin_probes(child)

    def drain(self, child: Child, drain: DrainPolicy) -> None:
        """Tell a process to take no more work, over its channel and in the way of its policy."""
        child.send(Control.DRAIN)
        if drain.probe is None:
            if child.channel is None:
                child.report_drained("it has no channel, and stop.drain names neither command nor http")
            return
        try:
            self._pool = pool = self._pool or ProbePool(self._mark)
        except (OSError, RuntimeError) as error:
            child.report_drained(str(error))
            return
        variables = {"REKINDLE_WORKER_PID": str(child.pid)}
        told = partial(_drained, child)
        pool.ask(ProbeQuestion(drain.probe, drain.within_s, child.request.spec, told, variables))

    def close(self, timeout_s: float) -> None:
        """Ask nothing more."""
        if self._pool is not None:
            self._pool.close(timeout_s)

    def _begin_probes(self, child: Child) -> None:
        ready, alive = child.request.spec.ready, child.request.spec.alive
        probes = {} if ready is None else ready.probes
        try:
            self._pool = pool = self._pool or ProbePool(self._mark)
        except (OSError, RuntimeError) as error:
            for condition in probes:
                answer = ConditionChecked(child.id, child.generation, condition, False, str(error))
                tell(child.request.monitor, answer)
            if child.exit is None:
                self._loop.after(RETRY_S, lambda: self._begin_probes(child))
            return
        for condition, probe in probes.items():
            assert ready is not None
            ReadyProbe(pool, child, condition, probe, ready).ask_later()
        if alive is not None and alive.probe is not None:
            LifeProbe(pool, child, alive, alive.probe).begin()


def _drained(child: Child, answer: ProbeResult) -> None:
    if child.exit is None:
        child.report_drained("" if answer.is_good else answer.words)
