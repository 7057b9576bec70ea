"""Pure: a rollout has a ready process in place of each that it replaces, and only its spares beside.

Each step waits until the new processes have been ready for as long as the policy says. One that ends before,
or is not ready when the time for it is over, ends the rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...spec.deployment.rollout_policy import RolloutPolicy
from ...spec.worker_spec import WorkerSpec
from ..scenarios.history import Announced, Asked, Ended, Ordered, Spawned, SpawnRefused, SupervisorStarted
from .promise import EXACT_S, Promise

LONGEST_S = 600.0
"""A rollout of one worker ends within this time, whatever happens to it."""
MORE_S = 30.0
"""How much longer than its own limits a new process may take until it is ready."""


@dataclass(slots=True)
class _New:
    """A worker whose new process is awaited."""

    before: int
    ready_at: float | None = None
    is_asked: bool = False
    """Whether its old process was asked to end."""


@dataclass(slots=True)
class _Rollout:
    """A rollout under way, as its events tell of it."""

    workers: tuple[str, ...]
    spares: tuple[str, ...]
    patience_s: float
    settle_s: float
    since: float
    """When the present step began."""
    ready: set[str] = field(default_factory=set)
    living: dict[str, int] = field(default_factory=dict)
    """The generations of its spares."""
    awaited: dict[str, _New] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    """The workers whose turn has come."""
    waits_for_others: bool = False
    """Whether one whose turn has come had no process: it may be awaited, or not."""
    ordered_at: float = -1.0
    """When an operator last ordered something that concerns it."""
    has_failed: bool = False
    """Whether something happened that must end it."""
    is_lowered: bool = False
    lowered_after_s: float = 0.0
    """How long the last step took."""

    def settled_at(self) -> float | None:
        """When all that are awaited have been ready for long enough; None if one is not ready."""
        times = [each.ready_at for each in self.awaited.values()]
        if any(at is None for at in times):
            return None
        return max((at for at in times if at is not None), default=self.since - self.settle_s) + self.settle_s


class ExpectedRollouts(Promise):
    """No worker is replaced unless a spare is ready for it; spares exist only during a rollout."""

    rule: ClassVar[str] = "a rollout has no gap"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._under_way: dict[str, _Rollout] = {}
        self._asked_last: dict[str, int] = {}
        """The generation of each worker that was last asked to end."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is announced of rollouts, and the lives of all that take part."""
        return {
            SupervisorStarted: lambda _entry: self._under_way.clear(),
            Announced: self._announced,
            Asked: self._asked,
            Spawned: self._spawned,
            SpawnRefused: self._spawned,
            Ended: self._ended,
            Ordered: self._ordered,
        }

    # ── processes ────────────────────────────────────────────────────────────────────────

    def _spawned(self, entry: Spawned | SpawnRefused) -> Iterator[str]:
        if entry.worker in self.facts.workers:
            return
        rollout = self._of_spare(entry.worker)
        if rollout is None:
            yield f"{entry.worker} starts, which is not a worker and not a spare of a rollout"
        elif isinstance(entry, Spawned):
            if entry.worker in rollout.living:
                yield f"{entry.worker} starts while another process of it lives"
            rollout.living[entry.worker] = entry.generation

    def _ended(self, entry: Ended) -> None:
        rollout = self._of_spare(entry.worker)
        if rollout is not None:
            rollout.living.pop(entry.worker, None)
            rollout.ready.discard(entry.worker)
        for each in self._under_way.values():
            new = each.awaited.get(entry.worker)
            if new is not None and entry.generation == new.before:
                new.is_asked = True  # it has ended by itself
            elif new is not None:
                new.ready_at = None

    def _asked(self, entry: Asked) -> None:
        self._asked_last[entry.worker] = entry.generation
        for rollout in self._under_way.values():
            if entry.worker in rollout.awaited:
                rollout.awaited[entry.worker].is_asked = True

    def _ordered(self, entry: Ordered) -> None:
        if entry.order == "renew":
            return  # the rollout itself ends them
        for rollout in self._under_way.values():
            if entry.worker is None or entry.worker in (*rollout.workers, *rollout.spares):
                rollout.ordered_at = entry.at

    # ── health ───────────────────────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        match entry.event:
            case "rollout_started":
                self._started(entry)
            case "status_changed":
                self._health_changed(entry)
            case "worker_died":
                self._died(entry)
            case "rollout_advanced" if entry.old in self._under_way:
                yield from self._advanced(self._under_way[entry.old], entry)
            case "rollout_advanced" if entry.new == "replace":
                yield f"{entry.about} is replaced without a rollout"
            case "rollout_ended" if entry.old in self._under_way:
                yield from self._over(entry.old, self._under_way[entry.old], entry)
            case _:
                pass

    def _health_changed(self, entry: Announced) -> None:
        id_ = entry.worker or ""
        spared = self._of_spare(id_)
        if spared is not None:
            (spared.ready.add if entry.new == "healthy" else spared.ready.discard)(id_)
        for name, rollout in self._under_way.items():
            new = rollout.awaited.get(id_)
            if new is not None and entry.generation > new.before:
                new.ready_at = entry.at if entry.new == "healthy" else None
                self._expect_next(name, rollout)

    def _expect_next(self, name: str, rollout: _Rollout) -> None:
        """When all have been ready for long enough, the next step is taken."""
        due, since = rollout.settled_at(), rollout.since
        if due is None or rollout.is_lowered or not rollout.awaited:
            return

        def why() -> str | None:
            is_same = self._under_way.get(name) is rollout and rollout.since == since
            if not is_same or rollout.is_lowered or rollout.settled_at() != due or self._is_unsure(rollout):
                return None
            return f"the rollout of {name} does not continue, its new processes are settled at {due:g}"

        self.by((name, "settled"), due, why)

    def _died(self, entry: Announced) -> None:
        """A new process that ends too early ends the rollout in this moment."""
        for name, rollout in self._under_way.items():
            new = rollout.awaited.get(entry.worker or "")
            if new is None or entry.generation <= new.before or rollout.is_lowered:
                continue
            settled_at = rollout.settled_at()
            if settled_at is not None and entry.at >= settled_at - EXACT_S:
                continue
            rollout.has_failed = True
            since = rollout.since

            def why(name: str = name, rollout: _Rollout = rollout, since: float = since) -> str | None:
                if rollout.is_lowered or self._under_way.get(name) is not rollout or self._is_unsure(rollout):
                    return None
                return f"the rollout of {name} continues, and the new process of {entry.worker} has died"

            self.by((name, "died"), entry.at, why)

    def _is_unsure(self, rollout: _Rollout) -> bool:
        held = self.facts.shut_down_at is not None or self.facts.paused_at is not None
        held |= rollout.waits_for_others
        return self.facts.an_actor_raised or held or rollout.ordered_at >= rollout.since

    # ── steps ────────────────────────────────────────────────────────────────────────────

    def _started(self, entry: Announced) -> None:
        workers, name = _ids(entry.old), entry.new or ""
        spec = self.facts.workers[workers[0]].spec
        policy = spec.rollout or RolloutPolicy()
        begun = _Rollout(workers, _ids(entry.about), _patience_s(spec), policy.settle_s, entry.at)
        begun.awaited = {id_: _New(0, is_asked=True) for id_ in begun.spares}
        self._under_way[name] = begun
        self.by(name, entry.at + LONGEST_S * len(workers), lambda: self._endless(name, begun))
        self._expect_patience(name, begun)

    def _expect_patience(self, name: str, rollout: _Rollout) -> None:
        since = rollout.since

        def why() -> str | None:
            is_same = self._under_way.get(name) is rollout and rollout.since == since
            unready = [id_ for id_, each in rollout.awaited.items() if each.ready_at is None]
            if not is_same or rollout.is_lowered or not unready or self._is_unsure(rollout):
                return None
            return f"the rollout of {name} waits for {unready[0]} for more than {rollout.patience_s:g} s"

        self.by((name, "patience"), since + rollout.patience_s, why)

    def _advanced(self, rollout: _Rollout, entry: Announced) -> Iterator[str]:
        ids, name = _ids(entry.about), entry.old or ""
        match entry.new:
            case "replaced":
                yield from self._settled(rollout, entry)
                rollout.awaited.clear()
            case "replace":
                if rollout.awaited:
                    yield from self._settled(rollout, entry)
                if len(rollout.ready) < len(ids) and not self.facts.an_actor_raised:
                    yield f"{', '.join(ids)} is replaced while {len(rollout.ready)} spares are ready"
                self._replaces(name, rollout, ids, entry.at)
            case "lower":
                rollout.is_lowered, rollout.lowered_after_s = True, entry.at - rollout.since
            case _:
                pass

    def _settled(self, rollout: _Rollout, entry: Announced) -> Iterator[str]:
        due = rollout.settled_at()
        if not self.facts.an_actor_raised and (due is None or entry.at < due - EXACT_S):
            names = ", ".join(rollout.awaited)
            yield f"the rollout of {entry.old} continues before {names} was ready for {rollout.settle_s:g} s"

    def _replaces(self, name: str, rollout: _Rollout, ids: tuple[str, ...], at: float) -> None:
        workers = self.facts.workers
        rollout.chosen |= {*ids}
        rollout.since = at
        running = {id_: living for id_ in ids if (living := workers[id_].living) is not None}
        rollout.waits_for_others = any(id_ not in running and not workers[id_].is_down for id_ in ids)
        asked = self._asked_last
        rollout.awaited = {id_: _New(each, is_asked=asked.get(id_) == each) for id_, each in running.items()}
        awaited = rollout.awaited

        def why() -> str | None:
            unasked = [id_ for id_, each in awaited.items() if not each.is_asked]
            if not unasked or self._is_unsure(rollout) or self._under_way.get(name) is not rollout:
                return None
            return f"{', '.join(unasked)} must be replaced, and was not asked to end"

        self.by((name, "asked"), at, why)
        self._expect_patience(name, rollout)

    def _over(self, name: str, rollout: _Rollout, entry: Announced) -> Iterator[str]:
        del self._under_way[name]
        self.done(name)
        if self.facts.an_actor_raised:
            return
        if rollout.living:
            yield f"a rollout is over and its spares are left: {', '.join(rollout.living)}"
        missing = {*rollout.workers} - rollout.chosen
        if entry.new is None and missing:
            yield f"the rollout of {name} is over, and {', '.join(sorted(missing))} was not replaced"
        too_long = rollout.lowered_after_s >= rollout.patience_s - EXACT_S
        if entry.new is not None and not (too_long or rollout.has_failed or self._is_unsure(rollout)):
            after_s = rollout.lowered_after_s
            yield f"the rollout of {name} is given up {after_s:g} s after its last step, and nothing failed"

    def _endless(self, name: str, rollout: _Rollout) -> str | None:
        return f"the rollout of {name} does not end" if self._under_way.get(name) is rollout else None

    def _of_spare(self, id_: str | None) -> _Rollout | None:
        return next((each for each in self._under_way.values() if id_ in each.spares), None)


def _patience_s(spec: WorkerSpec) -> float:
    return spec.stop.total_s + spec.health.startup_timeout_s + MORE_S


def _ids(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))
