"""The circuit breaker's machine: every state against every trigger."""

from __future__ import annotations

import pytest

from rekindle.actors import BreakerPolicy, SpecError
from rekindle.actors.rules.circuit_breaker import (
    Closed,
    Died,
    HalfOpen,
    HealthChanged,
    Open,
    ProbeEnded,
    State,
    Trigger,
    WaitElapsed,
    WorkerLeft,
    advance,
    holds,
    next_look_ms,
)
from rekindle.actors.spec.probe import address

P = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=10, canary_max_delay_s=30, hold_s=5)
NOW = 100_000
OPEN = Open(90_000, 95_000, "why")
WAITING = Open(90_000, 105_000, "why")
SECOND = Open(90_000, 95_000, "why", 1)
UNTIL = 130_000
TRIES = HalfOpen(90_000, "why", "a", 0, UNTIL)
WELL = HalfOpen(90_000, "why", "a", 0, UNTIL, healthy_ms=95_000)
SOON = HalfOpen(90_000, "why", "a", 0, UNTIL, healthy_ms=99_000)
LATE = HalfOpen(90_000, "why", "a", 0, NOW)
LATE_AND_SOON = HalfOpen(90_000, "why", "a", 0, NOW, healthy_ms=99_000)


@pytest.mark.parametrize(
    ("state", "trigger", "after"),
    [
        (Closed(), Died("a"), Closed(((NOW, "a"),))),
        (Closed(((70_001, "a"),)), Died("b"), Open(NOW, 110_000, "2 workers died within 30 s")),
        (Closed(((70_000, "a"),)), Died("b"), Closed(((NOW, "b"),))),
        (Closed(((99_000, "a"),)), Died("a"), Closed(((NOW, "a"),))),
        (Closed(), ProbeEnded(None), Closed()),
        (Closed(), ProbeEnded("refused"), Open(NOW, 110_000, "the probe failed: refused")),
        (Closed(), HealthChanged("a", True), Closed()),
        (Closed(), WaitElapsed(("a",), 30_000), Closed()),
        (Closed(), WorkerLeft("a"), Closed()),
        (OPEN, Died("a"), OPEN),
        (OPEN, WaitElapsed(("b", "a"), 30_000), HalfOpen(90_000, "why", "b", 0, UNTIL)),
        (SECOND, WaitElapsed(("b", "a"), 30_000), HalfOpen(90_000, "why", "a", 1, UNTIL)),
        (OPEN, WaitElapsed((), 30_000), Closed()),
        (WAITING, WaitElapsed(("b",), 30_000), WAITING),
        (OPEN, HealthChanged("a", True), OPEN),
        (OPEN, ProbeEnded(None), OPEN),
        (OPEN, ProbeEnded("refused"), Open(90_000, 105_000, "the probe failed: refused")),
        (OPEN, WorkerLeft("a"), OPEN),
        (TRIES, Died("a"), Open(90_000, 120_000, "why", 1)),
        (HalfOpen(90_000, "why", "a", 9, UNTIL), Died("a"), Open(90_000, 130_000, "why", 10)),
        (TRIES, Died("b"), TRIES),
        (TRIES, HealthChanged("a", True), HalfOpen(90_000, "why", "a", 0, UNTIL, NOW)),
        (WELL, HealthChanged("a", False), TRIES),
        (TRIES, HealthChanged("b", True), TRIES),
        (TRIES, WaitElapsed((), 30_000), TRIES),
        (SOON, WaitElapsed(("b",), 30_000), SOON),
        (WELL, WaitElapsed(("b",), 30_000), Closed()),
        (LATE, WaitElapsed(("b",), 30_000), Open(90_000, NOW, "why", 1)),
        (LATE_AND_SOON, WaitElapsed(("b",), 30_000), LATE_AND_SOON),
        (LATE_AND_SOON, HealthChanged("a", False), Open(90_000, NOW, "why", 1)),
        (TRIES, ProbeEnded("refused"), TRIES),
        (TRIES, WorkerLeft("a"), Open(90_000, NOW, "why")),
        (TRIES, WorkerLeft("b"), TRIES),
    ],
)
def test_the_table(state: State, trigger: Trigger, after: State) -> None:
    assert advance(state, trigger, P, NOW) == after


def test_every_worker_but_the_canary_is_held_while_the_breaker_is_not_closed() -> None:
    assert holds(Closed(), "a") is None
    assert holds(OPEN, "a") == "why"
    assert holds(TRIES, "b") == "why"
    assert holds(TRIES, "a") is None


def test_it_looks_again_when_time_alone_may_change_something() -> None:
    assert next_look_ms(Closed(), P) is None
    assert next_look_ms(OPEN, P) == 95_000
    assert next_look_ms(TRIES, P) == UNTIL
    assert next_look_ms(WELL, P) == 100_000


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"deaths": 0}, "deaths"),
        ({"deaths": None}, "deaths"),
        ({"window_s": 0}, "window_s"),
        ({"canary_delay_s": 100}, "canary_max_delay_s"),
        ({"probe_tcp": "localhost"}, "probe_tcp"),
        ({"probe_tcp": "a:1", "probe_command": ["true"]}, "probe_tcp"),
        ({"probe_command": [""]}, "probe_command"),
        ({"probe_call": 3}, "probe_call"),
        ({"probe_timeout_s": -1}, "probe_timeout_s"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, object], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        BreakerPolicy(**{"name": "db", **settings})  # type: ignore[arg-type]
    assert field in [problem.field for problem in refused.value.problems]


def test_an_address_is_a_host_and_a_port() -> None:
    assert address("db.local:5432") == ("db.local", 5432)
    assert address("[::1]:5432") == ("::1", 5432)
    assert address("db:0") is None
