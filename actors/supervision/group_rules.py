"""Pure: what the death of one member means for its group.

    dies ──budget left──▶ the strategy's members stop in reverse order, then start in order
      └──budget spent──▶ the group is exhausted ─┬ escalate ─▶ dies, in the enclosing group
    given up ─(not one_for_one)─▶ exhausted ─────┴ fail ─────▶ given up, in the enclosing group

A member that is stopped for a sibling gets a new process without being counted. Its start waits
until every member that stops has ended, and in a `one_for_all` group until no member waits for the
end of its delay: so no group runs in part. A worker that is never restarted (`temporary`) has no say:
it is stopped with the others and stays down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..deaths.death import Action, Death
from ..rules.restarts import Circumstances, Decision, Limit, RestartState, restarted, window_words
from ..spec.policies.group import Group, GroupExhausted, Membership, Strategy
from .on_command import stop
from .restart_wait import bar, is_held
from .worker import BackingOff, Idle, Rest, Stopping, StopReason, SupervisedWorker, Up, WorkerStep

Budgets = Mapping[str, tuple[int, ...]]
"""When members of a group were restarted, in milliseconds of the monotonic clock, by the group's name."""


class GroupRuling(msgspec.Struct, frozen=True, kw_only=True):
    """What a death means for the groups of the worker, from the innermost one out."""

    restarts: Group | None = None
    """The group whose strategy says which members restart; None: none does."""
    from_position: int = 0
    """The position in that group of the member that died."""
    given_up: tuple[Group, ...] = ()
    """The groups that are down until an operator restarts them, the innermost first."""
    renewed: tuple[Group, ...] = ()
    """The groups that escalated and begin with a new budget."""
    spent: Group | None = None
    """The group whose budget is used by this restart."""
    why: str = ""
    """Which budget was spent, in words; empty if none was."""
    limit: Limit | None = None
    """The same in numbers."""
    ends_all: bool = False
    """The outermost group escalated: the supervisor stops."""


NO_RULING = GroupRuling()


def rule(places: Sequence[Membership], action: Action, budgets: Budgets, now_ms: int) -> GroupRuling:
    """What a death on which this was decided means for the groups of the worker."""
    if not places or not (action.restarts or action in (Action.MARK_FAILED, Action.HELD)):
        return NO_RULING
    if action in (Action.HELD, Action.RESTART_UNCOUNTED):  # nothing is counted
        return GroupRuling(restarts=places[0].group, from_position=places[0].position)
    died, why, exhausted = action is Action.RESTART, "", list[Group]()
    limit: Limit | None = None
    for place in places:
        group = place.group
        if died:
            used = len(recent(group, budgets, now_ms))
            if group.max_in_window is None or used < group.max_in_window:
                restart = GroupRuling(restarts=group, from_position=place.position, spent=group, why=why)
                return replace(restart, renewed=tuple(exhausted))
            why = f"group {group.name}: {used} restarts in {window_words(group.window_s)}"
            limit = Limit("group", used, group.max_in_window)
        elif group.on_exhausted is GroupExhausted.FAIL and group.strategy is Strategy.ONE_FOR_ONE:
            break  # its members do not depend on each other
        exhausted.append(group)
        died = group.on_exhausted is GroupExhausted.ESCALATE
    return GroupRuling(given_up=tuple(exhausted), why=why, limit=limit, ends_all=died)


def recent(group: Group, budgets: Budgets, now_ms: int) -> tuple[int, ...]:
    """The restarts of a group within its window."""
    return tuple(at for at in budgets.get(group.name, ()) if now_ms - at < group.window_s * 1000)


def decision_in_group(
    worker: SupervisedWorker, decision: Decision, ruling: GroupRuling, death: Death, around: Circumstances
) -> Decision:
    """The decision on a death as the groups of the worker change it."""
    if ruling.given_up and decision.action is Action.RESTART:
        reason = f"{ruling.why}; last death: {death.summary}"
        return Decision(
            action=Action.MARK_FAILED,
            reason=reason,
            failure_reason=reason,
            # Not restarted, and so not counted as a restart.
            state=replace(worker.restarts, deaths_ms=decision.state.deaths_ms),
            exhausted=True,
            limit=ruling.limit,
            streak_cleared=decision.streak_cleared,
        )
    if ruling.restarts is None or not ruling.renewed:
        return decision
    escalated = f"group {ruling.renewed[-1].name} escalates to group {ruling.restarts.name}"
    if decision.action is Action.MARK_FAILED:  # in the enclosing group it starts afresh
        again = restarted(worker.spec.restart, RestartState(), around)
        return replace(again, reason=f"{again.reason}; {escalated}: {decision.reason}")
    return replace(decision, reason=f"{decision.reason}; {escalated}: {ruling.why}")


# ── Who restarts with it ─────────────────────────────────────────────────────────────────


def affected(
    culprit: SupervisedWorker, ruling: GroupRuling, members: Iterable[SupervisedWorker]
) -> tuple[str, ...]:
    """The other members that are stopped because of this death, in reverse order."""
    chosen = [worker.id for worker in members if worker.id != culprit.id and _falls(worker, culprit, ruling)]
    return tuple(reversed(chosen))


def _falls(worker: SupervisedWorker, culprit: SupervisedWorker, ruling: GroupRuling) -> bool:
    if ruling.given_up:
        return _place(worker, ruling.given_up[-1].name) is not None
    group = ruling.restarts
    place = None if group is None else _place(worker, group.name)
    if group is None or place is None:
        return False
    if ruling.renewed and _place(worker, ruling.renewed[-1].name) is not None:
        return True  # of the group that escalated, which restarts as a whole
    match group.strategy:
        case Strategy.ONE_FOR_ONE:
            return False
        case Strategy.ONE_FOR_ALL:
            return True
        case Strategy.REST_FOR_ONE:
            return place.position > ruling.from_position


def _place(worker: SupervisedWorker, group: str) -> Membership | None:
    return next((place for place in worker.spec.membership if place.group.name == group), None)


def fall(worker: SupervisedWorker, culprit: str, down: str | None) -> WorkerStep:
    """Stop a member because another one died, and start it again in its turn; nothing is counted.

    With `down` the group is given up: the member is not started again until that is lifted.
    """
    if down is not None and is_held(worker):
        return bar(worker, down)
    if not isinstance(worker.phase, Up):
        return WorkerStep(worker)
    step = stop(worker, reason=StopReason.GROUP, because=culprit)
    assert isinstance(step.worker.phase, Stopping)
    phase = replace(step.worker.phase, relaunch=not worker.spec.temporary)
    return WorkerStep(replace(step.worker, phase=phase), step.effects)


def ids_by_group(workers: Iterable[SupervisedWorker]) -> dict[str, tuple[str, ...]]:
    """The ids of the members of each group, with those of the groups inside it."""
    found: dict[str, list[str]] = {}
    for worker in workers:
        for place in worker.spec.membership:
            found.setdefault(place.group.name, []).append(worker.id)
    return {name: tuple(ids) for name, ids in found.items()}


# ── When it may start again ──────────────────────────────────────────────────────────────


def waits_for(
    worker: SupervisedWorker, members: Iterable[SupervisedWorker], not_ended: Collection[str]
) -> tuple[str, ...]:
    """The members that must end, or whose delay must be over, before this one starts.

    Args:
        worker: the member that is due to start.
        members: the members of its groups.
        not_ended: ids of members that are still to stop for the group.
    """
    together = {place.group.name for place in worker.spec.membership if _is_for_all(place.group)}
    return tuple(
        other.id
        for other in members
        if other.id != worker.id
        and (
            other.id in not_ended
            or (isinstance(other.phase, BackingOff) and any(_place(other, name) for name in together))
        )
    )


def _is_for_all(group: Group) -> bool:
    return group.strategy is Strategy.ONE_FOR_ALL


def is_over(worker: SupervisedWorker) -> bool:
    """Whether it has ended for good: it finished, or is not restarted."""
    return isinstance(worker.phase, Idle) and worker.phase.rest in (Rest.DONE, Rest.LEFT)
