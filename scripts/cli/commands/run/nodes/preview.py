"""What follows from changes of wishes, before they are made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rekindle.actors.cluster.cluster_messages import Change, ClusterRead
    from rekindle.actors.cluster.facts.wishes import Wish
    from rekindle.actors.cluster.rules.fleet import Fleet


class PlacementPreview(NamedTuple):
    """What becomes of one worker."""

    component_id: str
    what: str
    """`placed`, `unplaced`, `restarted`, `stays` or `stopped`."""
    node: str | None
    why: str


def preview(read: ClusterRead, changes: Iterable[Change]) -> tuple[PlacementPreview, ...]:
    """What a coordinator does next if these changes are made, as the cluster is now."""
    from rekindle.actors.cluster.rules.fleet import fleet
    from rekindle.actors.cluster.rules.placement import copies, plan

    before = fleet(read)
    after = _with_wishes(before, changes)
    for _ in range(2):  # copies of a worker of every node: first put or ended, then taken away
        after = _without_gone(_with_copies(after, copies(after)))
    planned = plan(after)
    places = (
        PlacementPreview(each.component_id, "placed", _name(after, each.node_id), each.reason)
        for each in planned.places
    )
    homeless = (
        PlacementPreview(each.component_id, "unplaced", None, each.reason) for each in planned.unplaced
    )
    found = (*_ended(before, after), *_restarted(before, after), *places, *homeless)
    return tuple(sorted(found, key=lambda each: each.component_id))


def _with_wishes(found: Fleet, changes: Iterable[Change]) -> Fleet:
    from msgspec.structs import replace

    from rekindle.actors.cluster.cluster_messages import PutWish, WantWorker

    wishes = dict(found.wishes)
    for change in changes:
        match change:
            case PutWish(wish=wish):
                wishes[wish.component_id] = wish
            case WantWorker(component_id=id_, wanted=wanted):
                wishes[id_] = replace(wishes[id_], wanted=wanted)
            case _:
                raise AssertionError(change)
    changed = {id_ for id_, wish in wishes.items() if found.wishes.get(id_) != wish}
    return _without_gone(_with_rows(replace(found, wishes=wishes), changed))


def _with_copies(found: Fleet, copies: Iterable[Wish]) -> Fleet:
    from msgspec.structs import replace

    put = {wish.component_id: wish for wish in copies}
    return _with_rows(replace(found, wishes={**found.wishes, **put}), put.keys())


def _with_rows(found: Fleet, changed: Iterable[str]) -> Fleet:
    """What the store does with a wish that is put: it has an assignment, and no refusals."""
    from msgspec.structs import replace

    from rekindle.actors.cluster.facts.tenures import Assignment

    rows = dict(found.assignments)
    for id_ in changed:
        if not found.wishes[id_].is_template:
            rows[id_] = replace(rows.get(id_, Assignment(component_id=id_)), refused={})
    return replace(found, assignments=rows)


def _without_gone(found: Fleet) -> Fleet:
    from msgspec.structs import replace

    from rekindle.actors.cluster.facts.wishes import Wanted

    gone = {id_ for id_, wish in found.wishes.items() if wish.wanted is Wanted.GONE}
    return replace(
        found,
        wishes={id_: wish for id_, wish in found.wishes.items() if id_ not in gone},
        assignments={id_: each for id_, each in found.assignments.items() if id_ not in gone},
    )


def _ended(before: Fleet, after: Fleet) -> Iterable[PlacementPreview]:
    for id_, each in before.assignments.items():
        if id_ not in after.assignments and each.node_id is not None:
            yield PlacementPreview(id_, "stopped", _name(before, each.node_id), "the file does not have it")


def _restarted(before: Fleet, after: Fleet) -> Iterable[PlacementPreview]:
    for id_, each in after.assignments.items():
        known, wish = before.wishes.get(id_), after.wishes[id_]
        if known is None or each.node_id is None:
            continue
        name = _name(after, each.node_id)
        if known.spec != wish.spec:
            yield PlacementPreview(id_, "restarted", name, "its settings changed")
        elif (known.place, known.min_healthy) != (wish.place, wish.min_healthy):
            yield PlacementPreview(id_, "stays", name, "only its place changed: a worker stays where it is")


def _name(found: Fleet, node_id: str) -> str:
    node = found.nodes.get(node_id)
    return node_id if node is None else node.name
