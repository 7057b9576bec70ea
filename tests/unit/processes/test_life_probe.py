"""When the probes of many workers that start together are asked."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rekindle.actors.processes.checks.life_probe import LifeProbe
from rekindle.actors.processes.probes.probe_pool import ProbeQuestion, ProbeResult
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.probe import TcpProbe

PROBE = TcpProbe("localhost:80")
ALIVE = AlivePolicy(tcp=PROBE, every_s=10, grace_s=30)


class Pool:
    """Keeps the delays, and asks nothing."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.asked: list[ProbeQuestion] = []
        self.calls: list[Callable[[], None]] = []

    def after(self, delay_s: float, call: Callable[[], None]) -> None:
        self.delays.append(delay_s)
        self.calls.append(call)

    def ask(self, question: ProbeQuestion) -> None:
        self.asked.append(question)


def probe(pool: Any, told: list[Any]) -> LifeProbe:
    monitor = SimpleNamespace(tell=told.append)
    request = SimpleNamespace(spec=None, monitor=monitor)
    child: Any = SimpleNamespace(id="w", generation=1, exit=None, request=request)
    return LifeProbe(pool, child, ALIVE, PROBE)


def test_the_first_probes_of_a_hundred_workers_are_spread_over_the_interval() -> None:
    pool = Pool()
    for _ in range(100):
        probe(pool, []).begin()
    assert all(30 <= delay <= 40 for delay in pool.delays)
    for third in (30, 33, 36):
        assert any(third <= delay <= third + 4 for delay in pool.delays)


def test_the_next_probe_comes_one_interval_after_the_last_one_however_long_that_took() -> None:
    pool, told = Pool(), list[Any]()
    probe(pool, told).begin()
    pool.calls[0]()
    pool.asked[0].answered(ProbeResult(False, "no answer within 2 s", 2.0))
    assert pool.delays[1] == 8.0
    assert [(each.is_good, each.words) for each in told] == [(False, "no answer within 2 s")]
