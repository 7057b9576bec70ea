"""Mistakes in starting, stopping and recycling processes."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors import supervision, worker_proxy
from rekindle.actors.facts.health_status import Status
from rekindle.actors.rules import stop_ladder
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.supervision import on_command, on_process, restart_wait, stop_order
from rekindle.actors.supervision.stop_order import StopOrder
from rekindle.actors.supervision.worker import (
    BackingOff,
    Idle,
    Rest,
    Stopping,
    SupervisedWorker,
    WorkerStep,
    World,
)
from rekindle.actors.supervisor import actor as supervisor_actor
from rekindle.actors.supervisor import upkeep
from rekindle.actors.supervisor.links import Links
from rekindle.actors.supervisor.pending.due_starts import DueStarts
from rekindle.actors.supervisor.pending.start_gate import StartGate
from rekindle.actors.supervisor.workers import Workers


def starts_beside_the_old_one(patch: pytest.MonkeyPatch) -> None:
    """A worker that is taken for dead is replaced while it still runs."""
    right = restart_wait.proceed

    def proceed(worker: SupervisedWorker, phase: BackingOff, world: World) -> WorkerStep:
        return right(replace(worker, lingering=None), phase, world)

    for module in (restart_wait, on_process):
        patch.setattr(module, "proceed", proceed)

    def advance(state: Any, trigger: Any, terms: Any) -> Any:
        if isinstance(trigger, stop_ladder.StartOrdered) and not isinstance(state, stop_ladder.Spawning):
            spawning = stop_ladder.Spawning(trigger.generation)
            return stop_ladder.LadderStep(spawning, (stop_ladder.Spawn(trigger.generation),))
        return stop_ladder.advance(state, trigger, terms)

    patch.setattr(worker_proxy, "advance", advance)


def restarts_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """A stop during the delay is answered, and a second later the worker runs."""
    right = on_command.stop

    def stop(
        worker: SupervisedWorker, urgency: Urgency = Urgency.GRACEFUL, *args: Any, **kwargs: Any
    ) -> WorkerStep:
        if isinstance(worker.phase, BackingOff):
            return WorkerStep(worker, on_command._rested(worker, urgency))
        return right(worker, urgency, *args, **kwargs)

    for module in (supervision, on_command):
        patch.setattr(module, "stop", stop)


def skips_the_polite_signal(patch: pytest.MonkeyPatch) -> None:
    """After the request comes SIGKILL."""
    right = stop_ladder.ladder

    def ladder(policy: Any, urgency: Any, has_channel: bool, stacks: bool = False) -> Any:
        rungs = right(policy, urgency, has_channel, stacks)
        return tuple(each for each in rungs if each.signal in (None, signal.SIGKILL)) or rungs

    patch.setattr(stop_ladder, "ladder", ladder)


def kills_without_asking(patch: pytest.MonkeyPatch) -> None:
    """A stop begins with the signal, not with the request."""
    right = stop_ladder.ladder

    def ladder(policy: Any, urgency: Any, has_channel: bool, stacks: bool = False) -> Any:
        return right(policy, max(urgency, Urgency.FIRM), has_channel, stacks)

    patch.setattr(stop_ladder, "ladder", ladder)


def climbs_the_ladder_too_fast(patch: pytest.MonkeyPatch) -> None:
    """Each step of a stop waits for a tenth of its time."""
    right = stop_ladder.ladder

    def ladder(policy: Any, urgency: Any, has_channel: bool, stacks: bool = False) -> Any:
        return tuple(
            replace(each, wait_s=each.wait_s / 10) for each in right(policy, urgency, has_channel, stacks)
        )

    patch.setattr(stop_ladder, "ladder", ladder)


def never_kills(patch: pytest.MonkeyPatch) -> None:
    """A worker that ignores SIGTERM is left running."""
    right = stop_ladder.ladder

    def ladder(policy: Any, urgency: Any, has_channel: bool, stacks: bool = False) -> Any:
        return tuple(
            each for each in right(policy, urgency, has_channel, stacks) if each.signal != signal.SIGKILL
        )

    patch.setattr(stop_ladder, "ladder", ladder)


def stops_in_the_order_of_starts(patch: pytest.MonkeyPatch) -> None:
    """A worker stops before the workers that need it."""

    def ready(self: StopOrder, workers: Any) -> list[str]:
        ending = {id_ for id_, worker in workers.items() if self._is_ending(worker)}
        return [
            id_
            for id_, stop in self._stops.items()
            if not stop.in_order
            or not any(
                need in ending and stop_order._is_of_use(workers.get(need))
                for need in workers[id_].spec.after
            )
        ]

    patch.setattr(StopOrder, "ready", ready)


def starts_without_what_it_needs(patch: pytest.MonkeyPatch) -> None:
    """`after` is ignored at starts."""
    patch.setattr(DueStarts, "waits_for", lambda _self, _worker: ())


def counts_a_recycle(patch: pytest.MonkeyPatch) -> None:
    """A new process for a worker that is well uses a restart."""
    right = on_command.recycle

    def recycle(worker: SupervisedWorker, reason: str) -> WorkerStep:
        step = right(worker, reason)
        counted = replace(step.worker.restarts, restart_count=worker.restarts.restart_count + 1)
        return WorkerStep(replace(step.worker, restarts=counted), step.effects)

    for module in (on_command, supervision):
        patch.setattr(module, "recycle", recycle)


def takes_a_recycle_for_a_crash(patch: pytest.MonkeyPatch) -> None:
    """The end of a recycled process is decided on as a death."""

    def recycle(worker: SupervisedWorker, reason: str) -> WorkerStep:
        from rekindle.actors.supervision.worker import Halt

        return WorkerStep(worker, (Halt(worker.generation, Urgency.GRACEFUL),))

    for module in (on_command, supervision):
        patch.setattr(module, "recycle", recycle)


def never_recycles(patch: pytest.MonkeyPatch) -> None:
    """A worker's age is not looked at."""
    patch.setattr(upkeep.Upkeep, "recycle", lambda _self, _due: None)


def recycles_all_at_once(patch: pytest.MonkeyPatch) -> None:
    """A worker is recycled although the others of its group are not healthy."""
    patch.setattr(upkeep.Upkeep, "_can_spare", lambda _self, _worker: True)


def forgets_to_start_again_after_a_recycle(patch: pytest.MonkeyPatch) -> None:
    """A recycled worker stays stopped."""
    right = on_command.renew

    def renew(worker: SupervisedWorker, reason: Any) -> WorkerStep:
        step = right(worker, reason)
        if isinstance(step.worker.phase, Stopping):
            return WorkerStep(
                replace(step.worker, phase=replace(step.worker.phase, relaunch=False)), step.effects
            )
        return step

    for module in (on_command, supervision):
        patch.setattr(module, "renew", renew)


def misses_an_end_while_it_spawns(patch: pytest.MonkeyPatch) -> None:
    """A process that ends before its start is reported is never missed."""

    def advance(state: Any, trigger: Any, terms: Any) -> Any:
        if isinstance(state, stop_ladder.Spawning) and isinstance(trigger, stop_ladder.Gone):
            return stop_ladder.LadderStep(state)
        return stop_ladder.advance(state, trigger, terms)

    patch.setattr(worker_proxy, "advance", advance)


def resumes_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """The end of a pause starts workers that an operator stopped."""
    patch.setattr(supervision, "resume", on_command.start)


def stops_without_a_word(patch: pytest.MonkeyPatch) -> None:
    """That a worker is told to end is not announced."""
    right = Links.keep_and_announce

    def announce(self: Any, effects: Any) -> None:
        kept = [each for each in effects if type(getattr(each, "event", None)).__name__ != "WorkerStopping"]
        right(self, tuple(kept))

    patch.setattr(Links, "keep_and_announce", announce)


def resets_without_a_word(patch: pytest.MonkeyPatch) -> None:
    """A reset is not announced."""
    right = Links.keep_and_announce

    def announce(self: Any, effects: Any) -> None:
        kept = [each for each in effects if type(getattr(each, "event", None)).__name__ != "WorkerReset"]
        right(self, tuple(kept))

    patch.setattr(Links, "keep_and_announce", announce)


def lets_one_worker_too_many_start(patch: pytest.MonkeyPatch) -> None:
    """`max_concurrent_starts` is exceeded by one."""
    right = StartGate.__init__

    def init(self: StartGate, limit: int | None) -> None:
        right(self, None if limit is None else limit + 1)

    patch.setattr(StartGate, "__init__", init)


def lets_the_next_one_start_while_one_recovers(patch: pytest.MonkeyPatch) -> None:
    """Any change of its health ends the start of a worker."""
    patch.setattr(supervisor_actor, "START_ENDS_WITH", frozenset(Status))


def keeps_the_place_of_a_start_that_is_stopped(patch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped while it starts counts as starting forever."""
    right = supervisor_actor.Supervisor._process_gone

    def process_gone(self: Any, gone: Any) -> None:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Workers, "start_is_over", lambda _self, _id, _generation: None)
            right(self, gone)

    patch.setattr(supervisor_actor.Supervisor, "_process_gone", process_gone)


def resumes_what_is_not_restarted(patch: pytest.MonkeyPatch) -> None:
    """The end of a pause starts workers that ended for good."""
    right = on_command.resume

    def resume(worker: SupervisedWorker, world: World) -> WorkerStep:
        if isinstance(worker.phase, Idle) and worker.phase.rest in (Rest.LEFT, Rest.DONE):
            return on_command.start(worker, world)
        return right(worker, world)

    patch.setattr(supervision, "resume", resume)
