"""Mistakes in the decision on a death: its limits, its delay and its counters."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Action
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.rules import restarts
from rekindle.actors.supervision import on_command, on_death, on_health, on_process, restart_wait
from rekindle.actors.supervision.worker import BackingOff, SupervisedWorker, WorkerStep, World


def forgets_the_generation_of_a_timer(patch: pytest.MonkeyPatch) -> None:
    """Any timer ends any wait, whichever incarnation it belongs to."""

    def elapsed(worker: SupervisedWorker, _timer: object, world: World) -> WorkerStep:
        if not isinstance(worker.phase, BackingOff):
            return WorkerStep(worker)
        return restart_wait.proceed(worker, replace(worker.phase, elapsed=True), world)

    patch.setattr(supervision, "backoff_elapsed", elapsed)


def counts_before_it_decides(patch: pytest.MonkeyPatch) -> None:
    """One restart more than the policy allows."""
    right = restarts.decide

    def decide(policy: Any, state: Any, death: Any, around: Any) -> Any:
        return right(policy, replace(state, streak_count=max(0, state.streak_count - 1)), death, around)

    patch.setattr(on_death, "decide", decide)


def restarts_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A restart does not wait until its death is persisted."""
    right = restart_wait.proceed

    def proceed(worker: SupervisedWorker, phase: BackingOff, world: World) -> WorkerStep:
        return right(worker, replace(phase, kept=True), world)

    for module in (restart_wait, on_process):
        patch.setattr(module, "proceed", proceed)


def includes_the_edge_of_the_window(patch: pytest.MonkeyPatch) -> None:
    """A restart exactly one window ago still counts."""
    right = restarts.used_in_window

    def used(policy: Any, state: Any, now_ms: int) -> int:
        return right(policy, state, now_ms - 1)

    patch.setattr(restarts, "used_in_window", used)


def gives_up_one_restart_early(patch: pytest.MonkeyPatch) -> None:
    """The lifetime limit is reached one restart too soon."""
    right = restarts._spent_limit

    def spent(policy: Any, state: Any, now_ms: int) -> Any:
        return right(policy, replace(state, restart_count=state.restart_count + 1), now_ms)

    patch.setattr(restarts, "_spent_limit", spent)


def forgets_the_limit_of_restarts_in_a_row(patch: pytest.MonkeyPatch) -> None:
    """A worker may die in a row as often as it likes."""
    right = restarts._spent_limit

    def spent(policy: Any, state: Any, now_ms: int) -> Any:
        found = right(policy, state, now_ms)
        return None if found is not None and found[1].name == "consecutive" else found

    patch.setattr(restarts, "_spent_limit", spent)


def delays_by_the_lifetime_count(patch: pytest.MonkeyPatch) -> None:
    """Delays grow with all restarts instead of those in a row."""
    right = restarts.restarted

    def restart(policy: Any, state: Any, around: Any) -> Any:
        decision = right(policy, state, around)
        delay = restarts.delay_s(policy, state.restart_count, around.chance)
        return replace(decision, delay_ms=round(delay * 1000))

    patch.setattr(restarts, "restarted", restart)


def adds_the_jitter_above_the_cap(patch: pytest.MonkeyPatch) -> None:
    """Jitter makes delays longer instead of shorter."""
    right = restarts.delay_s

    def delay(policy: Any, streak: int, chance: float = 0.0) -> Any:
        return right(policy, streak) * (1 + policy.jitter * chance)

    patch.setattr(restarts, "delay_s", delay)


def forgets_the_longest_delay(patch: pytest.MonkeyPatch) -> None:
    """Delays double without an end."""
    right = restarts.delay_s

    def delay(policy: Any, streak: int, chance: float = 0.0) -> Any:
        return max(right(policy, streak, chance), policy.initial_delay_s * 2.0 ** min(streak, 20))

    patch.setattr(restarts, "delay_s", delay)


def delays_the_first_restart_of_a_plugin(patch: pytest.MonkeyPatch) -> None:
    """`immediate_first` is ignored."""
    right = restarts.delay_s

    def delay(policy: Any, streak: int, chance: float = 0.0) -> Any:
        return max(right(policy, streak, chance), min(policy.initial_delay_s, policy.max_delay_s))

    patch.setattr(restarts, "delay_s", delay)


def forgives_a_streak_without_health(patch: pytest.MonkeyPatch) -> None:
    """A worker that ran for long counts as healthy for long."""

    def sustained(policy: Any, death: Any) -> bool:
        after = policy.reset_after_healthy_s
        return after is not None and death.uptime_ms >= after * 1000

    patch.setattr(restarts, "_sustained", sustained)


def never_forgives_a_streak(patch: pytest.MonkeyPatch) -> None:
    """Sustained health clears nothing."""
    patch.setattr(restarts, "_sustained", lambda _policy, _death: False)
    patch.setattr(supervision, "sustained", lambda worker, _generation, _world: WorkerStep(worker))


def clears_the_lifetime_count_with_the_streak(patch: pytest.MonkeyPatch) -> None:
    """Sustained health also clears what only a reset may clear."""
    right = restarts.cleared_streak
    patch.setattr(on_health, "cleared_streak", lambda state: replace(right(state), restart_count=0))


def restarts_what_ended_well(patch: pytest.MonkeyPatch) -> None:
    """`restart_on = on_failure` is taken for `always`."""
    right = restarts._unwanted

    def unwanted(policy: Any, death: Any) -> str | None:
        return None if policy.restart_on == "on_failure" else right(policy, death)

    patch.setattr(restarts, "_unwanted", unwanted)


def counts_the_deaths_during_a_pause(patch: pytest.MonkeyPatch) -> None:
    """A worker that dies while it is paused is restarted."""
    right = restarts.decide

    def decide(policy: Any, state: Any, death: Any, around: Any) -> Any:
        return right(policy, state, death, replace(around, paused=False))

    patch.setattr(on_death, "decide", decide)


def marks_failed_what_should_only_notify(patch: pytest.MonkeyPatch) -> None:
    """`on_exhausted` is ignored."""
    right = restarts._exhausted

    def exhausted(policy: Any, state: Any, why: str, limit: Any, death: Any) -> Any:
        decision = right(policy, state, why, limit, death)
        return replace(decision, action=Action.MARK_FAILED, failure_reason=decision.reason)

    patch.setattr(restarts, "_exhausted", exhausted)


def resets_only_the_streak(patch: pytest.MonkeyPatch) -> None:
    """A reset leaves the lifetime count in memory."""
    right = on_command.reset

    def reset(worker: SupervisedWorker, world: World) -> WorkerStep:
        step = right(worker, world)
        kept = replace(step.worker.restarts, restart_count=worker.restarts.restart_count)
        return WorkerStep(replace(step.worker, restarts=kept), step.effects)

    for module in (on_command, supervision):
        patch.setattr(module, "reset", reset)


def never_forgives_boot_failures(patch: pytest.MonkeyPatch) -> None:
    """A death after a worker was ready does not reset the count of its early deaths."""
    right = restarts._counted

    def counted(policy: Any, state: Any, death: Any, around: Any) -> Any:
        decision = right(policy, state, death, around)
        return replace(decision, state=replace(decision.state, boot_failures=state.boot_failures))

    patch.setattr(restarts, "_counted", counted)


def counts_the_wait_as_uptime(patch: pytest.MonkeyPatch) -> None:
    """The uptime of a process includes the time in which it was being started."""
    right = HealthMonitor._started

    def started(self: Any, message: Any) -> None:
        worker = self._current(message.component_id, message.generation)
        since = None if worker is None else worker.since
        right(self, message)
        if worker is not None:
            worker.since = since

    patch.setattr(HealthMonitor, "_started", started)


def waits_out_a_delay_after_a_pause(patch: pytest.MonkeyPatch) -> None:
    """A restart that was pending when its worker was paused does not come forward when the pause ends."""
    right = on_command.pause

    def pause(worker: SupervisedWorker) -> WorkerStep:
        return WorkerStep(worker) if isinstance(worker.phase, BackingOff) else right(worker)

    for module in (on_command, on_process, supervision):
        patch.setattr(module, "pause", pause)


def ignores_signals_that_mean_a_restart(patch: pytest.MonkeyPatch) -> None:
    """`restart_on_signals` is ignored."""
    edit(
        patch, restarts._unwanted, "if death.exit.signal in numbers(policy.restart_on_signals):", "if False:"
    )


def ignores_signals_that_mean_none(patch: pytest.MonkeyPatch) -> None:
    """`no_restart_signals` is ignored."""
    edit(
        patch, restarts._unwanted, "if death.exit.signal in numbers(policy.no_restart_signals):", "if False:"
    )


def restarts_what_is_hopeless(patch: pytest.MonkeyPatch) -> None:
    """`give_up_exit_codes` is ignored."""
    edit(patch, restarts.decide, "death.exit.code in policy.give_up_exit_codes", "False")


def allows_one_restart_more_in_a_lifetime(patch: pytest.MonkeyPatch) -> None:
    """`max_lifetime` is exceeded by one."""
    lifetime = (
        "if most is not None and used >= most:\n        return f\"{_many(used, 'restart')} in its lifetime"
    )
    edit(patch, restarts._spent_limit, lifetime, lifetime.replace(">=", ">"))


def counts_the_death_that_is_decided(patch: pytest.MonkeyPatch) -> None:
    """Of the deaths in the window, the one that is being decided counts as a restart."""
    edit(
        patch,
        restarts._restarts_in_window,
        "_deaths_in_window(policy, state, now_ms) - 1",
        "len(state.deaths_ms)",
    )


def counts_held_deaths_in_the_window(patch: pytest.MonkeyPatch) -> None:
    """A death that a breaker held takes a place in the window."""
    right = 'reason=f"held back: {around.held}", state=before)'
    edit(patch, restarts.decide, right, right.replace("before", "state"))


def counts_uncounted_deaths_in_the_window(patch: pytest.MonkeyPatch) -> None:
    """An exit that asks for a restart takes a place in the window."""
    edit(patch, restarts.decide, "_uncounted(policy, before, ", "_uncounted(policy, state, ")


def takes_stamps_from_the_future_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """A restart that a wrong clock put into the future stays recent until then."""
    edit(patch, on_health.remembered, "max(0, world.wall_ms - wall_ms)", "(world.wall_ms - wall_ms)")


def holds_back_what_is_hopeless(patch: pytest.MonkeyPatch) -> None:
    """An exit code that gives a worker up counts for nothing while its breaker is open."""
    right = "if death.exit.code is not None and death.exit.code in policy.give_up_exit_codes:"
    edit(patch, restarts.decide, right, right.replace("if ", "if around.held is None and "))
