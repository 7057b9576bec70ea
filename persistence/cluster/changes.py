"""Tries each change of a cluster, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Row, TextClause

from rekindle.actors.cluster.cluster_messages import (
    BeginRelease,
    Change,
    Changed,
    DeclareLost,
    GiveBack,
    KeepTenure,
    NoteUnplaced,
    PlaceWorker,
    PutWish,
    RemoveWish,
    SetNodeState,
    WantWorker,
)
from rekindle.actors.cluster.facts.cases import GiveRuling, Overrule
from rekindle.actors.cluster.facts.tenures import Tenure
from rekindle.actors.cluster.rules.tenure_counters import late_restarts, merged

from . import cluster_sql as sql
from . import rulings
from .cluster_rows import Values, assignment, tenure, tenure_values, wish_values
from .orphaned_claims import release_orphaned


def apply(connection: Connection, change: Change) -> Changed:
    """Try one change inside the open transaction; it changes nothing if its guards do not hold."""
    match change:
        case DeclareLost():
            return _declare_lost(connection, change)
        case GiveBack():
            return _give_back(connection, change)
        case KeepTenure(tenure=news):
            return Changed(change=change, applied=True, late=keep_tenure(connection, news))
        case PutWish(wish=wanted):
            connection.execute(sql.PUT_WISH, wish_values(wanted))
            id_ = {"component_id": wanted.component_id}
            added = [] if wanted.is_template else connection.execute(sql.ADD_ASSIGNMENT, id_).all()
            return _changed(change, added, applied=True)
        case RemoveWish(component_id=id_):
            gone = connection.execute(sql.REMOVE_WISH, {"component_id": id_}).all()
            connection.execute(sql.UNPLACE_REMOVED, {"component_id": id_})
            return Changed(change=change, applied=bool(gone))
        case SetNodeState():
            # Before the statement that looks at what is placed there: it must see what was placed until now.
            connection.execute(sql.LOCK_NODE, {"id": change.node_id})
            values = {**_values(change), "only_from": [state.value for state in change.only_from]}
            found = connection.execute(sql.SET_NODE_STATE, {**values, "state": change.state.value}).all()
            return Changed(change=change, applied=bool(found))
        case GiveRuling():
            return Changed(change=change, applied=rulings.give(connection, change))
        case Overrule():
            return Changed(change=change, applied=rulings.overrule(connection, change))
        case WantWorker(component_id=id_, wanted=wanted_now):
            values = {"component_id": id_, "wanted": wanted_now.value}
            return Changed(change=change, applied=bool(connection.execute(sql.WANT_WORKER, values).all()))
        case PlaceWorker() | BeginRelease() | NoteUnplaced():
            rows = connection.execute(_GUARDED[type(change)], _values(change)).all()
            return _changed(change, rows, applied=bool(rows))


_GUARDED: dict[type[Change], TextClause] = {
    PlaceWorker: sql.PLACE_WORKER,
    BeginRelease: sql.BEGIN_RELEASE,
    NoteUnplaced: sql.NOTE_UNPLACED,
}


def keep_tenure(connection: Connection, news: Tenure) -> int:
    """Merge news of a tenure into its row, which has one author but may hear of it in another order.

    Returns how many restarts are added to a tenure that its node has lost.
    """
    connection.execute(sql.LOCK_WORKER, {"component_id": news.component_id})
    key = {"component_id": news.component_id, "epoch": news.epoch}
    row = connection.execute(sql.READ_TENURE, key).first()
    before = None if row is None else tenure(row)
    after = merged(before, news)
    connection.execute(sql.KEEP_TENURE, tenure_values(after))
    if after.done_ms is not None and (before is None or before.done_ms is None):
        connection.execute(sql.TASK_IS_DONE, key)
    return late_restarts(before, after)


def _declare_lost(connection: Connection, change: DeclareLost) -> Changed:
    if not connection.execute(sql.DECLARE_LOST, _values(change)).all():
        return Changed(change=change, applied=False)
    node_id = {"node_id": change.node_id}
    freed = connection.execute(sql.FREE_ASSIGNMENTS, {**node_id, "reason": change.reason}).all()
    connection.execute(sql.END_TENURES, node_id)
    release_orphaned(connection)
    return _changed(change, freed, applied=True)


def _give_back(connection: Connection, change: GiveBack) -> Changed:
    values = {
        "component_id": change.component_id,
        "epoch": change.epoch,
        "node_id": change.node_id,
        "reason": change.reason,
        "refused": change.refused,
    }
    freed = connection.execute(sql.GIVE_BACK, values).all()
    if freed:
        keep_tenure(connection, change.tenure)
    return _changed(change, freed, applied=bool(freed))


def _changed(change: Change, rows: Iterable[Row[tuple[object, ...]]], *, applied: bool) -> Changed:
    return Changed(change=change, applied=applied, assignments=tuple(map(assignment, rows)))


def _values(change: Change) -> Values:
    return {name: getattr(change, name) for name in change.__struct_fields__}
