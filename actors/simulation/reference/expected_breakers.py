"""Pure: circuit breakers, recomputed from deaths, health and starts.

A breaker opens when enough different workers die within its window; then the deaths of its workers are held
and only a canary starts, after a delay that doubles with each canary that dies. A canary that is not healthy
within its trial gives its place to the next one. A canary that stays healthy for long enough closes it, and
all workers return at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...spec.policies.breaker_policy import BreakerPolicy
from ..scenarios.history import Announced, Decided, Ended, Ordered, Spawned, Stored, SupervisorStarted
from ..scenarios.known_state import Facts
from ..scenarios.worker_facts import WorkerFacts
from .decisions import ended_well
from .promise import EXACT_S, Deadlines, Promise

TRIAL_HOLDS = 3
"""A canary may take this many times the required healthy time, beside its time to start."""


@dataclass(slots=True)
class _Breaker:
    """What follows for one breaker."""

    policy: BreakerPolicy
    members: tuple[str, ...]
    longest_start_s: float
    """The longest time that a member has to become healthy."""
    deaths: dict[str, int] = field(default_factory=dict)
    """The last death of each member, in milliseconds."""
    opened_at: float | None = None
    since: float = 0.0
    """Since when it is open, also over a restart of the supervisor."""
    canary: str | None = None
    tried_at: float = 0.0
    """When the canary was started."""
    dead_canaries: int = 0
    maybe_dead: int = 0
    """How many more may have failed: an operator touched them, and their time was over."""
    not_before: float = 0.0
    """When the next canary may start."""
    tried: tuple[str | None, frozenset[str]] = (None, frozenset())
    """The last canary, and the members that were held back when it was chosen."""
    by_hand: set[str] = field(default_factory=set)
    """Members that an operator started by name, until their processes start."""

    def recent(self, at: float) -> int:
        """How many members died within the window."""
        since = round(at * 1000) - round(self.policy.window_s * 1000)
        return sum(1 for died in self.deaths.values() if died > since)

    def open(self, at: float, wait_s: float) -> None:
        """It opens."""
        self.opened_at, self.since, self.canary = at, at, None
        self.dead_canaries = self.maybe_dead = 0
        self.tried = (None, frozenset())
        self.not_before = at + wait_s

    @property
    def trial_ends(self) -> float:
        """When the canary has taken too long, whichever of the members it is."""
        return self.tried_at + self.longest_start_s + TRIAL_HOLDS * self.policy.hold_s

    def wait_s(self, failed: int) -> float:
        """How long the next canary waits after so many have failed."""
        policy = self.policy
        return min(policy.canary_delay_s * 2.0 ** min(failed, 30), policy.canary_max_delay_s)

    def close(self) -> None:
        """It closes, and counts from the beginning."""
        self.opened_at = self.canary = None
        self.deaths.clear()


class ExpectedBreakers(Promise):
    """Breakers open, hold, try and close as their policies say."""

    rule: ClassVar[str] = "breakers follow their policy"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._breakers: dict[str, _Breaker] = {}
        self._reset: set[str] = set()
        """Workers that were reset while they were down, and have not been started since."""
        self._stored_since: dict[str, int] = {}
        """When each was opened, by the wall clock of that time."""
        for worker in facts.workers.values():
            policy = worker.spec.breaker
            if policy is not None:
                known = self._breakers.get(policy.name)
                members = () if known is None else known.members
                longest = max(0.0 if known is None else known.longest_start_s, _start_s(worker))
                self._breakers[policy.name] = _Breaker(policy, (*members, worker.spec.id), longest)

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Deaths, starts, orders and announcements; nothing if no worker has a breaker."""
        if not self._breakers or any(each.policy.probes for each in self._breakers.values()):
            return {}
        return {
            SupervisorStarted: self._supervisor_started,
            Stored: self._stored,
            Decided: self._decided,
            Spawned: self._spawned,
            Ended: self._ended,
            Ordered: self._ordered,
            Announced: self._announced,
        }

    def _of(self, worker: str) -> _Breaker | None:
        policy = self.facts.workers[worker].spec.breaker
        return None if policy is None else self._breakers[policy.name]

    def _stored(self, entry: Stored) -> None:
        kind, _, name = (entry.worker or "").partition(":")
        if entry.kind == "meta" and kind == "breaker" and entry.value is not None:
            self._stored_since[name] = json.loads(entry.value)["since"]

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        for name, breaker in self._breakers.items():
            breaker.close()
            if name in self.facts.stored_breakers:
                breaker.open(entry.at, 0.0)
                breaker.since = entry.at - max(0, entry.wall_ms - self._stored_since[name]) / 1000
                self._expect_canary(breaker)

    # ── deaths ───────────────────────────────────────────────────────────────────────────

    def _decided(self, entry: Decided) -> Iterator[str]:
        breaker = self._of(entry.worker)
        worker = self.facts.workers[entry.worker]
        if breaker is None or entry.generation in worker.decided or entry.cause == "supervisor_lost":
            return
        at = entry.at if entry.died_at is None else entry.died_at
        name, well = breaker.policy.name, ended_well(entry, self.facts.workers[entry.worker].spec.restart)
        opened_now = breaker.opened_at is not None and abs(breaker.opened_at - entry.at) <= EXACT_S
        if not well and (breaker.opened_at is None or opened_now):
            breaker.deaths[entry.worker] = round(at * 1000)
        if not self.facts.an_actor_raised and not well and self.facts.shut_down_at is None:
            limit = breaker.policy.deaths or 0
            if breaker.opened_at is None and breaker.recent(at) >= limit:
                yield f"breaker {name} is not opened by the deaths of {breaker.recent(at)} workers"
        if breaker.opened_at is None and entry.action == "held":
            yield f"{entry.worker} #{entry.generation} is held back by a closed breaker"
        if breaker.opened_at is not None and entry.action.startswith("restart"):
            yield f"{entry.worker} #{entry.generation} uses a restart although breaker {name} is open"
        if breaker.canary == entry.worker and well and entry.action == "none":
            breaker.canary, breaker.not_before = None, at  # it was meant to end
            self._expect_canary(breaker, at + breaker.wait_s(breaker.dead_canaries + breaker.maybe_dead))
        elif breaker.canary == entry.worker:
            self._canary_died(breaker, worker, at)

    def _canary_died(self, breaker: _Breaker, canary: WorkerFacts, at: float) -> None:
        breaker.canary = None
        # What an operator orders, or what happens while the host sleeps, may have ended its trial before.
        is_sure = max(canary.ordered_at, self.facts.resumed_at) < breaker.tried_at
        breaker.dead_canaries += is_sure
        breaker.maybe_dead += not is_sure
        # If its trial was over by then, another one may have been started in its place.
        is_in_time = is_sure and at < breaker.trial_ends - EXACT_S
        breaker.not_before = at + breaker.wait_s(breaker.dead_canaries) if is_in_time else at
        has_slept = self.facts.resumed_at > (breaker.opened_at or 0.0)
        most = 30 if has_slept else breaker.dead_canaries + breaker.maybe_dead
        self._expect_canary(breaker, at + breaker.wait_s(most))

    def _expect_canary(self, breaker: _Breaker, latest: float | None = None) -> None:
        """The next canary starts in time; if no worker can be one, the breaker closes."""
        name, latest = breaker.policy.name, breaker.not_before if latest is None else latest

        def why() -> str | None:
            if breaker.opened_at is None or breaker.canary is not None or self.facts.shut_down_at is not None:
                return None
            return f"breaker {name} is open, and no canary is started at {latest:g}"

        self.by(("canary", name), latest, why)

    # ── starts ───────────────────────────────────────────────────────────────────────────

    def _ordered(self, entry: Ordered) -> None:
        for worker in self.facts.each(entry.worker):
            is_reset = entry.order == "reset" and (worker.living is None or worker.living in worker.decided)
            (self._reset.add if is_reset else self._reset.discard)(worker.spec.id)
        if entry.order in ("start", "restart") and entry.worker is not None:
            breaker = self._of(entry.worker)
            if breaker is not None:
                breaker.by_hand.add(entry.worker)

    def _spawned(self, entry: Spawned) -> Iterator[str]:
        breaker = self._of(entry.worker)
        self._reset.discard(entry.worker)
        if breaker is None:
            return
        is_by_hand = entry.worker in breaker.by_hand
        breaker.by_hand.discard(entry.worker)
        if breaker.opened_at is None or is_by_hand:
            return
        if entry.worker == breaker.canary or self._may_be_late(entry):
            return
        if entry.at > breaker.opened_at + EXACT_S or self.facts.life_began_at >= entry.at - EXACT_S:
            yield f"{entry.worker} #{entry.generation} starts although breaker {breaker.policy.name} is open"

    def _may_be_late(self, entry: Spawned) -> bool:
        """Starts that wait for other workers, or for each other, may have been decided long ago."""
        worker = self.facts.workers[entry.worker]
        return bool(worker.spec.after) or self.facts.starts_are_paced or self.facts.an_actor_raised

    def _ended(self, entry: Ended) -> None:
        """A canary that an operator stopped gives its place to the next one at once."""
        breaker, worker = self._of(entry.worker), self.facts.workers[entry.worker]
        if breaker is None or breaker.canary != entry.worker or worker.stopped_at is None:
            return
        tried_at = breaker.tried_at

        def why() -> str | None:
            is_same = (breaker.canary, breaker.tried_at) == (entry.worker, tried_at)
            if not is_same or worker.stopped_at is None or worker.has_process or self.facts.an_actor_raised:
                return None
            if self.facts.shut_down_at is not None or breaker.opened_at is None:
                return None
            return f"breaker {breaker.policy.name} stays half open: its canary {entry.worker} was stopped"

        self.by(("stopped", breaker.policy.name), entry.at, why)

    # ── announcements ────────────────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event == "status_changed" and entry.worker is not None:
            self._health_changed(entry)
            return
        breaker = self._breakers.get(entry.about or "")
        if breaker is None:
            return
        if entry.event == "breaker_opened":
            breaker.open(entry.at, breaker.policy.canary_delay_s)
            self._expect_reason(breaker, entry.at)
            self._expect_canary(breaker)
        elif entry.event == "canary_started":
            yield from self._canary_started(breaker, entry)
        elif entry.event == "breaker_closed":
            yield from self._closed(breaker, entry)

    def _expect_reason(self, breaker: _Breaker, at: float) -> None:
        """The death that opens it is decided in the same moment, and is of a further worker."""
        limit = breaker.policy.deaths or 0

        def why() -> str | None:
            counted = breaker.recent(at)
            if counted >= limit or breaker.opened_at != at:
                return None
            return f"breaker {breaker.policy.name} opens after the deaths of {counted} workers, not {limit}"

        self.by(("reason", breaker.policy.name), at, why)

    def _canary_started(self, breaker: _Breaker, entry: Announced) -> Iterator[str]:
        if entry.at < breaker.not_before - EXACT_S and not self.facts.an_actor_raised:
            due = breaker.not_before
            yield f"canary {entry.worker} of {entry.about} starts at {entry.at:g}, due at {due:g}"
        former = None if breaker.canary is None else self.facts.workers[breaker.canary]
        is_tried = former is not None and former.ordered_at <= former.spawned_at
        if former is not None and entry.at >= breaker.trial_ends - EXACT_S:  # it took too long
            is_sure = is_tried and self.facts.resumed_at < breaker.tried_at
            breaker.dead_canaries += is_sure
            breaker.maybe_dead += not is_sure
        yield from self._is_fit(breaker, entry)
        yield from self._in_turn(breaker, entry)
        breaker.canary, breaker.tried_at = entry.worker, entry.at
        breaker.not_before = 0.0
        self.done(("canary", breaker.policy.name))
        self._expect_result(breaker, entry)

    def _in_turn(self, breaker: _Breaker, entry: Announced) -> Iterator[str]:
        """One broken worker must not block the others: while the same ones are held, another one is tried."""
        workers = {id_: self.facts.workers[id_] for id_ in breaker.members}
        is_paused = self.facts.is_paused
        held = frozenset(
            id_
            for id_, each in workers.items()
            if _is_held(each) and not is_paused(id_, entry.at) and id_ not in self._reset
        )
        is_free = not any(each.spec.after for each in workers.values())
        was_tried, breaker.tried = breaker.tried, (entry.worker, held)
        ordered_at = max(each.ordered_at for each in workers.values())
        is_sure = not self.facts.an_actor_raised and ordered_at < breaker.tried_at
        if was_tried == breaker.tried and len(held) > 1 and is_free and is_sure:
            yield f"canary {entry.worker} of {entry.about} is tried twice in a row"

    def _is_fit(self, breaker: _Breaker, entry: Announced) -> Iterator[str]:
        """A canary that waits for another held worker, or for its former process, only takes time."""
        canary, name = self.facts.workers[entry.worker or ""], f"canary {entry.worker} of {entry.about}"
        others = {id_: self.facts.workers[id_] for id_ in breaker.members if id_ != entry.worker}
        held = [
            id_
            for id_, each in others.items()
            if not self.facts.is_paused(id_, entry.at)
            and _is_held(each)
            and each.last_death is not None
            and id_ not in self._reset
        ]
        if self.facts.an_actor_raised or self.facts.starts_are_paced:
            return
        needed = self._needed_by(canary.spec.id)
        if needed & {*held}:
            yield f"{name} is tried, and needs {', '.join(sorted(needed & {*held}))}, which is held back"
        free = [id_ for id_ in held if not self.facts.workers[id_].spec.after]
        if canary.living is not None and canary.living in canary.decided and free:
            yield f"{name} is tried before its former process has ended, and {free[0]} could be tried"

    def _needed_by(self, id_: str) -> set[str]:
        """All that must run before this worker."""
        found: set[str] = set()
        left = [id_]
        while left:
            before = set(self.facts.workers[left.pop()].spec.after) - found
            found |= before
            left += before
        return found

    def _expect_result(self, breaker: _Breaker, entry: Announced) -> None:
        """A canary that is not healthy in time gives its place to the next one."""

        def why() -> str | None:
            if (breaker.canary, breaker.tried_at) != (entry.worker, entry.at):
                return None
            if (
                self.facts.workers[entry.worker or ""].status == "healthy"
                or self.facts.shut_down_at is not None
            ):
                return None
            return f"breaker {entry.about} stays half open: its canary {entry.worker} is not healthy"

        self.by(("trial", breaker.policy.name), breaker.trial_ends, why)

    def _health_changed(self, entry: Announced) -> None:
        breaker = self._of(entry.worker or "")
        if breaker is None or breaker.canary != entry.worker or entry.new != "healthy":
            return
        canary, healthy_at = entry.worker or "", entry.at

        def why() -> str | None:
            worker = self.facts.workers[canary]
            same = breaker.canary == canary and worker.healthy_since == healthy_at
            if not same or worker.living is None or self._is_to_end(worker):
                return None
            return f"breaker {breaker.policy.name} is not closed, its canary {canary} is healthy"

        self.by(("close", breaker.policy.name), entry.at + breaker.policy.hold_s, why)

    def _is_to_end(self, worker: WorkerFacts) -> bool:
        ordered = max(worker.ordered_at, worker.recycled_at) >= worker.spawned_at
        return ordered or self.facts.shut_down_at is not None

    def _closed(self, breaker: _Breaker, entry: Announced) -> Iterator[str]:
        canary = None if breaker.canary is None else self.facts.workers[breaker.canary]
        if canary is not None and not self.facts.an_actor_raised:
            # A canary that is stopped, or takes too long, is none: without another one it closes, too.
            is_tried = canary.living is not None and not self._is_to_end(canary)
            since = canary.healthy_since
            is_held = since is not None and entry.at - since >= breaker.policy.hold_s - EXACT_S
            if is_tried and not is_held and entry.at < breaker.trial_ends - EXACT_S:
                yield f"breaker {entry.about} closes before its canary {breaker.canary} stayed healthy"
        elif canary is None and entry.at < breaker.not_before - EXACT_S and not self.facts.an_actor_raised:
            yield f"breaker {entry.about} closes at {entry.at:g} without a canary"
        lasted_s = entry.at - breaker.since
        if entry.lasted_s is not None and abs(entry.lasted_s - lasted_s) > EXACT_S:
            yield f"breaker {entry.about} was open for {lasted_s:g} s, and {entry.lasted_s:g} s are told"
        breaker.close()
        self._expect_return(breaker, entry.at)

    def _expect_return(self, breaker: _Breaker, at: float) -> None:
        """When it closes, everything that it held back starts at once."""
        for id_ in breaker.members:

            def why(id_: str = id_) -> str | None:
                worker = self.facts.workers[id_]
                waits = worker.living is not None or worker.spawned_at >= at or bool(worker.spec.after)
                if waits or worker.is_down or self.facts.is_paused(id_, at) or breaker.opened_at is not None:
                    return None
                if self.facts.shut_down_at is not None or self.facts.starts_are_paced:
                    return None
                if worker.refused_at >= at or (worker.last_death is not None and worker.last_death.at >= at):
                    return None  # it was started, and has ended again
                return f"{id_} is not started although breaker {breaker.policy.name} is closed"

            self.by(("back", id_), at, why)


def _is_held(worker: WorkerFacts) -> bool:
    """Whether an open breaker keeps it from starting, unless it is paused."""
    is_down = worker.stopped_at is not None or worker.failed_at is not None
    return not worker.has_process and not is_down and (worker.resumes or not worker.left)


def _start_s(worker: WorkerFacts) -> float:
    return worker.spec.health.startup_timeout_s
