"""Pure: the life of one worker's process, and the ladder that ends it.

    absent ─start─▶ spawning ─started─▶ alive ─stop─▶ stopping (stacks ▸ drain ▸ ask ▸ TERM ▸ KILL ▸ KILL)
       ▲               │ failed           │ exit          │ exit            │ out of steps
       └───────────────┴──────────────────┴───────────────┘            unkillable ─exit─▶ absent

A start that finds no room on the machine is tried again until it succeeds or is stopped.

TERM stands for the signal that the policy names. There is never more than one process: a start
while one exists is ignored.
"""

from __future__ import annotations

import signal
from dataclasses import replace as replaced

import msgspec
from msgspec.structs import replace

from ..deaths.death import Exit
from ..deaths.evidence import Remains
from ..spec.policies.stop_policy import StopPolicy, Urgency


class Rung(msgspec.Struct, frozen=True):
    """One step of the ladder: what is sent (None asks over the channel), how long it waits."""

    signal: int | None
    wait_s: float
    stacks: bool = False
    """Asks for the stacks of all threads instead."""
    drains: bool = False
    """Tells it to take no more work instead; it is over when there is no work left."""


STACKS_S = 0.5
"""How long a hung worker has to write its stacks."""


ROOM_RETRY_S = 1.0
"""How long a start waits if the machine has no descriptor, process or memory left for it."""


def ladder(policy: StopPolicy, urgency: Urgency, has_channel: bool, stacks: bool = False) -> tuple[Rung, ...]:
    """The steps that end a process, in order; `stacks` asks a hung one for its stacks first."""
    if stacks and urgency is Urgency.FIRM:
        return (Rung(None, STACKS_S, stacks=True), *ladder(policy, urgency, has_channel))
    if policy.drain is not None and urgency is Urgency.GRACEFUL:
        undrained = replaced(policy, drain=None)
        drain = Rung(None, policy.drain.within_s, drains=True)
        return (drain, *ladder(undrained, urgency, has_channel))
    kill = (Rung(signal.SIGKILL, policy.kill_s), Rung(signal.SIGKILL, policy.last_s))
    match urgency:
        case Urgency.GRACEFUL if has_channel:
            return (Rung(None, policy.ask_s), Rung(policy.signal_number, policy.term_s), *kill)
        case Urgency.GRACEFUL:
            # A program without a channel can only be asked by a signal.
            return (Rung(policy.signal_number, policy.ask_s), *kill)
        case Urgency.FIRM:
            return (Rung(policy.signal_number, policy.term_s), *kill)
        case Urgency.KILL:
            return kill


class Absent(msgspec.Struct, frozen=True, tag=True):
    """There is no process."""


class Spawning(msgspec.Struct, frozen=True, tag=True):
    """The process is being started; a stop that arrives meanwhile waits for the outcome."""

    generation: int
    stop: Urgency | None = None
    waits: bool = False
    """The machine had no room for the process; the start is tried again later."""


class Alive(msgspec.Struct, frozen=True, tag=True):
    """It runs."""

    generation: int
    pid: int


class BeingStopped(msgspec.Struct, frozen=True, tag="Stopping"):
    """It is being ended; `rungs` are the steps still to come."""

    generation: int
    pid: int
    urgency: Urgency
    rungs: tuple[Rung, ...]
    step: int = 0
    sent: int | None = None
    """The last signal that was sent, if any."""
    draining: bool = False
    """It was told to take no more work, and has time to finish what it has."""


class Unkillable(msgspec.Struct, frozen=True, tag=True):
    """It survived SIGKILL (a frozen cgroup, a dead disk); nothing is started beside it."""

    generation: int
    pid: int


State = Absent | Spawning | Alive | BeingStopped | Unkillable


class StartOrdered(msgspec.Struct, frozen=True):
    """A new incarnation is wanted."""

    generation: int


class Started(msgspec.Struct, frozen=True):
    """The process was started."""

    generation: int
    pid: int


class StopOrdered(msgspec.Struct, frozen=True):
    """The process must end; `stacks` asks a hung one for its stacks first."""

    generation: int
    urgency: Urgency
    stacks: bool = False


class RungElapsed(msgspec.Struct, frozen=True):
    """A step of the ladder has waited long enough."""

    generation: int
    step: int


class Drained(msgspec.Struct, frozen=True):
    """The worker has no work left, or cannot be drained."""

    generation: int


class FoundNoRoom(msgspec.Struct, frozen=True):
    """The machine has no descriptor, process or memory left for the process."""

    generation: int


class Gone(msgspec.Struct, frozen=True):
    """The process is gone and reaped, or could not be started."""

    generation: int
    exit: Exit
    remains: Remains | None = None


Trigger = StartOrdered | Started | StopOrdered | RungElapsed | Drained | FoundNoRoom | Gone


class Spawn(msgspec.Struct, frozen=True):
    """Start the process."""

    generation: int


class Ask(msgspec.Struct, frozen=True):
    """Ask the worker to stop, over its channel."""

    generation: int


class AskToDrain(msgspec.Struct, frozen=True):
    """Tell the worker to take no more work."""

    generation: int


class ShowStacks(msgspec.Struct, frozen=True):
    """Ask the worker to write the stacks of its threads."""

    generation: int


class Send(msgspec.Struct, frozen=True):
    """Send a signal."""

    generation: int
    signal: int


class Wait(msgspec.Struct, frozen=True):
    """Come back with RungElapsed after this time."""

    generation: int
    step: int
    seconds: float


class TellGone(msgspec.Struct, frozen=True):
    """Nothing of this generation is left; `forced` is the last signal that the ladder sent."""

    generation: int
    exit: Exit
    forced: int | None = None
    remains: Remains | None = None


class TellNotStarted(msgspec.Struct, frozen=True):
    """The start was stopped while it waited for room."""

    generation: int


class TellUnkillable(msgspec.Struct, frozen=True):
    """The process survived every step."""

    generation: int
    pid: int


Effect = Spawn | Ask | AskToDrain | ShowStacks | Send | Wait | TellGone | TellNotStarted | TellUnkillable


class LadderStep(msgspec.Struct, frozen=True):
    """The state after a trigger, and the effects to carry out."""

    state: State
    effects: tuple[Effect, ...] = ()


class Terms(msgspec.Struct, frozen=True):
    """What the ladder depends on."""

    policy: StopPolicy
    has_channel: bool


def advance(state: State, trigger: Trigger, terms: Terms) -> LadderStep:
    """What a trigger does to a process's life; a trigger of another generation does nothing."""
    if isinstance(state, Absent):
        return _without_process(state, trigger)
    if trigger.generation != state.generation:
        return LadderStep(state)
    match state, trigger:
        case Spawning(stop=None), Started(generation=generation, pid=pid):
            return LadderStep(Alive(generation, pid))
        case Spawning(stop=urgency), Started(generation=generation, pid=pid):
            assert urgency is not None
            return _begin(generation, pid, urgency, terms)
        case (Spawning(waits=True), StopOrdered()) | (Spawning(stop=Urgency()), FoundNoRoom()):
            return _not_started(state.generation)
        case Spawning(generation=generation), FoundNoRoom():
            return LadderStep(replace(state, waits=True), (Wait(generation, 0, ROOM_RETRY_S),))
        case Spawning(generation=generation, waits=True), RungElapsed(step=0):
            return LadderStep(Spawning(generation), (Spawn(generation),))
        case Spawning(), StopOrdered(urgency=urgency):
            return LadderStep(replace(state, stop=max(urgency, state.stop or urgency)))
        case Alive(generation=generation, pid=pid), StopOrdered(urgency=urgency, stacks=stacks):
            return _begin(generation, pid, urgency, terms, stacks=stacks)
        case BeingStopped(sent=signal.SIGKILL), StopOrdered():
            # SIGKILL is the last step; beginning again would only take longer.
            return LadderStep(state)
        case BeingStopped(generation=generation, pid=pid), StopOrdered(urgency=urgency) if (
            urgency > state.urgency
        ):
            return _begin(generation, pid, urgency, terms, state.step)
        case BeingStopped(step=step), RungElapsed(step=elapsed) if step == elapsed:
            return _next_rung(state)
        case BeingStopped(draining=True), Drained():
            return _next_rung(state)
        case Unkillable(generation=generation, pid=pid), StopOrdered():
            # The sender of this stop must be notified as well.
            return LadderStep(state, (TellUnkillable(generation, pid),))
        case _, Gone(generation=generation, exit=exit_, remains=remains):
            forced = state.sent if isinstance(state, BeingStopped) else None
            return LadderStep(Absent(), (TellGone(generation, exit_, forced, remains),))
        case _:
            return LadderStep(state)


def _without_process(state: Absent, trigger: Trigger) -> LadderStep:
    match trigger:
        case StartOrdered(generation=generation):
            return LadderStep(Spawning(generation), (Spawn(generation),))
        case StopOrdered(generation=generation):
            # The sender may have missed that it is gone.
            return LadderStep(state, (TellGone(generation, Exit()),))
        case _:
            return LadderStep(state)


def _not_started(generation: int) -> LadderStep:
    return LadderStep(Absent(), (TellNotStarted(generation), TellGone(generation, Exit())))


def _begin(
    generation: int, pid: int, urgency: Urgency, terms: Terms, step: int = 0, *, stacks: bool = False
) -> LadderStep:
    rungs = ladder(terms.policy, urgency, terms.has_channel, stacks)
    return _next_rung(BeingStopped(generation, pid, urgency, rungs, step))


def _next_rung(state: BeingStopped) -> LadderStep:
    if not state.rungs:
        return LadderStep(
            Unkillable(state.generation, state.pid), (TellUnkillable(state.generation, state.pid),)
        )
    rung, *rest = state.rungs
    step = state.step + 1
    return LadderStep(
        replace(state, rungs=tuple(rest), step=step, sent=rung.signal, draining=rung.drains),
        (_effect(rung, state.generation), Wait(state.generation, step, rung.wait_s)),
    )


def _effect(rung: Rung, generation: int) -> Effect:
    if rung.stacks:
        return ShowStacks(generation)
    if rung.drains:
        return AskToDrain(generation)
    return Ask(generation) if rung.signal is None else Send(generation, rung.signal)
