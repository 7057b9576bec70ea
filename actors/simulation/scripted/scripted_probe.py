"""The probe of a scripted process: asks in virtual time whether it is alive, as the real one does."""

from __future__ import annotations

from collections.abc import Callable

from ...messages.internal.to_monitor import LifeProbed
from ...ports import Runtime, SpawnRequest, Timer
from ...runtime.resilient_actor import tell
from ...spec.policies.alive_policy import AlivePolicy
from ..scenarios.history import History, ProbeAnswerHeard


class ScriptedProbe:
    """Asks every `every_s`; a hung or frozen process does not answer."""

    def __init__(
        self,
        runtime: Runtime,
        history: History,
        request: SpawnRequest,
        alive: AlivePolicy,
        why_not: Callable[[], str | None],
    ) -> None:
        """Prepare it.

        Args:
            runtime: supplies the clock and the timers.
            history: where answers are recorded.
            request: the worker, and the monitor that is told.
            alive: how often is asked.
            why_not: why the process does not answer now, None if it does.
        """
        self._runtime = runtime
        self._history = history
        self.request = request
        self._alive = alive
        self._why_not = why_not
        self._timer: Timer = runtime.timers.after(alive.grace_s + alive.every_s, self, None)

    def stop(self) -> None:
        """The process has ended."""
        self._timer.cancel()

    def tell(self, message: object) -> None:  # a timer carries nothing
        """A timer: ask."""
        wrong = self._why_not()
        id_, generation = self.request.spec.id, self.request.generation
        self._history.add(ProbeAnswerHeard(self._runtime.clock.monotonic(), id_, generation, wrong is None))
        tell(self.request.monitor, LifeProbed(id_, generation, wrong is None, wrong or "answered"))
        self._timer = self._runtime.timers.after(self._alive.every_s, self, None)
