"""Mistakes in the judgement of health."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors import health_monitor
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.rules.worker_health import health, health_states, watchdog
from rekindle.actors.rules.worker_health.observed_worker import ObservedWorker


def accepts_frames_of_older_generations(patch: pytest.MonkeyPatch) -> None:
    """A frame counts for the present process, whichever process sent it."""
    right = HealthMonitor._frame

    def frame(self: HealthMonitor, component_id: str, _generation: int, frame: Any) -> None:
        worker = self._workers.get(component_id)
        if worker is not None:
            right(self, component_id, worker.generation, frame)

    patch.setattr(HealthMonitor, "_frame", frame)


def gives_no_grace_after_a_sleep(patch: pytest.MonkeyPatch) -> None:
    """The time in which the host slept counts as silence."""
    patch.setattr(HealthMonitor, "_extend_after_absence", lambda _self, _late: None)


def forgives_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Every suspend extends the deadline of a silent worker, without a limit."""
    patch.setattr(health_monitor, "MOST_EXTENSIONS", 1_000_000)


def never_notices_silence(patch: pytest.MonkeyPatch) -> None:
    """A worker that was healthy once stays so."""
    right = health._missed

    def missed(state: Any, seen: float, policy: Any, now: float) -> Any:
        step = right(state, seen, policy, now)
        if step.change is not None and step.change.cause is not None:
            return health_states.HealthStep(health_states.Unhealthy(now, 0))
        return step

    patch.setattr(health, "_missed", missed)


def tolerates_one_miss_too_many(patch: pytest.MonkeyPatch) -> None:
    """A worker has one interval more than its policy says."""
    right = health._missed

    def missed(state: Any, seen: float, policy: Any, now: float) -> Any:
        from dataclasses import replace as changed

        return right(state, seen, changed(policy, max_misses=policy.max_misses + 1), now)

    patch.setattr(health, "_missed", missed)


def starts_have_no_deadline(patch: pytest.MonkeyPatch) -> None:
    """A worker that never becomes healthy is never given up."""
    right = health.deadline
    wrong = lambda state, policy: None if isinstance(state, health_states.Pending) else right(state, policy)  # noqa: E731
    patch.setattr(health, "deadline", wrong)
    patch.setattr("rekindle.actors.rules.worker_health.observed_worker.deadline", wrong)


def recovers_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Each frame of a recovering worker extends its time."""
    right = health._recovering

    def recovering(state: Any, asked: Any, policy: Any, now: float) -> Any:
        step = right(state, asked, policy, now)
        until = now + health.clamp_recovery(asked, policy)
        return replace(step, state=replace(step.state, until=until))

    patch.setattr(health, "_recovering", recovering)


def takes_a_recovering_worker_for_healthy(patch: pytest.MonkeyPatch) -> None:
    """A worker that asks for time counts as healthy."""
    right = health._reported

    def reported(state: Any, frame: Any, policy: Any, now: float) -> Any:
        if frame.status == "recovering":
            frame = replace(frame, status="healthy")
        return right(state, frame, policy, now)

    patch.setattr(health, "_reported", reported)


def restarts_the_clock_of_health_at_each_frame(patch: pytest.MonkeyPatch) -> None:
    """A worker is healthy since its last heartbeat instead of its first."""
    right = health._reported

    def reported(state: Any, frame: Any, policy: Any, now: float) -> Any:
        step = right(state, frame, policy, now)
        if isinstance(step.state, health_states.Healthy):
            return replace(step, state=health_states.Healthy(now, now))
        return step

    patch.setattr(health, "_reported", reported)


def ignores_garbage(patch: pytest.MonkeyPatch) -> None:
    """A worker that breaks the protocol is left alone."""
    right = HealthMonitor._lost

    def lost(self: HealthMonitor, component_id: str, generation: int, lost: Any, remains: Any = None) -> None:
        if lost.cause.value != "protocol":
            right(self, component_id, generation, lost, remains)

    patch.setattr(HealthMonitor, "_lost", lost)


def grants_less_than_the_shortest_recovery(patch: pytest.MonkeyPatch) -> None:
    """A worker that asks for a moment gets only that."""
    patch.setattr(health, "clamp_recovery", lambda asked, policy: min(asked or 0.0, policy.recovery_max_s))


def forgets_conditions_in_a_recovery(patch: pytest.MonkeyPatch) -> None:
    """A worker that recovers during its start awaits only its frame."""
    edit(
        patch,
        health._start_of,
        "return state if isinstance(state, Pending) and without(state.awaits, Condition.FRAME) else None",
        "return None",
    )


def misses_conditions_in_a_recovery(patch: pytest.MonkeyPatch) -> None:
    """A condition that is met during a recovery is awaited still."""
    edit(
        patch,
        health.advance,
        "return HealthStep(msgspec.structs.replace(state, start=_checked(start, trigger)))",
        "return HealthStep(state)",
    )


def counts_a_recovery_as_a_start(patch: pytest.MonkeyPatch) -> None:
    """The time of a recovery counts as time of the start."""
    edit(patch, health._reported, " + now - state.entered", "")


def is_ready_with_one_condition(patch: pytest.MonkeyPatch) -> None:
    """The first condition that is met is enough."""
    edit(patch, health._met, "awaits=without(state.awaits, condition)", "awaits=()")


def waits_for_ever_for_a_condition(patch: pytest.MonkeyPatch) -> None:
    """A start that also has to last has no deadline."""
    edit(
        patch,
        health.deadline,
        "return ripe if len(awaits) == 1 else min(ripe, since + policy.startup_timeout_s)",
        "return ripe",
    )


def never_awaits_a_keep_alive(patch: pytest.MonkeyPatch) -> None:
    """A worker that promised keep-alives need not send any."""
    edit(patch, watchdog.deadline, "return watchdog.fed + watchdog.every_s", "return None")


def awaits_keep_alives_from_the_start(patch: pytest.MonkeyPatch) -> None:
    """Keep-alives are awaited before the worker is ready."""
    edit(
        patch,
        watchdog.watchdog_of,
        "Watchdog(ready.watchdog_s, stop_s=stop_s)",
        "Watchdog(ready.watchdog_s, fed=0.0, stop_s=stop_s)",
    )


def a_good_probe_changes_nothing(patch: pytest.MonkeyPatch) -> None:
    """Failures of a probe count although others passed between them."""
    edit(patch, health._passed, "if not isinstance(state, Unhealthy) or not state.failing:", "if True:")


def tolerates_one_failed_probe_more(patch: pytest.MonkeyPatch) -> None:
    """A worker is ended one failure late."""
    edit(patch, health._failed, "failed >= answer.most", "failed > answer.most")


def tolerates_one_failed_probe_less(patch: pytest.MonkeyPatch) -> None:
    """A worker is ended one failure early."""
    edit(patch, health._failed, "failed >= answer.most", "failed + 1 >= answer.most")


def takes_a_frame_for_a_good_probe(patch: pytest.MonkeyPatch) -> None:
    """A healthy frame makes up for a failed probe."""
    edit(
        patch,
        health._reported,
        "isinstance(state, Unhealthy) and state.failing:",
        "isinstance(state, Unhealthy) and False:",
    )


def counts_probes_while_the_breaker_is_open(patch: pytest.MonkeyPatch) -> None:
    """A probe that fails in an outage ends its worker."""
    edit(patch, ObservedWorker.probed, " and self.breaker not in breakers", "")


def gives_no_grace_to_a_recovery(patch: pytest.MonkeyPatch) -> None:
    """A recovery that ended while the host slept ends when it wakes."""
    edit(patch, health._granted, "max(0.0, now + (policy.recovery_min_s or 0.0) - until)", "0.0")


def gives_a_recovery_its_whole_time_again(patch: pytest.MonkeyPatch) -> None:
    """A sleep prolongs each recovery by the longest one."""
    right = "max(0.0, now + (policy.recovery_min_s or 0.0) - until)"
    edit(patch, health._granted, right, "policy.recovery_max_s or 0.0")


def gives_no_grace_after_a_pause(patch: pytest.MonkeyPatch) -> None:
    """The time in which a worker idled counts as silence."""
    edit(patch, HealthMonitor._set_paused, "self._grant(worker)", "pass")


def gives_no_time_for_a_start_in_a_pause(patch: pytest.MonkeyPatch) -> None:
    """The start of a paused worker has no time limit."""
    right = ObservedWorker.silence_is_allowed.fget  # type: ignore[attr-defined]
    edit(patch, right, " and not isinstance(self.state, Pending)", "")


def counts_failed_probes_over_a_pause(patch: pytest.MonkeyPatch) -> None:
    """The failures of before a pause count after it."""
    edit(patch, health._granted, "misses=0, failed=0)", "misses=0)")


def awaits_keep_alives_of_a_pause(patch: pytest.MonkeyPatch) -> None:
    """Keep-alives that were missed in a pause count after it."""
    edit(patch, watchdog.granted, "fed = None if watchdog.fed is None else now", "fed = watchdog.fed")


def extends_for_the_first_worker_only(patch: pytest.MonkeyPatch) -> None:
    """After a sleep, one worker has time to be heard."""
    edit(
        patch,
        HealthMonitor._extend_after_absence,
        "in self._workers.values()",
        "in list(self._workers.values())[:1]",
    )


def checks_nothing_after_a_mistake(patch: pytest.MonkeyPatch) -> None:
    """A monitor that raised takes its checks for queued, and has lost them."""
    edit(patch, HealthMonitor.recover, "worker.checked_at = None", "pass")
