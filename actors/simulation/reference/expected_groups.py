"""Pure: groups stand and fall together: what restarts together ends first, and no group is half started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from ...spec.policies.group import GroupExhausted, Membership, Strategy
from ..scenarios.history import Announced, Decided, Ordered, Spawned, SpawnRefused, SupervisorStarted
from ..scenarios.known_state import Facts
from ..scenarios.worker_facts import WorkerFacts
from .promise import EXACT_S, SETTLED_S, Deadlines, Promise

Life = tuple[str, int]
"""A process: the worker and its generation."""


class ExpectedGroups(Promise):
    """What restarts together has ended before any of it starts, and ends when its group is given up."""

    rule: ClassVar[str] = "no group is left half started"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._to_end: dict[Life, frozenset[str]] = {}
        """The processes that must end, each with the workers that must not start before."""
        self._last_stop: tuple[str | None, float, int] = (None, -1.0, 0)
        """For whom the last member was stopped, when, and its place in the order of starts."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Deaths and starts; nothing if no worker is in a group."""
        if not any(worker.spec.membership for worker in self.facts.workers.values()):
            return {}
        return {
            SupervisorStarted: lambda _entry: self._to_end.clear(),
            Decided: self._decided,
            Ordered: self._ordered,
            Announced: self._announced,
            Spawned: self._starts,
            SpawnRefused: self._starts,
        }

    def _decided(self, entry: Decided) -> None:
        worker = self.facts.workers[entry.worker]
        if entry.generation in worker.decided or not worker.spec.membership or worker.spec.temporary:
            return
        place = worker.spec.membership[0]
        if entry.action in ("restart", "restart_uncounted", "held"):
            together = [entry.worker, *self._restarting(entry.worker, place)]
        elif entry.action == "mark_failed" and _is_given_up_with(place):
            together = list(self._members(place))
            self._must_be_down(place, entry)
        else:
            return
        others = [self.facts.workers[id_] for id_ in together if id_ != entry.worker]
        lives = {each.spec.id: each.living for each in others if each.ordered_at < each.spawned_at}
        falling = {(id_, living): frozenset(together) for id_, living in lives.items() if living is not None}
        self._to_end |= falling
        self._finished_return(entry, others)
        self._escalated_restart(entry, worker)

    def _finished_return(self, entry: Decided, others: Iterable[WorkerFacts]) -> None:
        """A member that has ended well starts again with those that restart, which other members do not."""
        if not entry.action.startswith("restart"):
            return
        done = [each for each in others if each.is_done and each.left and not each.resumes]
        for id_ in [each.spec.id for each in done if not each.spec.is_task]:

            def why(id_: str = id_) -> str | None:
                other = self.facts.workers[id_]
                is_back = max(other.spawned_at, other.refused_at) >= entry.at
                is_held = is_back or other.ordered_at >= entry.at or other.stopped_at is not None
                if is_held or self.facts.shut_down_at is not None or self._is_paused_since(id_, entry.at):
                    return None
                return f"{id_} has ended well, and is not started with {entry.worker}"

            self.by((id_, "returns"), entry.at + SETTLED_S, why)

    def _is_paused_since(self, id_: str, at: float) -> bool:
        return self.facts.is_paused(id_, at) or self.facts.is_paused(id_, at + SETTLED_S)

    def _escalated_restart(self, entry: Decided, culprit: WorkerFacts) -> None:
        """A group that escalates restarts as a whole, whatever the strategy of the group around it."""
        places = [
            each for each in culprit.spec.membership if f"group {each.group.name} escal" in entry.reason
        ]
        lives = {
            id_: self.facts.workers[id_].living
            for place in places
            for id_ in self._members(place)
            if id_ != entry.worker and self.facts.workers[id_].status == "healthy"
        }
        stop_s = sum(self.facts.workers[id_].spec.stop.total_s for id_ in lives)

        def why() -> str | None:
            left = [id_ for id_, one in lives.items() if one and self.facts.workers[id_].living == one]
            return f"{', '.join(left)} runs on, and its group has escalated" if left else None

        if lives:
            self.by((entry.worker, "escalates"), entry.at + stop_s + SETTLED_S, why)

    def _restarting(self, culprit: str, place: Membership) -> list[str]:
        """The other members that restart with one that died, by the strategy of its innermost group."""
        others = [id_ for id_ in self._members(place) if id_ != culprit]
        match place.group.strategy:
            case Strategy.ONE_FOR_ONE:
                return []
            case Strategy.ONE_FOR_ALL:
                return others
            case Strategy.REST_FOR_ONE:
                return [id_ for id_ in others if self._position(id_, place) > place.position]

    def _members(self, place: Membership) -> Iterator[str]:
        for id_, worker in self.facts.workers.items():
            if any(each.group == place.group for each in worker.spec.membership):
                yield id_

    def _position(self, id_: str, place: Membership) -> int:
        places = self.facts.workers[id_].spec.membership
        return next(each.position for each in places if each.group == place.group)

    def _must_be_down(self, place: Membership, entry: Decided) -> None:
        """A group that is given up has no process when the time of all its stops is over."""
        specs = [self.facts.workers[id_].spec for id_ in self._members(place)]
        lives = {spec.id: self.facts.workers[spec.id].living for spec in specs if spec.id != entry.worker}
        due = entry.at + sum(spec.stop.total_s for spec in specs) + SETTLED_S

        def why() -> str | None:
            left = [id_ for id_, one in lives.items() if one and self.facts.workers[id_].living == one]
            name = place.group.name
            return f"group {name} is given up, and {', '.join(left)} still runs" if left else None

        self.by(place.group.name, due, why)

    def _ordered(self, entry: Ordered) -> None:
        """An operator's order about a member: what runs then is what the operator wants."""
        chosen = {worker.spec.id for worker in self.facts.each(entry.worker)}
        for id_ in chosen:
            for place in self.facts.workers[id_].spec.membership:
                self.done(place.group.name)
        if entry.order in ("stop", "pause", "restart"):  # they end on the operator's account
            self._to_end = {life: ids for life, ids in self._to_end.items() if life[0] not in chosen}

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event == "worker_unkillable":
            self._to_end = {life: ids for life, ids in self._to_end.items() if life[0] != entry.worker}
        if entry.event == "worker_stopping" and entry.new == "group_restart" and entry.worker is not None:
            culprit = self.facts.workers.get(entry.about or "")
            if culprit is not None and not self._may_fall(entry.worker, culprit):
                yield f"{entry.worker} #{entry.generation} is stopped for {entry.about}, against the strategy"
            yield from self._in_reverse(entry)

    def _may_fall(self, id_: str, culprit: WorkerFacts) -> bool:
        """Whether it stops when this one dies; a group that is given up or escalates stops all of it."""
        places, last = culprit.spec.membership, culprit.last_death
        if not places or last is None or "escalates" in last.reason:
            return True
        if last.action == "mark_failed":
            group = places[0].group
            is_apart = group.strategy is Strategy.ONE_FOR_ONE and group.on_exhausted is GroupExhausted.FAIL
            return not is_apart or last.reason.startswith("group ")
        return id_ in self._restarting(culprit.spec.id, places[0])

    def _in_reverse(self, entry: Announced) -> Iterator[str]:
        """What stops for one that died stops in the reverse order of its start."""
        ids = list(self.facts.workers)
        index = ids.index(entry.worker or "")
        culprit, at, last = self._last_stop
        self._last_stop = (entry.about, entry.at, index)
        if (culprit, at) == (entry.about, entry.at) and index > last and not self.facts.an_actor_raised:
            yield f"{entry.worker} is stopped for {entry.about} after {ids[last]}, against the order"

    def _starts(self, entry: Spawned | SpawnRefused) -> Iterator[str]:
        yield from self._while_others_wait(entry)
        for (id_, generation), together in list(self._to_end.items()):
            if not _is_living(self.facts.workers[id_], generation):
                del self._to_end[id_, generation]
            elif entry.worker in together and not self.facts.an_actor_raised:
                yield f"{entry.worker} #{entry.generation} starts while {id_} #{generation} has yet to end"

    def _while_others_wait(self, entry: Spawned | SpawnRefused) -> Iterator[str]:
        """A group that is restarted as a whole does not run in part while a member waits for its delay."""
        for place in self.facts.workers[entry.worker].spec.membership:
            if place.group.strategy is not Strategy.ONE_FOR_ALL or self.facts.an_actor_raised:
                continue
            for id_ in self._members(place):
                other = self.facts.workers[id_]
                due = None if other.has_process or other.is_down else other.not_before
                if id_ != entry.worker and due is not None and entry.at < due - EXACT_S:
                    yield f"{entry.worker} #{entry.generation} starts while {id_} waits until {due:g}"


def _is_given_up_with(place: Membership) -> bool:
    """Whether the end of a member is the end of its group."""
    group = place.group
    return group.strategy is not Strategy.ONE_FOR_ONE and group.on_exhausted is GroupExhausted.FAIL


def _is_living(worker: WorkerFacts, generation: int) -> bool:
    return worker.living == generation
