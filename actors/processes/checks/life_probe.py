"""Asks a running process again and again whether it is alive."""

from __future__ import annotations

import random

from ...messages.internal.to_monitor import LifeProbed
from ...runtime.resilient_actor import tell
from ...spec.policies.alive_policy import AlivePolicy
from ...spec.probe import Probe
from ..child import Child
from ..probes.probe_pool import ProbePool, ProbeQuestion, ProbeResult


class LifeProbe:
    """The probe of one process. Runs on the thread of the pool, until the process ends."""

    def __init__(self, pool: ProbePool, child: Child, alive: AlivePolicy, probe: Probe) -> None:
        self._pool = pool
        self._child = child
        self._alive = alive
        self._question = ProbeQuestion(probe, alive.timeout_s, child.request.spec, self._answered)

    def begin(self) -> None:
        """Ask for the first time: not together with all others that started now."""
        self._pool.after(self._alive.grace_s + self._alive.every_s * random.random(), self._ask)

    def _ask(self) -> None:
        if self._child.exit is None:
            self._pool.ask(self._question)

    def _answered(self, answer: ProbeResult) -> None:
        child = self._child
        if child.exit is None:
            probed = LifeProbed(child.id, child.generation, answer.is_good, answer.words)
            tell(child.request.monitor, probed)
            self._pool.after(max(0.0, self._alive.every_s - answer.took_s), self._ask)
