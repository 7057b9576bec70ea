"""The groups of a Supervisor: their budgets, which of them are given up, and what follows.

Belongs to the Supervisor and runs in it. `supervision.group_rules` decides; this module holds the times of
the restarts of each group, persists them with the death that they belong to, and stops the members
that fall with a dead one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec

from .. import supervision
from ..deaths.death import Action, Death
from ..facts.records import MetaSet, RestartReset
from ..messages import (
    EssentialEnded,
    GroupEscalated,
    GroupGivenUp,
    GroupRestarting,
    GroupRestored,
    GroupStatus,
)
from ..messages.internal.to_persistence import Persist
from ..ports import Receiver, Runtime
from ..rules.restarts import Decision
from ..runtime.resilient_actor import tell
from ..spec.policies.group import Group
from ..supervision import group_rules as groups
from ..supervision.essential import essential_end, is_essential
from ..supervision.group_rules import GroupRuling
from ..supervision.worker import (
    Announce,
    Effect,
    Failed,
    Idle,
    KeepRecord,
    Rest,
    SupervisedWorker,
    World,
)
from .breakers import Breakers
from .orders.standing_orders import DownGroup, StandingOrders
from .workers import Workers

META = "group:"
"""The prefix of the setting with the restarts of a group and why it is given up; the name follows."""


_NOT_STARTED = frozenset({Rest.NEW, Rest.RESET, Rest.STOPPED, Rest.PAUSED})
"""Why the last member to die still rests after its failure was cleared: it has yet to be started."""


class GroupDecision(msgspec.Struct, frozen=True):
    """The decision on the death of a member, and what it means for its groups."""

    decision: Decision
    ruling: GroupRuling = groups.NO_RULING
    effects: tuple[Effect, ...] = ()
    """What is persisted and announced with the death."""
    falls: tuple[str, ...] = ()
    """The other members that are stopped."""


class Groups:
    """Every group that a worker's spec names."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        persistence: Receiver,
    ) -> None:
        self._clock = runtime.clock
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._persistence = persistence
        self._budgets: dict[str, tuple[int, ...]] = {}
        self._given_up = orders.given_up

    # ── what others ask ──────────────────────────────────────────────────────────────────

    def is_given_up(self, group: Group) -> bool:
        """Whether this group is down until a person restarts it."""
        return group.name in self._given_up

    def report(self) -> tuple[GroupStatus, ...]:
        """All groups, the enclosing ones first."""
        found: dict[str, Group] = {}
        for worker in self._workers:
            found |= {place.group.name: place.group for place in reversed(worker.spec.membership)}
        return tuple(self._status(group) for group in found.values())

    def _status(self, group: Group) -> GroupStatus:
        given_up = self._given_up.get(group.name)
        return GroupStatus(
            name=group.name,
            strategy=group.strategy.value,
            members=group.members,
            workers=tuple(worker.id for worker in self._workers.members_of(group.name)),
            used=len(groups.recent(group, self._budgets, self._now_ms())),
            max_in_window=group.max_in_window,
            window_s=group.window_s,
            on_exhausted=group.on_exhausted.value,
            given_up=None if given_up is None else given_up.why,
            because=None if given_up is None else given_up.member,
        )

    # ── a death ──────────────────────────────────────────────────────────────────────────

    def judge(self, worker: SupervisedWorker, death: Death, world: World) -> GroupDecision:
        """Decide on the death of a member, and note what it means for its groups."""
        decision = supervision.decision_on(worker, death, world)
        if decision.action.restarts and self._workers.is_to_fall(worker):
            return GroupDecision(decision)  # it was about to be stopped, so the others know already
        ruling = groups.rule(worker.spec.membership, decision.action, self._budgets, world.now_ms)
        if ruling == groups.NO_RULING:
            return GroupDecision(decision)
        around = supervision.circumstances(worker, world)
        decided = groups.decision_in_group(worker, decision, ruling, death, around)
        begins_anew = decision.action is Action.MARK_FAILED and decided.action is Action.RESTART
        first = (KeepRecord(RestartReset(worker.id, world.wall_ms)),) if begins_anew else ()
        changed = self._note(worker, ruling, decided.reason, world)
        falls = groups.affected(worker, ruling, self._members(ruling))
        return GroupDecision(
            decided, ruling, (*first, *changed, *self._news(worker, ruling, falls, decided)), falls
        )

    def follow(self, worker: SupervisedWorker, decided: GroupDecision) -> None:
        """Stop the members that fall with this one; those that finished start again with it."""
        if not decided.falls:
            return
        given_up = decided.ruling.given_up
        down = self._given_up[given_up[-1].name] if given_up else None
        why = None if down is None else f"group {given_up[-1].name} is given up because of {worker.id}"
        self._workers.fall(decided.falls, worker.id, why if down is None else f"{why}: {down.why}")
        if not given_up:
            self._start(filter(self._is_finished, decided.falls))

    def essential_end(
        self, worker: SupervisedWorker, death: Death, ruling: GroupRuling
    ) -> EssentialEnded | None:
        """What is announced if the supervisor stops because of this death; None if it does not."""
        return essential_end(worker, death, ruling, lambda group: self._workers.members_of(group.name))

    def _members(self, ruling: GroupRuling) -> tuple[SupervisedWorker, ...]:
        group = ruling.given_up[-1] if ruling.given_up else ruling.restarts
        return () if group is None else self._workers.members_of(group.name)

    def _is_finished(self, component_id: str) -> bool:
        worker = self._workers.get(component_id)
        return worker is not None and isinstance(worker.phase, Idle) and worker.phase.rest is Rest.DONE

    def _note(
        self, worker: SupervisedWorker, ruling: GroupRuling, why: str, world: World
    ) -> tuple[Effect, ...]:
        """Count the restart, and remember which groups are given up."""
        changed = [*ruling.given_up, *ruling.renewed]
        for group in ruling.given_up:
            self._given_up[group.name] = DownGroup(worker.id, ruling.why or why)
        for group in changed:
            self._budgets.pop(group.name, None)
        if ruling.spent is not None and ruling.spent.max_in_window is not None:
            used = groups.recent(ruling.spent, self._budgets, world.now_ms)
            self._budgets[ruling.spent.name] = (*used, world.now_ms)
            changed.append(ruling.spent)
        return tuple(KeepRecord(self._record(group.name)) for group in changed)

    def _news(
        self, worker: SupervisedWorker, ruling: GroupRuling, falls: tuple[str, ...], decision: Decision
    ) -> Iterable[Announce]:
        why = ruling.why or decision.reason
        around = (*ruling.renewed[1:], *((ruling.restarts,) if ruling.restarts is not None else ()))
        for group, to in zip(ruling.renewed, around, strict=False):
            yield Announce(GroupEscalated(worker.id, group.name, to.name, why))
        for group in ruling.given_up:
            yield Announce(GroupGivenUp(worker.id, group.name, why, falls))
        if ruling.restarts is not None and falls:
            group = ruling.restarts
            used = len(self._budgets.get(group.name, ()))
            event = GroupRestarting(
                worker.id, group.name, group.strategy.value, falls, used, group.max_in_window
            )
            yield Announce(event)

    # ── lasting and ending ───────────────────────────────────────────────────────────────

    def restore(self, meta: Mapping[str, str]) -> None:
        """Take over budgets and failures of the former run."""
        now, wall = self._now_ms(), self._clock.wall_ms()
        names = {place.group.name for worker in self._workers for place in worker.spec.membership}
        for name in names:
            restarts, given_up = _read(meta.get(META + name))
            if restarts:
                self._budgets[name] = tuple(now - max(0, wall - at) for at in restarts)
            if given_up is not None:
                self._given_up[name] = given_up
        for worker in self._workers:
            if isinstance(worker.phase, Failed) and is_essential(worker):
                # Its failure ended the former run, and this run is another try.
                self._workers.step(worker.id, lambda w: supervision.reset(w, self._breakers.world(w)))

    def start_restored(self) -> None:
        """Start the members of the groups whose last to die is started again, or is no longer a member."""
        if not self._given_up:
            return
        over = [name for name, given_up in self._given_up.items() if self._is_back(name, given_up.member)]
        for name in over:
            restored = GroupRestored(self._given_up.pop(name).member, name)
            tell(self._persistence, Persist((self._record(name), restored)))
        if over:  # also workers that have left such a group
            barred = [worker for worker in self._workers if _is_barred(worker)]
            self._start([worker.id for worker in barred if not self._orders.down(worker)])

    def _start(self, ids: Iterable[str]) -> None:
        if not self._orders.stopping:
            for id_ in ids:
                self._workers.step(id_, lambda w: supervision.start(w, self._breakers.world(w)))

    def _is_back(self, name: str, member: str) -> bool:
        worker = self._workers.get(member)
        if worker is None or all(place.group.name != name for place in worker.spec.membership):
            return True
        down = isinstance(worker.phase, Idle) and worker.phase.rest in _NOT_STARTED
        return not down and not isinstance(worker.phase, Failed)

    def _record(self, name: str) -> MetaSet:
        restarts, given_up = self._budgets.get(name, ()), self._given_up.get(name)
        if not restarts and given_up is None:
            return MetaSet(META + name, None)
        now, wall = self._now_ms(), self._clock.wall_ms()
        kept: dict[str, object] = {"restarts": [wall - (now - at) for at in restarts]}
        if given_up is not None:
            kept |= {"member": given_up.member, "why": given_up.why}
        return MetaSet(META + name, json.dumps(kept))

    def _now_ms(self) -> int:
        return round(self._clock.monotonic() * 1000)


def _is_barred(worker: SupervisedWorker) -> bool:
    return isinstance(worker.phase, Idle) and worker.phase.rest is Rest.GROUP


def _read(text: str | None) -> tuple[tuple[int, ...], DownGroup | None]:
    """The restarts of a group and why it is given up; text that cannot be read says nothing."""
    try:
        kept = json.loads(text or "{}")
        restarts = tuple(int(at) for at in kept.get("restarts", ()))
        return restarts, DownGroup(str(kept["member"]), str(kept["why"])) if "member" in kept else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return (), None
