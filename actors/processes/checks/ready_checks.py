"""Looks at the conditions of a starting worker: its output, and what its probes answer.

The HealthMonitor decides what an answer means. A probe is asked again until it answers well or the process
ends: soon at first, then once in each interval.
"""

from __future__ import annotations

import random
import re
from functools import partial

from ...messages.internal.to_monitor import ConditionChecked
from ...runtime.resilient_actor import tell
from ...spec.policies.ready_policy import Condition, ReadyPolicy
from ...spec.probe import Probe
from ..child import Child
from ..probes.probe_pool import ProbePool, ProbeQuestion, ProbeResult

FIRST_LOOK_S = 0.05
GROWTH = 1.5
SPREAD = 0.1
"""The share of a delay by which looks differ, so that those of many workers do not come together."""

LONGEST_LINE = 1000
"""How much of a line is compared with a pattern: a long one must not hold up the thread that reads."""


class ReadyProbe:
    """One probe of a starting process. Runs on the thread of the pool."""

    def __init__(
        self, pool: ProbePool, child: Child, condition: Condition, probe: Probe, ready: ReadyPolicy
    ) -> None:
        self._pool = pool
        self._child = child
        self._condition = condition
        self._question = ProbeQuestion(probe, ready.timeout_s, child.request.spec, self._answered)
        self._every_s = ready.every_s
        self._looks = 0

    def ask_later(self) -> None:
        """Ask after the next delay, unless the process has ended."""
        delay_s = min(self._every_s, FIRST_LOOK_S * GROWTH ** min(self._looks, 20))
        self._looks += 1
        self._pool.after(delay_s * (1 - SPREAD / 2 + SPREAD * random.random()), self._ask)

    def _ask(self) -> None:
        if self._child.exit is None:
            self._pool.ask(self._question)

    def _answered(self, answer: ProbeResult) -> None:
        if self._child.exit is None:
            _tell(self._child, self._condition, answer)
            if not answer.is_good:
                self.ask_later()


def seek_line(child: Child, pattern: str) -> None:
    """Look for a line of output that matches; the monitor is told of the first. On the thread that reads."""
    child.output.look_for(partial(_matched, child, re.compile(pattern)))


def _matched(child: Child, pattern: re.Pattern[str], line: str) -> bool:
    """Whether a line of output meets the condition; the monitor is told if it does."""
    is_met = pattern.search(line[:LONGEST_LINE]) is not None
    if is_met:
        _tell(child, Condition.OUTPUT, ProbeResult(True, "", 0.0))
    return is_met


def _tell(child: Child, condition: Condition, answer: ProbeResult) -> None:
    checked = ConditionChecked(child.id, child.generation, condition, answer.is_good, answer.words)
    tell(child.request.monitor, checked)
