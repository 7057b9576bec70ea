"""Pure: the health of every process, recomputed from the frames that arrived and from time.

A worker that reports its health is healthy from its first healthy frame. It dies of silence when the last
healthy frame is as old as its policy allows; of its start, or of a recovery, when that takes too long. The
time in which the host slept, or the worker idled in a pause, does not count as silence; a recovery then has
its shortest time again. A suspend is forgiven three times in a row, and then not again before the next frame.
A monitor that raised forgives once more each time, and then judges as before.
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
    Idled,
    Spawned,
    SupervisorStarted,
)
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, REPLACED_S, Deadlines, Promise

LATE_S = 1.0
"""A check that is later than this shows that the supervisor was suspended."""
FORGIVEN = 3


@dataclass(slots=True)
class _Recovery:
    """When a recovery ends, if the time that is forgiven is known."""

    since: float
    until: float

    def ask(self, at: float, granted_s: float, longest_s: float) -> None:
        """The whole recovery is bounded, however often the worker asks."""
        self.until = min(at + granted_s, self.since + longest_s)

    def forgive(self, at: float, least_s: float) -> None:
        """The time until now does not count: its shortest time is left."""
        more_s = max(0.0, at + least_s - self.until)
        self.since += more_s
        self.until += more_s


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
    recovery: tuple[_Recovery, _Recovery] | None = None
    """With the time only that is certain to be forgiven, and with all that may be."""
    forgiven_at: float = -inf
    """The last suspend or pause that is certain to be forgiven."""
    maybe_at: float = -inf
    """The last one that may be forgiven."""
    idle_since: float | None = None
    """When it was told to idle, if it was."""
    raises: int = 0
    """How often the monitor had raised when this was looked at last."""
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
        if self.recovery is not None:
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
        return self._silent_until(self.forgiven_at) if self.recovery is None else self.recovery[0].until

    @property
    def latest(self) -> float:
        """After this it must be."""
        if self.recovery is not None:
            return self.recovery[1].until
        return self._silent_until(max(self.maybe_at, self.forgiven_at))

    def _silent_until(self, forgiven_at: float) -> float:
        return max(self.seen, forgiven_at) + self.allowed_s

    def forgive(self, at: float, *, is_certain: bool) -> None:
        """The time until now may not count, or certainly does not."""
        self.maybe_at = at
        if is_certain:
            self.forgiven_at = at
        for each in (self.recovery or ())[0 if is_certain else 1 :]:
            each.forgive(at, self.policy.recovery_min_s or 0.0)

    def suspended(self, since: float, until: float) -> None:
        """The host slept."""
        # One that follows at once may be one with it: the monitor did not come to look in between.
        again = bool(self.suspends) and since - self.suspends[-1] < EXACT_S
        if until - since <= LATE_S and not again:
            return
        self.suspends.append(until)
        is_certain = not again and self._next_check(since) < until - LATE_S - EXACT_S
        self.certain += is_certain
        if self.certain <= FORGIVEN:
            self.forgive(until, is_certain=is_certain and len(self.suspends) < FORGIVEN)

    def _next_check(self, at: float) -> float:
        """When its own silence is looked at next, at the latest."""
        staleness = self.policy.staleness_s
        if self.is_pending or self.recovery is not None or staleness is None:
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
            Idled: self._idled,
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
            life.is_pending, life.recovery, life.seen = False, None, entry.at
            self._expect(entry.worker, life)
        elif entry.status == "recovering" and life.policy.recovery_max_s is not None:
            self._recovers(life, entry, life.policy.recovery_max_s)
            self._expect(entry.worker, life)
        else:
            self._lives.pop(entry.worker)  # what it says is not covered here

    def _recovers(self, life: _Life, entry: Heard, longest_s: float) -> None:
        if life.recovery is None:
            life.recovery = _Recovery(entry.at, 0.0), _Recovery(entry.at, 0.0)
        asked = longest_s if entry.recover_for_s is None else entry.recover_for_s
        granted = min(max(asked, life.policy.recovery_min_s or 0.0), longest_s)
        for each in life.recovery:
            each.ask(entry.at, granted, longest_s)

    def _tolerated(self, entry: Heard) -> str | None:
        worker = self.facts.workers[entry.worker]
        if worker.living != entry.generation or not self._is_watched(entry.worker, entry.generation):
            return None
        return f"{entry.worker} #{entry.generation} sends garbage and is not ended"

    def _is_watched(self, id_: str, generation: int) -> bool:
        worker = self.facts.workers[id_]
        is_to_end = worker.is_to_end or worker.recycled_at >= worker.spawned_at
        return generation not in worker.decided and not is_to_end

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
        if self.facts.workers[id_].living != life.generation:
            return None
        if self.facts.an_actor_raised and self._begins_again(id_, life):
            return None
        if self.facts.is_paused(id_, due) and not life.is_pending:
            return None  # it may be silent until the pause ends
        return f"{id_} #{life.generation} is not taken for dead at {due:g} ({life.cause})"

    def _begins_again(self, id_: str, life: _Life) -> bool:
        """Whether a monitor that raised may have begun to count again, so that this is looked at later."""
        raises = self.facts.raises.get("monitor", 0)
        more = min(raises - life.raises, FORGIVEN)
        if more <= 0:
            return False
        life.raises = raises
        longest_s = life.allowed_s if life.recovery is None else life.policy.recovery_max_s or 0.0
        now = max(life.latest, self.facts.resumed_at)
        due = life.looked_at = now + more * (longest_s + LATE_S) + REPLACED_S
        self.by(id_, due, lambda: self._overlooked(id_, life))
        return True

    # ── forgiven silence ─────────────────────────────────────────────────────────────────

    def _resumed(self, entry: HostResumed) -> None:
        for id_, life in self._lives.items():
            life.suspended(entry.at - entry.slept_s, entry.at)
            self._expect(id_, life)

    def _idled(self, entry: Idled) -> None:
        """A worker that idled continues: that it was silent meanwhile does not count."""
        life, worker = self._lives.get(entry.worker), self.facts.workers[entry.worker]
        if life is None or life.generation != entry.generation:
            return
        if entry.idle:
            life.idle_since = entry.at if life.idle_since is None else life.idle_since
            return
        # One whose process took time to start was told when that existed.
        life.forgive(entry.at, is_certain=life.idle_since is not None and worker.begun != entry.generation)
        life.idle_since = None
        self._expect(entry.worker, life)

    # ── conclusions ──────────────────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        life = self._lives.get(entry.worker or "")
        if entry.event != "status_changed" or life is None or self.facts.an_actor_raised:
            return
        if self.facts.workers[entry.worker or ""].spec.alive is not None:
            return  # its probe changes its health, too
        name = f"{entry.worker} #{entry.generation}"
        if entry.new in ("healthy", "recovering") and (life.heard, life.heard_at) != (entry.new, entry.at):
            yield f"{name} is {entry.new}, but did not say so"
        staleness = life.policy.staleness_s
        seen = max(life.seen, life.forgiven_at)
        if entry.new == "unhealthy" and staleness is not None and entry.at < seen + staleness - EXACT_S:
            yield f"{name} is unhealthy {entry.at - seen:g} s after its last frame"

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
        elif not life.is_pending and life.idle_since is not None and at > life.idle_since + EXACT_S:
            yield f"{name} is taken for dead at {at:g} ({entry.cause}), and idles since {life.idle_since:g}"
