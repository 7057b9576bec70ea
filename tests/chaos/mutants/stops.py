"""Mistakes in stops and pauses of processes that start, that are hurried, or that survive SIGKILL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.chaos.mutants.mutant import edit

from rekindle.actors import supervision, worker_proxy
from rekindle.actors.deaths.death import Exit
from rekindle.actors.rules import stop_ladder
from rekindle.actors.rules.stop_ladder import (
    BeingStopped,
    LadderStep,
    Spawning,
    StopOrdered,
    TellGone,
    TellUnkillable,
)
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.supervision import on_command, on_process
from rekindle.actors.supervision import worker as supervised
from rekindle.actors.supervision.worker import Halt, SetIdle, SupervisedWorker, WorkerStep, World
from rekindle.actors.supervisor.operations import Operations

Advance = Callable[[Any, Any, Any], LadderStep]


def _ladder(patch: pytest.MonkeyPatch, wrong: Callable[[Advance, Any, Any, Any], LadderStep]) -> None:
    """Have every proxy advance in another way, which may ask the right one."""
    right = stop_ladder.advance
    patch.setattr(worker_proxy, "advance", lambda state, trigger, terms: wrong(right, state, trigger, terms))


def forgets_a_stop_while_it_spawns(patch: pytest.MonkeyPatch) -> None:
    """A stop that arrives before the process exists is dropped."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        if isinstance(state, Spawning) and isinstance(trigger, StopOrdered):
            return LadderStep(state)
        return right(state, trigger, terms)

    _ladder(patch, advance)


def forgets_how_firm_a_stop_is_while_it_spawns(patch: pytest.MonkeyPatch) -> None:
    """A kill that arrives before the process exists becomes a request."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        if isinstance(state, Spawning) and isinstance(trigger, StopOrdered):
            trigger = StopOrdered(trigger.generation, Urgency.GRACEFUL)
        return right(state, trigger, terms)

    _ladder(patch, advance)


def ignores_a_firmer_stop(patch: pytest.MonkeyPatch) -> None:
    """A second order does not change a stop in progress."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        if isinstance(state, BeingStopped) and isinstance(trigger, StopOrdered):
            return LadderStep(state)
        return right(state, trigger, terms)

    _ladder(patch, advance)


def begins_a_stop_again(patch: pytest.MonkeyPatch) -> None:
    """A second order, though not firmer, begins with the first step once more."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        if isinstance(state, BeingStopped) and isinstance(trigger, StopOrdered):
            return stop_ladder._begin(state.generation, state.pid, trigger.urgency, terms, state.step)
        return right(state, trigger, terms)

    _ladder(patch, advance)


def ignores_a_firmer_shutdown(patch: pytest.MonkeyPatch) -> None:
    """A second Ctrl-C changes nothing."""
    right = Operations._shut_down

    def shut_down(self: Any, reply_to: Any, urgency: Urgency) -> None:
        if not self._orders.stopping:
            right(self, reply_to, urgency)

    patch.setattr(Operations, "_shut_down", shut_down)


def says_nothing_of_what_survives_a_kill(patch: pytest.MonkeyPatch) -> None:
    """A process that survives SIGKILL is not reported."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        step = right(state, trigger, terms)
        return LadderStep(
            step.state, tuple(each for each in step.effects if not isinstance(each, TellUnkillable))
        )

    _ladder(patch, advance)


def gives_up_after_one_kill(patch: pytest.MonkeyPatch) -> None:
    """The second SIGKILL is left out."""
    right = stop_ladder.ladder
    patch.setattr(stop_ladder, "ladder", lambda *args, **kwargs: right(*args, **kwargs)[:-1])


def takes_the_unkillable_for_gone(patch: pytest.MonkeyPatch) -> None:
    """A process that survives SIGKILL is replaced."""

    def advance(right: Advance, state: Any, trigger: Any, terms: Any) -> LadderStep:
        step = right(state, trigger, terms)
        if any(isinstance(each, TellUnkillable) for each in step.effects):
            gone = TellGone(trigger.generation, Exit())
            return LadderStep(stop_ladder.Absent(), (gone,))
        return step

    _ladder(patch, advance)


def never_tells_a_paused_worker_to_idle(patch: pytest.MonkeyPatch) -> None:
    """A pause that lets processes run does not reach them."""
    right = on_command.pause

    def pause(worker: SupervisedWorker) -> WorkerStep:
        step = right(worker)
        return WorkerStep(step.worker, tuple(each for each in step.effects if not isinstance(each, SetIdle)))

    for module in (on_command, on_process, supervision):
        patch.setattr(module, "pause", pause)


def leaves_a_worker_idle_after_a_pause(patch: pytest.MonkeyPatch) -> None:
    """The end of a pause does not reach the processes that ran on."""
    right = on_command.resume

    def resume(worker: SupervisedWorker, world: World) -> WorkerStep:
        step = right(worker, world)
        return WorkerStep(step.worker, tuple(each for each in step.effects if not isinstance(each, SetIdle)))

    patch.setattr(supervision, "resume", resume)


def _repeats_no_order(patch: pytest.MonkeyPatch, *phases: type) -> None:
    """Have a proxy that was replaced get no order to end the process of a worker in one of these phases."""
    right = on_process.reconcile

    def reconcile(worker: SupervisedWorker, found: int | None, world: World) -> WorkerStep:
        step = right(worker, found, world)
        if not isinstance(worker.phase, phases):
            return step
        return WorkerStep(step.worker, tuple(each for each in step.effects if not isinstance(each, Halt)))

    patch.setattr(supervision, "reconcile", reconcile)


def repeats_no_stop_to_a_replaced_proxy(patch: pytest.MonkeyPatch) -> None:
    """A stop in progress ends with the proxy that had begun it."""
    _repeats_no_order(patch, supervised.Stopping)


def repeats_no_end_of_a_hung_process_to_a_replaced_proxy(patch: pytest.MonkeyPatch) -> None:
    """A process that was taken for dead lives on, and the restart waits for its end."""
    _repeats_no_order(patch, supervised.BackingOff)


def repeats_no_end_of_what_is_given_up_to_a_replaced_proxy(patch: pytest.MonkeyPatch) -> None:
    """The last process of a worker that is not restarted lives on."""
    _repeats_no_order(patch, supervised.Idle, supervised.Failed)


def gives_a_firm_stop_the_time_of_a_request(patch: pytest.MonkeyPatch) -> None:
    """After its signal, a process that is ended has the time that `ask_s` gives a request."""
    right = "return (Rung(policy.signal_number, policy.term_s), *kill)"
    edit(patch, stop_ladder.ladder, right, right.replace("term_s", "ask_s"))


def takes_a_step_for_a_timer_of_an_earlier_one(patch: pytest.MonkeyPatch) -> None:
    """Any timer of a stop ends the step that waits."""
    edit(patch, stop_ladder.advance, "if step == elapsed:", "if True:")


def waits_less_after_the_second_kill(patch: pytest.MonkeyPatch) -> None:
    """The last wait is as long as that after the first SIGKILL."""
    edit(patch, stop_ladder.ladder, "SIGKILL, policy.last_s", "SIGKILL, policy.kill_s")


def begins_again_after_a_kill(patch: pytest.MonkeyPatch) -> None:
    """A firmer stop sends a gentler signal to a process that was killed."""
    edit(
        patch,
        stop_ladder.advance,
        "case BeingStopped(sent=signal.SIGKILL), StopOrdered():",
        "case BeingStopped(sent=0), StopOrdered():",
    )


def leaves_the_second_caller_of_an_unkillable_one_waiting(patch: pytest.MonkeyPatch) -> None:
    """Only the first stop is told that a process survives SIGKILL."""
    edit(
        patch,
        stop_ladder.advance,
        "return LadderStep(state, (TellUnkillable(generation, pid),))",
        "return LadderStep(state)",
    )


def sends_the_same_signal_again(patch: pytest.MonkeyPatch) -> None:
    """A stop that is as firm as the one in progress begins again."""
    edit(patch, stop_ladder.advance, "urgency > state.urgency\n", "urgency >= state.urgency\n")
