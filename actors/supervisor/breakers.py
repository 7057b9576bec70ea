"""The circuit breakers of a Supervisor: which are open, and what follows from that.

Belongs to the Supervisor and runs in it. `rules.circuit_breaker` decides; this module holds one
state and one timer for each name, persists the opening, starts the canary, and starts all workers
again when the canary stays healthy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rekindle.worker.plain_text import span

from .. import supervision
from ..deaths.death import Death
from ..facts.records import MetaSet
from ..messages import BreakerClosed, BreakerOpened, BreakerStatus, CanaryStarted
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_prober import BreakerDue, Probe
from ..ports import Receiver, Runtime, Timer
from ..rules.circuit_breaker import (
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
from ..runtime.resilient_actor import tell
from ..spec.policies.breaker_policy import BreakerPolicy
from ..spec.policies.restart_policy import RestartOn
from ..supervision import canaries, is_held
from ..supervision.worker import Idle, Rest, SupervisedWorker, World
from .orders.standing_orders import StandingOrders
from .workers import Workers

META = "breaker:"
"""The prefix of the setting that is persisted while a breaker is open; the name follows."""


class Breakers:
    """Every breaker that a worker's spec names."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        orders: StandingOrders,
        supervisor: Receiver,
        persistence: Receiver,
        prober: Receiver | None = None,
    ) -> None:
        self._runtime = runtime
        self._workers = workers
        self._orders = orders
        self._supervisor = supervisor
        self._persistence = persistence
        self._prober = prober
        self._states: dict[str, State] = {}
        self._timers: dict[str, Timer] = {}
        self._probes: dict[str, Timer] = {}
        self._passed: dict[str, bool] = {}

    # ── what others ask ──────────────────────────────────────────────────────────────────

    def holds(self, worker: SupervisedWorker) -> str | None:
        """Why this worker must not be restarted now, in words; None if it may."""
        policy = worker.spec.breaker
        if policy is None:
            return None
        why = holds(self._state(policy.name), worker.id)
        return None if why is None else f"breaker {policy.name} is open: {why}"

    def world(self, worker: SupervisedWorker, at: float | None = None) -> World:
        """The moment as it is for this worker."""
        return self._orders.world(worker, self.holds(worker), at)

    def is_closed(self, worker: SupervisedWorker) -> bool:
        """Whether its breaker is closed, or it has none, so that it would be restarted now."""
        policy = worker.spec.breaker
        return policy is None or isinstance(self._state(policy.name), Closed)

    def outlook(self, worker: SupervisedWorker) -> str | None:
        """The same for people, with what happens next."""
        why, policy = self.holds(worker), worker.spec.breaker
        if why is None or policy is None:
            return None
        match self._state(policy.name):
            case Open(since_ms=since, due_ms=due):
                return f"held back: {why}; open for {self._ago(since)}, canary in {self._until(due)}"
            case HalfOpen(since_ms=since, canary=canary):
                return f"held back: {why}; open for {self._ago(since)}, canary {canary} is being tried"
            case Closed():
                return None

    def report(self) -> tuple[BreakerStatus, ...]:
        """Every breaker that is open."""
        now = self._now_ms()
        return tuple(
            BreakerStatus(
                name=name,
                why=state.why,
                open_for_s=max(0, now - state.since_ms) / 1000,
                held=tuple(worker.id for worker in self._members(name) if is_held(worker)),
                canary=state.canary if isinstance(state, HalfOpen) else None,
                next_try_in_s=max(0, state.due_ms - now) / 1000 if isinstance(state, Open) else None,
            )
            for name, state in self._states.items()
            if not isinstance(state, Closed)
        )

    def _ago(self, at_ms: int) -> str:
        return _whole_seconds(self._now_ms() - at_ms)

    def _until(self, at_ms: int) -> str:
        return _whole_seconds(at_ms - self._now_ms())

    # ── what happens ─────────────────────────────────────────────────────────────────────

    def restore(self, meta: Mapping[str, str]) -> None:
        """Open the breakers that were open in the former run: their workers start with a canary."""
        now, wall = self._now_ms(), self._runtime.clock.wall_ms()
        for policy in self._policies():
            text = meta.get(META + policy.name)
            if text is not None and policy.name not in self._states:
                since, why = _read(text, wall)
                self._states[policy.name] = Open(now - max(0, wall - since), now, why)
                self._workers.breaker_turned(policy.name, is_open=True)
        self.watch()

    def known(self) -> dict[str, State]:
        """What this run has counted, for the program that replaces it."""
        return dict(self._states)

    def take_over(self, states: Mapping[str, State]) -> None:
        """Go on with what the former program had counted."""
        for policy in self._policies():
            state = states.get(policy.name)
            if state is not None:
                self._states[policy.name] = state
                self._workers.breaker_turned(policy.name, is_open=not isinstance(state, Closed))
                self._schedule_check(policy, state)

    def watch(self) -> None:
        """Start the probes and timers that are missing, for new breakers, too."""
        for policy in self._policies():
            if policy.probes and self._prober is not None and policy.name not in self._probes:
                self._probe_after(policy, 0.0)
            state = self._state(policy.name)
            if isinstance(state, Open) and policy.name not in self._timers:
                self._schedule_check(policy, state)

    def handle(self, policy: BreakerPolicy | None, trigger: Trigger, at: float | None = None) -> None:
        """Something happened that may open or close a breaker."""
        if policy is None:
            return
        now_ms = self._now_ms() if at is None else round(at * 1000)
        was = self._state(policy.name)
        now = self._states[policy.name] = advance(was, trigger, policy, now_ms)
        if now != was:
            self._schedule_check(policy, now)
            self._act_on(policy, was, now)

    def died(self, worker: SupervisedWorker, death: Death, at: float) -> None:
        """A worker died; a good end opens no breaker, but a canary that is to run on did not stay healthy.

        One that is meant to end, as a task is, leaves its trial to the next canary at once.
        """
        finishes = worker.spec.is_task or worker.spec.restart.restart_on is not RestartOn.ALWAYS
        is_well = death.ended_well and (finishes or self.is_closed(worker))
        if not is_well and not self._orders.stopping:
            self.handle(worker.spec.breaker, Died(worker.id), at)

    def process_ended(self, component_id: str) -> None:
        """A process is gone; if it was a canary, the canary is not healthy."""
        if not self._states:
            return  # no breaker has had anything to count yet
        for policy in self._half_open():
            self.handle(policy, HealthChanged(component_id, healthy=False))
        if component_id not in self._workers:
            self.specs_changed()
        self.check_canaries()
        if any(isinstance(state, Open) and name not in self._timers for name, state in self._states.items()):
            self.watch()  # at the last check it held no worker back

    def check_canaries(self) -> None:
        """End the trial of a canary that was stopped, paused, failed or removed."""
        for policy in self._half_open():
            state = self._state(policy.name)
            if isinstance(state, HalfOpen) and not self._tries(policy.name, state.canary):
                self.handle(policy, WorkerLeft(state.canary))

    def specs_changed(self) -> None:
        """Specs may have changed: release workers from breakers that their specs do not name."""
        named = {policy.name for policy in self._policies()}
        for name in [name for name in self._states if name not in named]:
            self._forget(name)
        self.check_canaries()
        for worker in self._workers:
            if _waits_for_a_breaker(worker) and self.holds(worker) is None:
                self._start(worker.id)
        self.watch()

    def wait_elapsed(self, name: str) -> None:
        """A breaker's timer fired: the wait before the next trial, or the trial, may be over."""
        for policy in self._policies():
            if policy.name == name:
                self._timers.pop(name, None)
                is_open = isinstance(self._state(name), Open)
                if is_open and canaries.are_yet_to_start(name, self._all()):
                    return  # when they are started, the breaker holds them and is checked again
                if self._passed.get(name, True) or not is_open:
                    self._time_passed(policy)
                    self.check_canaries()
                    if name not in self._timers:  # it fired a fraction of a millisecond early
                        self._schedule_check(policy, self._state(name))
                else:
                    self._look_again(policy)
                return

    def _time_passed(self, policy: BreakerPolicy) -> None:
        workers = self._all()
        held = canaries.candidates(policy.name, workers)
        trial_ms = round(canaries.trial_s(held, workers, policy.hold_s) * 1000)
        self.handle(policy, WaitElapsed(held, trial_ms))

    def probed(self, name: str, wrong: str | None) -> None:
        """The result of a probe; `wrong` is what failed, None if it passed."""
        for policy in self._policies():
            if policy.name == name and policy.probes:
                self._passed[name] = wrong is None
                self.handle(policy, ProbeEnded(wrong))
                self._probe_after(policy, policy.probe_interval_s)
                return
        # The specs changed meanwhile, and no breaker asks for this probe now.
        self._probes.pop(name, None)
        self._passed.pop(name, None)

    # ── what follows ─────────────────────────────────────────────────────────────────────

    def _act_on(self, policy: BreakerPolicy, was: State, now: State) -> None:
        name = policy.name
        match was, now:
            case Closed(), Open(why=why):
                wall = self._runtime.clock.wall_ms()
                opened = BreakerOpened(name, why, tuple(worker.id for worker in self._members(name)))
                self._persist(MetaSet(META + name, json.dumps({"since": wall, "why": why})), opened)
            case Open(), HalfOpen(canary=canary):
                tell(self._persistence, CanaryStarted(name, canary))
                self._start(canary)
            case HalfOpen(canary=canary), Open():
                self._call_off(canary)
            case Open() | HalfOpen(), Closed():
                back = tuple(worker.id for worker in self._members(name) if is_held(worker))
                closed = BreakerClosed(name, (self._now_ms() - was.since_ms) / 1000, back)
                self._persist(MetaSet(META + name, None), closed)
                for id_ in back:
                    self._start(id_)
            case _:
                pass

    def _forget(self, name: str) -> None:
        """No spec names this breaker now; its setting in the store would open the next one of this name."""
        state = self._states.pop(name)
        self._passed.pop(name, None)
        for timer in (self._timers.pop(name, None), self._probes.pop(name, None)):
            if timer is not None:
                timer.cancel()
        if not isinstance(state, Closed):
            closed = BreakerClosed(name, (self._now_ms() - state.since_ms) / 1000, ())
            self._persist(MetaSet(META + name, None), closed)

    def _half_open(self) -> list[BreakerPolicy]:
        """The breakers with a canary; nearly always there is none, so this is fast for none."""
        names = {name for name, state in self._states.items() if isinstance(state, HalfOpen)}
        return [policy for policy in self._policies() if policy.name in names] if names else []

    def _tries(self, name: str, canary: str) -> bool:
        """Whether this canary can still become healthy."""
        worker = self._workers.get(canary)
        waits_for = () if worker is None else self._workers.waits_for(worker)
        return canaries.tries(worker, name, self._all(), waits_for)

    def _call_off(self, former: str) -> None:
        """A canary whose trial is over must not start beside the next canary."""
        worker = self._workers.get(former)
        why = None if worker is None else self.holds(worker)
        if worker is not None and why is not None:
            self._workers.call_off(worker, why)

    def _start(self, component_id: str) -> None:
        worker = self._workers.get(component_id)
        if worker is not None and not self._orders.stopping:
            world = self.world(worker)
            self._workers.step(component_id, lambda w: supervision.start(w, world))

    def _persist(self, record: MetaSet, event: BreakerOpened | BreakerClosed) -> None:
        self._workers.breaker_turned(event.breaker, is_open=isinstance(event, BreakerOpened))
        tell(self._persistence, Persist((record, event)))

    def _schedule_check(self, policy: BreakerPolicy, state: State) -> None:
        earlier = self._timers.pop(policy.name, None)
        if earlier is not None:
            earlier.cancel()
        at_ms = next_look_ms(state, policy)
        if at_ms is not None:
            self._arm(policy.name, max(0, at_ms - self._now_ms()) / 1000)

    def _look_again(self, policy: BreakerPolicy) -> None:
        self._arm(policy.name, policy.probe_interval_s)

    def _arm(self, name: str, delay_s: float) -> None:
        self._timers[name] = self._runtime.timers.after(delay_s, self._supervisor, BreakerDue(name))

    def _probe_after(self, policy: BreakerPolicy, delay_s: float) -> None:
        assert self._prober is not None
        probe = Probe(policy, self._supervisor)
        self._probes[policy.name] = self._runtime.timers.after(delay_s, self._prober, probe)

    def _state(self, name: str) -> State:
        return self._states.get(name, Closed())

    def _members(self, name: str) -> list[SupervisedWorker]:
        return canaries.members(name, self._all())

    def _all(self) -> dict[str, SupervisedWorker]:
        return {worker.id: worker for worker in self._workers}

    def _policies(self) -> list[BreakerPolicy]:
        found = {w.spec.breaker.name: w.spec.breaker for w in self._workers if w.spec.breaker is not None}
        return list(found.values())

    def _now_ms(self) -> int:
        return round(self._runtime.clock.monotonic() * 1000)


def _waits_for_a_breaker(worker: SupervisedWorker) -> bool:
    return isinstance(worker.phase, Idle) and worker.phase.rest is Rest.HELD


def _read(text: str, wall_ms: int) -> tuple[int, str]:
    """Since when it is open, and why; unreadable text still means that it was open."""
    try:
        kept = json.loads(text)
        return int(kept["since"]), str(kept["why"])
    except (ValueError, KeyError, TypeError):
        return wall_ms, "it was open before the supervisor restarted"


def _whole_seconds(ms: int) -> str:
    return span(round(max(0, ms) / 1000) * 1000)
