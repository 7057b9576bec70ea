"""Pure: the steps by which new processes take over from old ones, and what ends them.

While a rollout lasts there are additional workers, its *spares*, with the new configuration. They have ids of
their own. So every worker has one process at a time, every life has one record, and health, jobs, output and
orphans are told apart by (id, generation) as always: two processes of one worker would need all of these to
know which of the two is meant.

    raise ──ready──▶ replace (as many members at a time as there are spares) ──▶ lower ──▶ over
      │ problem         │ problem                                                 ▲
      │                 └──▶ put back (members that were replaced) ───────────────┤
      └───────────────────────────────────────────────────────────────────────────┘

The members are replaced only while all spares are ready, so there are never fewer ready processes than
before, and never more than members and spares together. A process that is not ready in time, or ends before
it was ready for as long as it must, is a problem; the first problem ends the rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace


class Stage(StrEnum):
    """What a rollout does at the moment."""

    RAISE = "raise"
    REPLACE = "replace"
    PUT_BACK = "put_back"
    LOWER = "lower"
    OVER = "over"


class Sight(msgspec.Struct, frozen=True):
    """What is seen of one worker."""

    generation: int
    is_up: bool = False
    """Whether it has a process, or one is on its way."""
    is_ready: bool = False
    is_dead: bool = False
    """Whether it died, and a restart is to come."""
    is_down: bool = False
    """Whether it has no process, and none is to come by itself."""


Sights = Mapping[str, Sight]
"""By id; a worker that does not exist is not there."""


class Watched(msgspec.Struct, frozen=True):
    """A worker whose new process is awaited."""

    id: str
    before: int
    """The generation before the new process."""
    first: int | None = None
    """The generation of the new process."""
    ready_ms: int | None = None
    """Since when the new process is ready."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout."""

    name: str
    members: tuple[str, ...]
    spares: tuple[str, ...]
    patience_ms: int
    """How long a new process may take until it is ready, the end of the old one included."""
    settle_ms: int
    puts_back: bool
    stage: Stage = Stage.RAISE
    left: tuple[str, ...] = ()
    """The members that this stage has still to deal with."""
    watched: tuple[Watched, ...] = ()
    since_ms: int = 0
    """When the present step began."""
    replaced: tuple[str, ...] = ()
    problem: str = ""


class Raise(msgspec.Struct, frozen=True):
    """Start the spares."""

    ids: tuple[str, ...]


class Replace(msgspec.Struct, frozen=True):
    """Give these members a new process, with the new configuration."""

    ids: tuple[str, ...]


class PutBack(msgspec.Struct, frozen=True):
    """Give these members a new process, with the old configuration."""

    ids: tuple[str, ...]


class Lower(msgspec.Struct, frozen=True):
    """Remove the spares."""

    ids: tuple[str, ...]


class Finish(msgspec.Struct, frozen=True):
    """The rollout is over."""


Order = Raise | Replace | PutBack | Lower | Finish


class Turn(msgspec.Struct, frozen=True):
    """The rollout afterwards, what to do, and when to look again if nothing happens before."""

    rollout: Rollout
    orders: tuple[Order, ...] = ()
    look_at_ms: int | None = None


def begin(rollout: Rollout, now_ms: int) -> Turn:
    """Start the spares."""
    watched = tuple(Watched(id_, 0) for id_ in rollout.spares)
    begun = replace(rollout, left=rollout.members, watched=watched, since_ms=now_ms)
    return Turn(begun, (Raise(rollout.spares),))


def cancel(rollout: Rollout, problem: str, now_ms: int) -> Turn:
    """End it without putting anything back."""
    if rollout.stage in (Stage.LOWER, Stage.OVER):
        return Turn(rollout)
    return _lower(replace(rollout, problem=problem), now_ms)


def advance(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
    """The next step, if it is time for it."""
    match rollout.stage:
        case Stage.OVER:
            return Turn(rollout)
        case Stage.LOWER:
            if any(id_ in sights for id_ in rollout.spares):
                return Turn(rollout)
            return Turn(replace(rollout, stage=Stage.OVER), (Finish(),))
        case Stage.PUT_BACK:
            return _put_back(_seen(rollout, sights, now_ms), sights, now_ms)
        case Stage.RAISE | Stage.REPLACE:
            return _go_on(_seen(rollout, sights, now_ms), sights, now_ms)


def _seen(rollout: Rollout, sights: Sights, now_ms: int) -> Rollout:
    """With what is new about the processes that it waits for."""
    watched = tuple(_looked_at(each, sights.get(each.id), now_ms) for each in rollout.watched)
    return replace(rollout, watched=watched)


def _looked_at(watched: Watched, sight: Sight | None, now_ms: int) -> Watched:
    if sight is None or not sight.is_up or sight.generation <= watched.before:
        return watched
    if watched.first not in (None, sight.generation):
        return watched  # the new process has ended, and this is the one after it
    since = None
    if sight.is_ready:
        since = now_ms if watched.ready_ms is None else watched.ready_ms
    return replace(watched, first=sight.generation, ready_ms=since)


def _problem(rollout: Rollout, watched: Watched, sight: Sight | None, now_ms: int) -> str:
    """What is wrong with a new process, in words; empty if nothing is."""
    if sight is None:
        return f"{watched.id} was removed"
    is_new = sight.generation > watched.before
    has_died = is_new and sight.generation > (watched.first or sight.generation)
    # Also one that a pause, an order or a breaker keeps from continuing: it has not proved itself.
    has_ended = watched.first == sight.generation and not sight.is_up
    if has_died or has_ended or (is_new and (sight.is_dead or sight.is_down)):
        before = "before it was ready" if watched.ready_ms is None else "soon after it was ready"
        return f"the new process of {watched.id} ended {before}"
    if sight.is_down:
        return f"{watched.id} was stopped"
    if watched.ready_ms is None and now_ms >= rollout.since_ms + rollout.patience_ms:
        return f"the new process of {watched.id} is not ready after {rollout.patience_ms / 1000:g} s"
    return ""


def _go_on(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
    for each in rollout.watched:
        if problem := _problem(rollout, each, sights.get(each.id), now_ms):
            return _fail(rollout, problem, sights, now_ms)
    if any(each.ready_ms is None for each in rollout.watched):
        return Turn(rollout, (), rollout.since_ms + rollout.patience_ms)
    settled_ms = max((each.ready_ms or 0 for each in rollout.watched), default=0) + rollout.settle_ms
    if rollout.watched and now_ms < settled_ms:
        return Turn(rollout, (), settled_ms)
    if rollout.watched:
        done = tuple(each.id for each in rollout.watched if each.id in rollout.members)
        rollout = replace(rollout, watched=(), since_ms=now_ms, replaced=(*rollout.replaced, *done))
    if not rollout.left:
        return _lower(rollout, now_ms)
    return _replace_next(rollout, sights, now_ms)


def _replace_next(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
    """Replace the next members, once every spare can stand in for one of them."""
    unready = [id_ for id_ in rollout.spares if id_ not in sights or not sights[id_].is_ready]
    deadline = rollout.since_ms + rollout.patience_ms
    if unready and now_ms >= deadline:
        return _fail(rollout, f"the additional process {unready[0]} is not ready", sights, now_ms)
    if unready:
        return Turn(replace(rollout, stage=Stage.REPLACE), (), deadline)
    ids, rest = _batch(rollout, sights)
    watched = tuple(Watched(id_, sights[id_].generation) for id_ in ids if _runs(id_, sights))
    begun = replace(rollout, stage=Stage.REPLACE, left=rest, watched=watched, since_ms=now_ms)
    return Turn(begun, (Replace(ids),), now_ms + rollout.patience_ms)


def _fail(rollout: Rollout, problem: str, sights: Sights, now_ms: int) -> Turn:
    """End it: put back what was replaced, if that is possible."""
    under_way = tuple(each.id for each in rollout.watched if each.id in rollout.members)
    touched = (*under_way, *rollout.replaced)
    rollout = replace(rollout, problem=problem, watched=())
    if not rollout.puts_back or not touched:
        return _lower(rollout, now_ms)
    return _put_back(replace(rollout, stage=Stage.PUT_BACK, left=touched, replaced=()), sights, now_ms)


def _put_back(rollout: Rollout, sights: Sights, now_ms: int) -> Turn:
    """Put the next members back; one that does not become ready does not hold up the others."""
    deadline = rollout.since_ms + rollout.patience_ms
    waits = any(not _is_back(each, sights.get(each.id)) for each in rollout.watched)
    if waits and now_ms < deadline:
        return Turn(rollout, (), deadline)
    if not rollout.left:
        return _lower(rollout, now_ms)
    ids, rest = _batch(rollout, sights)
    watched = tuple(Watched(id_, sights[id_].generation) for id_ in ids if id_ in sights)
    begun = replace(rollout, left=rest, watched=watched, since_ms=now_ms)
    return Turn(begun, (PutBack(ids),), now_ms + rollout.patience_ms)


def _is_back(watched: Watched, sight: Sight | None) -> bool:
    return sight is None or sight.is_down or watched.ready_ms is not None


def _lower(rollout: Rollout, now_ms: int) -> Turn:
    over = replace(rollout, stage=Stage.LOWER, watched=(), left=(), since_ms=now_ms)
    return Turn(over, (Lower(rollout.spares),))


def _batch(rollout: Rollout, sights: Sights) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The next members, as many as there are spares, and those that come later; without removed ones."""
    there = tuple(id_ for id_ in rollout.left if id_ in sights)
    size = len(rollout.spares)
    return there[:size], there[size:]


def _runs(id_: str, sights: Sights) -> bool:
    """Whether it has a process or a pending restart: one that was stopped stays so."""
    return not sights[id_].is_down
