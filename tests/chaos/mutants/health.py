"""Mistakes in the judgement of health."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors import health_monitor
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.rules.worker_health import health, health_states


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
