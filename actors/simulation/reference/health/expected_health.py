"""Pure: the health of every process, recomputed from the frames that arrived and from time.

A worker that reports its health is healthy from its first healthy frame. It dies of silence when the last
healthy frame is as old as its policy allows; of its start, or of a recovery, when that takes too long. The
time in which the host slept, or the worker was paused, does not count as silence; a suspend is forgiven three
times in a row, and then not again before the next frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import floor, inf
from typing import Any, ClassVar

from ....spec.policies.health_policy import HealthPolicy
from ...scenarios.history import (
    Announced,
    Decided,
    Heard,
    HostResumed,
    Ordered,
    Spawned,
    SupervisorStarted,
)
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise

LATE_S = 1.0
"""A check that is later than this shows that the supervisor was suspended."""
FORGIVEN = 3


@dataclass(slots=True)
class _Life:
    """One process, as far as its frames tell."""

    generation: int
    policy: HealthPolicy
    is_pending: bool
    seen: float
    """The start, or the last healthy frame."""
    heard_at: float = -inf
    heard: str = ""
    recover_since: float | None = None
    recover_until: float = 0.0
    forgiven_at: float = -inf
    """The last suspend or pause that is certain to be forgiven."""
    maybe_at: float = -inf
    """The last one that may be forgiven."""
    is_disturbed: bool = False
    """The host slept, or the worker was paused, during its recovery."""
    looked_at: float = inf
    """When it is looked at next."""
    suspends: list[float] = field(default_factory=list)
    """Since its last frame."""
    certain: int = 0
    """How many of them are certain to be forgiven."""

    def frame(self, status: str, at: float) -> None:
        """A frame arrived: all suspends before it are forgotten."""
        self.heard, self.heard_at = status, at
        # One that ends in the same moment may be noticed after the frame.
        self.suspends = [until for until in self.suspends if until >= at - EXACT_S]
        self.certain = 0
        self.forgiven_at = self.maybe_at = -inf

    @property
    def cause(self) -> str:
        """What it dies of if nothing arrives."""
        if self.recover_since is not None:
            return "recovery_timeout"
        return "startup_timeout" if self.is_pending else "heartbeat_lost"

    @property
    def allowed_s(self) -> float:
        """How long it may be silent."""
        if self.is_pending:
            return self.policy.startup_timeout_s
        return inf if self.policy.staleness_s is None else self.policy.staleness_s * self.policy.max_misses

    @property
    def earliest(self) -> float:
        """Before this it must not be taken for dead."""
        return self._deadline(self.forgiven_at)

    @property
    def latest(self) -> float:
        """After this it must be; a recovery that was suspended is not followed further."""
        if self.recover_since is not None and self.is_disturbed:
            return inf
        return self._deadline(max(self.maybe_at, self.forgiven_at))

    def _deadline(self, forgiven_at: float) -> float:
        if self.recover_since is not None:
            return self.recover_until
        return max(self.seen, forgiven_at) + self.allowed_s

    def suspended(self, since: float, until: float) -> None:
        """The host slept."""
        # One that follows at once may be one with it: the monitor did not come to look in between.
        again = bool(self.suspends) and since - self.suspends[-1] < EXACT_S
        if until - since <= LATE_S and not again:
            return
        self.suspends.append(until)
        self.is_disturbed = True
        if not again and self._next_check(since) < until - LATE_S - EXACT_S:
            self.certain += 1
            if len(self.suspends) < FORGIVEN:
                self.forgiven_at = until
        if self.certain <= FORGIVEN:
            self.maybe_at = until

    def _next_check(self, at: float) -> float:
        """When its own silence is looked at next, at the latest."""
        staleness = self.policy.staleness_s
        if self.is_pending or self.recover_since is not None or staleness is None:
            return self.latest
        since = max(self.seen, self.forgiven_at)
        if self.maybe_at > since:
            return at + staleness
        return since + staleness * (floor((at - since) / staleness + EXACT_S) + 1)


class ExpectedHealth(Promise):
    """Health follows from what workers say, and from how long they say nothing."""

    rule: ClassVar[str] = "health follows the frames"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._lives: dict[str, _Life] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Frames, time, and what is concluded from them."""
        return {
            SupervisorStarted: lambda _entry: self._lives.clear(),
            Spawned: self._spawned,
            Heard: self._frame,
            HostResumed: self._resumed,
            Ordered: self._ordered,
            Announced: self._announced,
            Decided: self._decided,
        }

    def _spawned(self, entry: Spawned) -> None:
        worker = self.facts.workers[entry.worker]
        spec = worker.spec
        if spec.run.reports_health and spec.ready is None:
            since = worker.begun_at if worker.begun == entry.generation else entry.at
            life = _Life(entry.generation, spec.health, is_pending=True, seen=since)
            self._lives[entry.worker] = life
            self._expect(entry.worker, life)

    def _frame(self, entry: Heard) -> None:
        life = self._lives.get(entry.worker)
        if life is None or life.generation != entry.generation:
            return  # of another process: it means nothing
        life.frame(entry.status, entry.at)
        if entry.status == "garbage":
            self.by((entry.worker, "garbage"), entry.at, lambda: self._tolerated(entry))
        elif entry.status == "healthy":
            life.is_pending, life.recover_since, life.seen = False, None, entry.at
            self._expect(entry.worker, life)
        elif entry.status == "recovering" and life.policy.recovery_max_s is not None:
            self._recovers(life, entry, life.policy.recovery_max_s)
            self._expect(entry.worker, life)
        else:
            self._lives.pop(entry.worker)  # what it says is not covered here

    def _recovers(self, life: _Life, entry: Heard, longest_s: float) -> None:
        """The whole recovery is bounded, however often the worker asks."""
        if life.recover_since is None:
            life.recover_since, life.is_disturbed = entry.at, False
        asked = longest_s if entry.recover_for_s is None else entry.recover_for_s
        granted = min(max(asked, life.policy.recovery_min_s or 0.0), longest_s)
        life.recover_until = min(entry.at + granted, life.recover_since + longest_s)

    def _tolerated(self, entry: Heard) -> str | None:
        worker = self.facts.workers[entry.worker]
        if worker.living != entry.generation or not self._is_watched(entry.worker, entry.generation):
            return None
        return f"{entry.worker} #{entry.generation} sends garbage and is not ended"

    def _is_watched(self, id_: str, generation: int) -> bool:
        worker = self.facts.workers[id_]
        ordered = max(worker.ordered_at, worker.recycled_at) >= worker.spawned_at
        return generation not in worker.decided and not ordered

    def _expect(self, id_: str, life: _Life) -> None:
        """Look when its time is over, unless a look is planned before: that one plans the next."""
        due = life.latest
        if due < life.looked_at:
            life.looked_at = due
            self.by(id_, due, lambda: self._overlooked(id_, life))

    def _overlooked(self, id_: str, life: _Life) -> str | None:
        looked_at, life.looked_at, due = life.looked_at, inf, life.latest
        if self._lives.get(id_) is life and looked_at < due - EXACT_S:
            self._expect(id_, life)
            return None
        if self._lives.get(id_) is not life or not self._is_watched(id_, life.generation):
            return None
        if self.facts.an_actor_raised:
            return None  # a monitor that raised begins to count again
        if self.facts.workers[id_].living != life.generation:
            return None
        if self.facts.is_paused(id_, due) and not life.is_pending:
            return None  # it may be silent until the pause ends
        return f"{id_} #{life.generation} is not taken for dead at {due:g} ({life.cause})"

    # ── forgiven silence ─────────────────────────────────────────────────────────────────

    def _resumed(self, entry: HostResumed) -> None:
        for id_, life in self._lives.items():
            life.suspended(entry.at - entry.slept_s, entry.at)
            self._expect(id_, life)

    def _ordered(self, entry: Ordered) -> None:
        if entry.order in ("resume", "pause"):
            self._pause_is_over(entry.worker, entry.at)

    def _pause_is_over(self, worker: str | None, at: float) -> None:
        for each in self.facts.each(worker):
            life = self._lives.get(each.spec.id)
            if life is not None:
                life.maybe_at = at
                life.is_disturbed = True
                self._expect(each.spec.id, life)

    # ── conclusions ──────────────────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event in ("pause_ended", "pause_began"):
            self._pause_is_over(entry.worker, entry.at)
        life = self._lives.get(entry.worker or "")
        if entry.event != "status_changed" or life is None or self.facts.an_actor_raised:
            return
        if self.facts.workers[entry.worker or ""].spec.alive is not None:
            return  # its probe changes its health, too
        name = f"{entry.worker} #{entry.generation}"
        if entry.new in ("healthy", "recovering") and (life.heard, life.heard_at) != (entry.new, entry.at):
            yield f"{name} is {entry.new}, but did not say so"
        staleness = life.policy.staleness_s
        if entry.new == "unhealthy" and staleness is not None and entry.at < life.seen + staleness - EXACT_S:
            yield f"{name} is unhealthy {entry.at - life.seen:g} s after its last frame"

    def _decided(self, entry: Decided) -> Iterator[str]:
        life = self._lives.get(entry.worker)
        if life is None or life.generation != entry.generation:
            return
        del self._lives[entry.worker]
        self.done(entry.worker)
        self.done((entry.worker, "garbage"))
        at = entry.at if entry.died_at is None else entry.died_at
        if entry.cause not in ("heartbeat_lost", "startup_timeout", "recovery_timeout"):
            return
        if self.facts.an_actor_raised:
            return
        name = f"{entry.worker} #{entry.generation}"
        if entry.cause != life.cause:
            yield f"{name} is dead by {entry.cause}; it would have been {life.cause}"
        elif at < life.earliest - EXACT_S:
            yield f"{name} is taken for dead at {at:g} ({entry.cause}), due at {life.earliest:g}"
