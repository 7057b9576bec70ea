"""Pure: the budgets of groups, recomputed from the deaths of their members, and what a spent one leads to.

The innermost group of a member that is restarted pays for it. One that has nothing left is given up, or it
escalates: then the group around it pays, and it begins again. A group that is given up stays down, also over
a restart of the supervisor, until an operator starts the member that died last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...spec.policies.group import Group, GroupExhausted, Membership, Strategy
from ..scenarios.history import Announced, Decided, Ordered, Spawned, Stored, SupervisorStarted
from ..scenarios.known_state import Facts
from .promise import SETTLED_S, Deadlines, Promise

ABOUT_S = 0.01
"""Times closer than this to the edge of a window may count or not."""

Life = tuple[str, int]
"""A worker and its generation."""


@dataclass(slots=True)
class _Budget:
    """The restarts of one group, and why it is down."""

    group: Group
    paid: dict[Life, float] = field(default_factory=dict)
    """When each restart was decided."""
    written: dict[Life, dict[Life, float]] = field(default_factory=dict)
    """What was to be stored with each restart."""
    doubtful: set[Life] = field(default_factory=set)
    """Restarts of members that were about to be stopped for another one: they may be counted."""
    given_up: Life | None = None
    """The death with which it was given up."""
    ordered: bool = False
    """Whether an operator gave an order since then that may start its members."""

    def pay(self, life: Life, at: float) -> None:
        """One more restart."""
        self.paid[life] = at
        self.written[life] = dict(self.paid)

    def used(self, at: float) -> tuple[int, int]:
        """How many restarts it has paid for within its window: at least, and at most."""
        ages = {life: at - paid for life, paid in self.paid.items()}
        most = [life for life, age in ages.items() if age < self.group.window_s + ABOUT_S]
        least = [life for life in most if ages[life] < self.group.window_s - ABOUT_S]
        return sum(life not in self.doubtful for life in least), len(most)


class GroupBudgets(Promise):
    """A group restarts its members as often as its budget allows, and is down when that is spent."""

    rule: ClassVar[str] = "groups keep their budgets"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        places = [place for worker in facts.workers.values() for place in worker.spec.membership]
        self._budgets = {place.group.name: _Budget(place.group) for place in places}
        self._walls: dict[Life, int] = {}
        """When the deaths in the store happened, on the wall clock."""
        self._fell: dict[str, float] = {}
        """When each worker was last to be stopped because of another one."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Deaths, starts and orders; nothing if no worker is in a group."""
        if not self._budgets:
            return {}
        return {
            SupervisorStarted: self._started,
            Stored: self._kept,
            Decided: self._decided,
            Spawned: self._spawned,
            Announced: self._announced,
            Ordered: self._ordered,
        }

    # ── what lasts ───────────────────────────────────────────────────────────────────────

    def _kept(self, entry: Stored) -> None:
        is_counted = entry.kind == "death" and entry.action in ("restart", "mark_failed")
        if is_counted and entry.worker in self.facts.workers:
            self._walls.setdefault((entry.worker, entry.generation), entry.wall_ms)

    def _started(self, entry: SupervisorStarted) -> None:
        """A supervisor knows the deaths that are in the store, by the wall clock; none is in the future."""
        self._fell.clear()
        for budget in self._budgets.values():
            budget.paid = self._remembered(budget, entry)
            budget.doubtful &= budget.paid.keys()
            if budget.given_up is not None and budget.given_up not in self._walls:
                budget.given_up = None

    def _remembered(self, budget: _Budget, entry: SupervisorStarted) -> dict[Life, float]:
        """What was written with the last restart that is in the store, by the clock as it was then."""
        stored = [life for life in budget.written if life in self._walls]
        if not stored:
            return {}
        written = budget.written[stored[-1]]
        since_s = (entry.wall_ms - self._walls[stored[-1]]) / 1000
        ages = {life: written[stored[-1]] - at for life, at in written.items()}
        recent = {life: age for life, age in ages.items() if age < budget.group.window_s + ABOUT_S}
        return {life: entry.at - max(0.0, since_s + age) for life, age in recent.items()}

    # ── deaths ───────────────────────────────────────────────────────────────────────────

    def _decided(self, entry: Decided) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        places = worker.spec.membership
        if entry.generation in worker.decided or not places or entry.cause == "supervisor_lost":
            return
        by_group = entry.action == "mark_failed" and entry.reason.startswith("group ")
        if entry.action not in ("restart", "mark_failed"):
            if entry.action in ("restart_uncounted", "held"):
                self._note_falls(entry, places[0])
            return
        at = entry.at if entry.died_at is None else entry.died_at
        is_doubtful = self._fell.get(entry.worker, -1.0) >= at - ABOUT_S
        for what in self._pay(entry, places, at, is_dead=entry.action == "restart" or by_group):
            if not is_doubtful and not self.facts.an_actor_raised:
                yield what
        if is_doubtful:
            for budget in self._budgets.values():
                if (entry.worker, entry.generation) in budget.paid:
                    budget.doubtful.add((entry.worker, entry.generation))

    def _pay(
        self, entry: Decided, places: tuple[Membership, ...], at: float, *, is_dead: bool
    ) -> Iterator[str]:
        """Find the group that pays for this death, from the innermost one out."""
        life, given_up = (entry.worker, entry.generation), list[_Budget]()
        for place in places:
            group, budget = place.group, self._budgets[place.group.name]
            if is_dead and entry.action == "restart" and self._has_room(budget, at):
                yield from self._too_many(budget, entry, at)
                budget.pay(life, at)
                self._note_falls(entry, place)
                return
            if is_dead and entry.action == "mark_failed":
                yield from self._too_few(budget, entry, at)
            fails = group.on_exhausted is GroupExhausted.FAIL
            if not is_dead and fails and group.strategy is Strategy.ONE_FOR_ONE:
                break
            budget.paid.clear()
            budget.written[life] = {}  # until this is stored, a supervisor remembers what was stored before
            budget.doubtful.clear()
            given_up.append(budget)
            is_dead = group.on_exhausted is GroupExhausted.ESCALATE
            if not is_dead and entry.action == "restart":
                yield f"{entry.worker} #{entry.generation} exceeds the budget of group {group.name}"
                return
        for budget in given_up:
            budget.given_up, budget.ordered = life, False

    def _has_room(self, budget: _Budget, at: float) -> bool:
        most = budget.group.max_in_window
        return most is None or budget.used(at)[0] < most

    def _too_many(self, budget: _Budget, entry: Decided, at: float) -> Iterator[str]:
        most, used = budget.group.max_in_window, budget.used(at)[0]
        if most is not None and used >= most:
            yield f"{entry.worker} #{entry.generation} is restart {used + 1} of group {budget.group.name}"

    def _too_few(self, budget: _Budget, entry: Decided, at: float) -> Iterator[str]:
        most, used = budget.group.max_in_window, budget.used(at)[1]
        if most is None or used < most:
            name = budget.group.name
            yield f"group {name} is given up after {used} restarts within its window; its budget is {most}"

    def _note_falls(self, entry: Decided, place: Membership) -> None:
        if place.group.strategy is not Strategy.ONE_FOR_ONE:
            for id_ in self._members(place.group):
                self._fell[id_] = entry.at

    def _members(self, group: Group) -> Iterator[str]:
        for id_, worker in self.facts.workers.items():
            if any(each.group.name == group.name for each in worker.spec.membership):
                yield id_

    def _announced(self, entry: Announced) -> Iterator[str]:
        worker = self.facts.workers.get(entry.worker or "")
        last = None if worker is None else worker.last_death
        if entry.event == "group_given_up" and last is not None and last.action != "mark_failed":
            yield f"a group is given up because of {entry.worker}, which is not"

    # ── groups that are given up ─────────────────────────────────────────────────────────

    def _ordered(self, entry: Ordered) -> None:
        for worker in self.facts.each(entry.worker):
            for place in worker.spec.membership:
                self._budgets[place.group.name].ordered |= entry.order in ("start", "restart", "reset")

    def _spawned(self, entry: Spawned) -> Iterator[str]:
        for place in self.facts.workers[entry.worker].spec.membership:
            budget = self._budgets[place.group.name]
            if budget.given_up is None or self.facts.an_actor_raised:
                continue
            if entry.worker == budget.given_up[0]:
                budget.given_up = None
                self._must_return(place.group, entry.at)
            elif not budget.ordered and entry.at > self.facts.workers[budget.given_up[0]].spawned_at + 1.0:
                yield f"{entry.worker} #{entry.generation} starts; group {place.group.name} is given up"

    def _must_return(self, group: Group, at: float) -> None:
        """With the member that died last, the whole group is back."""

        def why() -> str | None:
            budget = self._budgets[group.name]
            if budget.given_up is not None or self.facts.shut_down_at is not None:
                return None
            missing = [id_ for id_ in self._members(group) if self._is_missing(id_, at)]
            if not missing or self.facts.an_actor_raised:
                return None
            return f"group {group.name} is back, and {', '.join(missing)} is not"

        self.by((group.name, "back"), at + SETTLED_S, why)

    def _is_missing(self, id_: str, at: float) -> bool:
        worker = self.facts.workers[id_]
        given_up = any(self._budgets[each.group.name].given_up for each in worker.spec.membership)
        is_held = worker.is_down or given_up or worker.spec.temporary or worker.ordered_at >= at
        if is_held or self.facts.is_paused(id_, at) or self.facts.is_paused(id_, at + SETTLED_S):
            return False
        needed = [self.facts.workers[each] for each in worker.spec.after if each in self.facts.workers]
        if any(not each.lets_start(worker.spec) for each in needed):
            return False  # one before it was stopped again
        has_died = worker.last_death is not None and worker.last_death.at >= at
        return not worker.has_process and worker.spawned_at < at and not has_died
