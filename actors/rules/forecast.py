"""Pure: simulates a restart policy for a worker that dies in a given way, with `restarts.decide`.

    behaviour ─▶ life ─▶ death ─▶ decide ─▶ restart after its delay ─▶ the next life …
                                     └─▶ given up, or left down

A `Behaviour` gives the next life: how long it lasts and how it ends, or that it does not end.
Times are milliseconds since the first start. Randomness is passed in as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise, repeat

import msgspec

from ..deaths.death import Action, Death, Exit
from ..facts.records import DeathRecord
from ..spec.policies.restart_policy import RestartPolicy
from .restarts import Circumstances, Decision, RestartState, decide

HOUR_MS = 3_600_000
MOST_LIVES = 100_000
"""A forecast ends here: about one death per second for a day."""


class ForecastLife(msgspec.Struct, frozen=True, kw_only=True):
    """One life that ends: how long it lasts, and how it ends."""

    uptime_ms: int
    death: Death
    idle_ms: int = 0
    """How long its start was delayed by something other than the policy: a pause, a stop."""


Behaviour = Callable[[int, int], ForecastLife | None]
"""(number from 1, when it starts in ms) to a life; None for one that does not end."""


class ForecastEnd(StrEnum):
    """How a forecast ends."""

    GIVEN_UP = "given_up"
    LEFT_DOWN = "left_down"
    """Not restarted and not failed: the policy only notifies, or excludes this restart."""
    LIVES_ON = "lives_on"
    STILL_DYING = "still_dying"
    """It still dies when the forecast ends."""


class PastLife(msgspec.Struct, frozen=True):
    """A life that ended, and the decision on its death."""

    number: int
    started_ms: int
    death: Death
    decision: Decision

    @property
    def died_ms(self) -> int:
        """When it ended."""
        return self.started_ms + self.death.uptime_ms

    @property
    def restarted(self) -> bool:
        """Whether another life follows."""
        return self.decision.action.restarts


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would do."""

    policy: RestartPolicy | None
    """None: recorded decisions, whose policy is not known."""
    lives: tuple[PastLife, ...]
    verdict: ForecastEnd
    at_ms: int
    """When the verdict was reached: the last death, the start that lasts, or the end of the forecast."""
    up_since_ms: int | None = None
    """The start of a life that has not ended."""

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return sum(life.restarted for life in self.lives)

    @property
    def reason(self) -> str:
        """The reason of the last decision; empty without a death."""
        return self.lives[-1].decision.reason if self.lives else ""

    def up_spans(self, end_ms: int) -> Iterator[tuple[int, int]]:
        """When it ran, from start to death, until a moment."""
        for life in self.lives:
            yield life.started_ms, min(life.died_ms, end_ms)
        if self.up_since_ms is not None and self.up_since_ms < end_ms:
            yield self.up_since_ms, end_ms

    def up_ms(self, end_ms: int) -> int:
        """How long it ran until a moment."""
        return sum(max(0, to - since) for since, to in self.up_spans(end_ms))

    def restarts_ms(self) -> tuple[int, ...]:
        """When each restart was due, in order."""
        return tuple(life.died_ms + life.decision.delay_ms for life in self.lives if life.restarted)

    def busiest_hour(self) -> int:
        """The most restarts within one hour."""
        stamps, first, most = self.restarts_ms(), 0, 0
        for last, at in enumerate(stamps):
            while at - stamps[first] >= HOUR_MS:
                first += 1
            most = max(most, last - first + 1)
        return most


def forecast(
    policy: RestartPolicy,
    behaviour: Behaviour,
    *,
    until_ms: int | None = None,
    chances: Iterator[float] | None = None,
    is_task: bool = False,
) -> Forecast:
    """Simulate a worker under a policy until a verdict.

    Args:
        policy: decides on every death.
        behaviour: how each life goes.
        until_ms: when to stop; None: at the verdict or after `MOST_LIVES`.
        chances: numbers from 0 up to but not including 1, one per death, for the jitter.
        is_task: whether the process is meant to end, as that of a run is.
    """
    chances = repeat(0.0) if chances is None else chances
    lives: list[PastLife] = []
    state, start = RestartState(), 0

    def ended(verdict: ForecastEnd, at_ms: int, up_since_ms: int | None = None) -> Forecast:
        return Forecast(
            policy=policy, lives=tuple(lives), verdict=verdict, at_ms=at_ms, up_since_ms=up_since_ms
        )

    while len(lives) < MOST_LIVES and (until_ms is None or start < until_ms):
        life = behaviour(len(lives) + 1, start)
        if life is None:
            return ended(ForecastEnd.LIVES_ON, start, start)
        start += life.idle_ms
        died = start + life.uptime_ms
        if until_ms is not None and died > until_ms:
            return ended(ForecastEnd.STILL_DYING, until_ms, min(start, until_ms))
        around = Circumstances(now_ms=died, chance=next(chances, 0.0), is_task=is_task)
        decision = decide(policy, state, life.death, around)
        lives.append(PastLife(len(lives) + 1, start, life.death, decision))
        if not decision.action.restarts:
            failed = decision.action is Action.MARK_FAILED
            return ended(ForecastEnd.GIVEN_UP if failed else ForecastEnd.LEFT_DOWN, died)
        state, start = decision.state, died + decision.delay_ms
    return ended(ForecastEnd.STILL_DYING, start if until_ms is None else until_ms)


def dying(
    after_ms: int, exit_: Exit, *, healthy_after_ms: int = 0, outage_ms: int | None = None
) -> Behaviour:
    """A worker whose lives all end after the same time, or with an outage, while it lasts.

    Args:
        after_ms: how long a life lasts.
        exit_: how it ends.
        healthy_after_ms: how long it takes from a start until it is healthy.
        outage_ms: how long a dependency is unavailable, from the first start on; a life that would
            end later does not end.
    """
    death = _death(exit_, after_ms, healthy_after_ms)

    def behaviour(_number: int, start_ms: int) -> ForecastLife | None:
        if outage_ms is not None and start_ms + after_ms > outage_ms:
            return None
        return ForecastLife(uptime_ms=after_ms, death=death)

    return behaviour


def recorded(deaths: Sequence[DeathRecord], *, healthy_after_ms: int = 0) -> Behaviour:
    """A worker that repeats its recorded lives, with the same durations and ends.

    Time that it was down for another reason than a delay stays (it was paused, stopped, or its
    supervisor did not run), unless it was not restarted: another policy may decide otherwise.

    Args:
        deaths: the recorded deaths, oldest first.
        healthy_after_ms: how long it took from a start until it was healthy, which is not recorded.
    """
    lives = [
        ForecastLife(uptime_ms=max(0, each.uptime_ms), death=_recalled(each, healthy_after_ms), idle_ms=idle)
        for each, idle in zip(deaths, _idle(deaths), strict=True)
    ]

    def behaviour(number: int, _start_ms: int) -> ForecastLife | None:
        return lives[number - 1] if number <= len(lives) else None

    return behaviour


def history(deaths: Sequence[DeathRecord]) -> Forecast:
    """The recorded deaths, oldest first, with their real decisions, to compare a forecast with."""
    lives: list[PastLife] = []
    began = deaths[0].died_at_wall_ms - max(0, deaths[0].uptime_ms) if deaths else 0
    for number, record in enumerate(deaths, start=1):
        started = record.died_at_wall_ms - began - max(0, record.uptime_ms)
        # If the clock was set back, lives seem to overlap.
        started = max(started, lives[-1].died_ms if lives else 0)
        lives.append(PastLife(number, started, _recalled(record, 0), _made(record, lives)))
    if not lives or lives[-1].restarted:
        since = lives[-1].died_ms + lives[-1].decision.delay_ms if lives else 0
        return Forecast(
            policy=None, lives=tuple(lives), verdict=ForecastEnd.LIVES_ON, at_ms=since, up_since_ms=since
        )
    failed = lives[-1].decision.action is Action.MARK_FAILED
    verdict = ForecastEnd.GIVEN_UP if failed else ForecastEnd.LEFT_DOWN
    return Forecast(policy=None, lives=tuple(lives), verdict=verdict, at_ms=lives[-1].died_ms)


def _made(record: DeathRecord, before: Sequence[PastLife]) -> Decision:
    restarts = before[-1].decision.state.restart_count if before else 0
    restarts += record.action is Action.RESTART
    return Decision(
        action=record.action,
        reason=record.reason,
        delay_ms=record.delay_ms,
        state=RestartState(restart_count=restarts),
    )


def _idle(deaths: Sequence[DeathRecord]) -> Iterator[int]:
    yield from [0] * min(1, len(deaths))
    for before, after in pairwise(deaths):
        if not before.action.restarts:
            yield 0
            continue
        started = after.died_at_wall_ms - max(0, after.uptime_ms)
        # Clocks jump: ignore negative values.
        yield max(0, started - before.died_at_wall_ms - before.delay_ms)


def _recalled(record: DeathRecord, healthy_after_ms: int) -> Death:
    return Death(
        component_id=record.component_id,
        generation=record.generation,
        cause=record.cause,
        exit=Exit(record.exit_code, record.signal),
        uptime_ms=max(0, record.uptime_ms),
        healthy_for_ms=max(0, record.uptime_ms - healthy_after_ms),
        was_ready=record.uptime_ms >= healthy_after_ms,
        job=record.job,
    )


def _death(exit_: Exit, uptime_ms: int, healthy_after_ms: int) -> Death:
    return Death(
        component_id="worker:simulated:0",
        generation=1,
        cause=exit_.cause,
        exit=exit_,
        uptime_ms=uptime_ms,
        healthy_for_ms=max(0, uptime_ms - healthy_after_ms),
        was_ready=uptime_ms >= healthy_after_ms,
    )
