"""Mistakes in circuit breakers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors.rules import circuit_breaker
from rekindle.actors.rules.circuit_breaker import Closed, HalfOpen, Open, WaitElapsed
from rekindle.actors.supervision import canaries
from rekindle.actors.supervisor import breakers


def opens_one_death_too_late(patch: pytest.MonkeyPatch) -> None:
    """A breaker waits for one worker more than its policy says."""
    from dataclasses import replace as changed

    right = circuit_breaker._closed

    def closed(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        return right(state, trigger, changed(policy, deaths=policy.deaths + 1), now_ms)

    patch.setattr(circuit_breaker, "_closed", closed)


def counts_one_worker_twice(patch: pytest.MonkeyPatch) -> None:
    """Two deaths of one worker open a breaker like those of two workers."""
    right = circuit_breaker._closed

    def closed(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        after = right(state, trigger, policy, now_ms)
        if isinstance(after, Closed) and isinstance(trigger, circuit_breaker.Died):
            deaths = (*state.deaths, (now_ms, trigger.component_id))
            if len(deaths) >= policy.deaths:
                return circuit_breaker._opened(policy, now_ms, "deaths")
            return Closed(deaths)
        return after

    patch.setattr(circuit_breaker, "_closed", closed)


def never_opens(patch: pytest.MonkeyPatch) -> None:
    """Deaths of many workers are deaths like others."""
    patch.setattr(circuit_breaker, "_closed", lambda state, _trigger, _policy, _now: state)


def closes_as_soon_as_the_canary_is_healthy(patch: pytest.MonkeyPatch) -> None:
    """`hold_s` is ignored."""
    right = circuit_breaker._half_open

    def half_open(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        after = right(state, trigger, policy, now_ms)
        return Closed() if isinstance(after, HalfOpen) and after.healthy_ms is not None else after

    patch.setattr(circuit_breaker, "_half_open", half_open)


def tries_canaries_without_growing_delays(patch: pytest.MonkeyPatch) -> None:
    """After each dead canary the next one starts after the first delay."""
    right = circuit_breaker._half_open

    def half_open(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        after = right(state, trigger, policy, now_ms)
        if isinstance(after, Open) and isinstance(trigger, circuit_breaker.Died):
            return replace(after, due_ms=now_ms + round(policy.canary_delay_s * 1000))
        return after

    patch.setattr(circuit_breaker, "_half_open", half_open)


def starts_everything_as_a_canary(patch: pytest.MonkeyPatch) -> None:
    """When the wait is over all workers start, not one."""
    right = circuit_breaker._open

    def opened(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        after = right(state, trigger, policy, now_ms)
        return Closed() if isinstance(trigger, WaitElapsed) and isinstance(after, HalfOpen) else after

    patch.setattr(circuit_breaker, "_open", opened)


def counts_deaths_while_it_is_open(patch: pytest.MonkeyPatch) -> None:
    """A worker that is held back uses its restarts."""
    patch.setattr(breakers.Breakers, "holds", lambda _self, _worker: None)


def stays_half_open(patch: pytest.MonkeyPatch) -> None:
    """A canary that is never healthy for long enough keeps the others out forever."""
    patch.setattr(circuit_breaker, "_or_next", lambda state, _now: state)


def tries_no_canary_after_a_dead_one(patch: pytest.MonkeyPatch) -> None:
    """The death of a canary is not noticed."""
    right = circuit_breaker._half_open

    def half_open(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        return state if isinstance(trigger, circuit_breaker.Died) else right(state, trigger, policy, now_ms)

    patch.setattr(circuit_breaker, "_half_open", half_open)


def closes_with_a_canary_that_flaps(patch: pytest.MonkeyPatch) -> None:
    """A canary that was healthy once counts as healthy since then."""
    right = circuit_breaker._half_open

    def half_open(state: Any, trigger: Any, policy: Any, now_ms: int) -> Any:
        if isinstance(trigger, circuit_breaker.HealthChanged) and not trigger.healthy:
            return state
        return right(state, trigger, policy, now_ms)

    patch.setattr(circuit_breaker, "_half_open", half_open)


def brings_back_one_worker_only(patch: pytest.MonkeyPatch) -> None:
    """When it closes, the first of the held workers starts, and the others do not."""
    right = breakers.Breakers._act_on

    def act_on(self: Any, policy: Any, was: Any, now: Any) -> None:
        started: list[str] = []
        start = self._start

        def once(component_id: str) -> None:
            if not started or not isinstance(now, Closed):
                started.append(component_id)
                start(component_id)

        self._start = once
        try:
            right(self, policy, was, now)
        finally:
            del self._start

    patch.setattr(breakers.Breakers, "_act_on", act_on)


def counts_deaths_of_any_age(patch: pytest.MonkeyPatch) -> None:
    """A death long ago helps to open a breaker."""
    edit(patch, circuit_breaker._closed, "at > since and who", "who")


def waits_too_little_after_a_dead_canary(patch: pytest.MonkeyPatch) -> None:
    """The delay of canaries doubles one canary later."""
    edit(patch, circuit_breaker._half_open, "2 ** min(state.attempt + 1, 30)", "2 ** min(state.attempt, 30)")


def forgets_the_longest_delay_of_canaries(patch: pytest.MonkeyPatch) -> None:
    """Canaries are tried less and less often, without a limit."""
    edit(patch, circuit_breaker._half_open, ", policy.canary_max_delay_s)", ", 1e9)")


def tries_the_same_canary_for_ever(patch: pytest.MonkeyPatch) -> None:
    """One broken worker blocks the others."""
    edit(patch, circuit_breaker._open, "held[state.attempt % len(held)]", "held[0]")


def waits_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A breaker that was open waits before its first canary."""
    edit(patch, breakers.Breakers.restore, "wall - since), now, why)", "wall - since), now + 5000, why)")


def remembers_the_first_health_of_a_canary(patch: pytest.MonkeyPatch) -> None:
    """A canary that is healthy again counts as healthy all the time."""
    edit(
        patch,
        circuit_breaker._half_open,
        "healthy_ms=now_ms if healthy else None",
        "healthy_ms=(state.healthy_ms or now_ms) if healthy else state.healthy_ms",
    )


def leaves_too_little_time_for_a_trial(patch: pytest.MonkeyPatch) -> None:
    """The time to start does not belong to the trial of a canary."""
    edit(
        patch,
        canaries.trial_s,
        "max((workers[id_].spec.health.startup_timeout_s for id_ in ids), default=0.0) + HOLDS * hold_s",
        "HOLDS * hold_s",
    )


def leaves_too_much_time_for_a_trial(patch: pytest.MonkeyPatch) -> None:
    """A canary has twice the time to hold."""
    edit(patch, canaries.trial_s, "+ HOLDS * hold_s", "+ 2 * HOLDS * hold_s")


def holds_nothing_while_a_canary_is_tried(patch: pytest.MonkeyPatch) -> None:
    """The other workers start beside the canary."""
    edit(
        patch,
        circuit_breaker.holds,
        "case HalfOpen(canary=canary, why=why) if canary != component_id:",
        "case HalfOpen() if False:",
    )


def takes_a_stopped_canary_for_one_that_tries(patch: pytest.MonkeyPatch) -> None:
    """A canary that an operator stops keeps the others out until its time is over."""
    edit(patch, canaries.tries, "case _:\n            return False", "case _:\n            return True")


def counts_a_death_at_the_edge_of_its_window(patch: pytest.MonkeyPatch) -> None:
    """A death exactly one window ago still counts."""
    edit(patch, circuit_breaker._closed, "at > since", "at >= since")


def is_open_since_its_last_canary(patch: pytest.MonkeyPatch) -> None:
    """The time of an outage is told from its last canary on."""
    right = "return Open(state.since_ms, now_ms + _ms(delay)"
    edit(patch, circuit_breaker._half_open, right, right.replace("state.since_ms", "now_ms"))


def is_open_since_the_restart(patch: pytest.MonkeyPatch) -> None:
    """The time of an outage is told from the start of the supervisor on."""
    edit(patch, breakers.Breakers.restore, "now - max(0, wall - since)", "now")


def tries_a_slow_canary_again(patch: pytest.MonkeyPatch) -> None:
    """A canary that takes too long does not count as a failed one."""
    edit(patch, circuit_breaker._or_next, "state.attempt + 1", "state.attempt")


def tries_a_canary_that_has_yet_to_end(patch: pytest.MonkeyPatch) -> None:
    """A worker whose former process is still there is tried before others."""
    edit(patch, canaries._ready, " if worker.lingering is None", "")


def opens_by_ends_that_are_well(patch: pytest.MonkeyPatch) -> None:
    """Workers that exit with success open a breaker."""
    edit(patch, breakers.Breakers.died, "death.ended_well and (finishes or self.is_closed(worker))", "False")


def spends_restarts_on_a_canary_that_ends_well(patch: pytest.MonkeyPatch) -> None:
    """A canary that exits with success is restarted and counted while its breaker is open."""
    edit(patch, breakers.Breakers.died, " and (finishes or self.is_closed(worker))", "")
