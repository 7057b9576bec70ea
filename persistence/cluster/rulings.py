"""Gives rulings on nodes, and attributes the deaths on convicted ones."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, Row

from rekindle.actors.cluster.facts.cases import (
    OWN_STATES,
    Case,
    GiveRuling,
    KeptRuling,
    Overrule,
    Suspect,
    state_under,
)
from rekindle.actors.cluster.facts.node_lives import Fault, NodeLife
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.rules.suspects.attribution import convictions
from rekindle.actors.cluster.rules.suspects.suspicion import lives_since_ms, overruled

from . import cluster_sql as sql
from .cluster_rows import Values

_EVERY_STATE = [state.value for state in NodeState]
_OWN = [state.value for state in OWN_STATES]


def give(connection: Connection, change: GiveRuling) -> bool:
    """Give the next ruling on a node; False: another one was given, or the node is no longer up."""
    connection.execute(sql.LOCK_NODE, {"id": change.node_id})
    begins = isinstance(change.case, Suspect)
    values = {
        **_ruling(change.node_id, change.case, change.why, ""),
        "number": change.number,
        "only_from": [NodeState.UP.value] if begins else _EVERY_STATE,
    }
    if not connection.execute(sql.GIVE_RULING, values).all():
        return False
    _set_state(connection, change.node_id, change.case, change.why)
    attribute(connection, change.node_id)
    return True


def overrule(connection: Connection, change: Overrule) -> bool:
    """Close the case of a node in an operator's name; False: there is no such node."""
    row = connection.execute(sql.LOCK_NODE, {"id": change.node_id}).first()
    if row is None:
        return False
    case, why = overruled(row.now_ms / 1000), "an operator has uncordoned it"
    connection.execute(sql.OVERRULE, _ruling(change.node_id, case, why, change.by))
    _set_state(connection, change.node_id, case, "")
    return True


def attribute(connection: Connection, node_id: str) -> None:
    """Refund the deaths on a node, if it was convicted for their time."""
    rows = connection.execute(sql.RULINGS_OF, {"node_id": node_id}).all()
    for each in convictions(map(ruling, rows)):
        values = {"node_id": node_id, "since_ms": each.since_ms, "until_ms": each.until_ms}
        blamed = connection.execute(sql.BLAME_NODE, values).all()
        for component_id, epoch in sorted({(row.component_id, row.epoch) for row in blamed}):
            connection.execute(sql.LOCK_WORKER, {"component_id": component_id})
            connection.execute(sql.REFUND, {"component_id": component_id, "epoch": epoch, "node_id": node_id})


def recent_lives(
    connection: Connection, rulings: tuple[KeptRuling, ...], now_ms: int
) -> tuple[NodeLife, ...]:
    """The lives by which suspicions are judged now."""
    since_ms = lives_since_ms((each.case for each in rulings), now_ms)
    return tuple(map(life, connection.execute(sql.RECENT_LIVES, {"since_ms": since_ms})))


def ruling(row: Row[tuple[object, ...]]) -> KeptRuling:
    """A row of `rekindle_ruling`."""
    found = row._mapping
    return KeptRuling(
        node_id=found["node_id"],
        number=found["number"],
        at_ms=found["at_ms"],
        case=msgspec.json.decode(found["body"], type=Case),
        why=found["why"],
        given_by=found["given_by"],
    )


def life(row: Row[tuple[object, ...]]) -> NodeLife:
    """A row of `rekindle_node_life`."""
    found = dict(row._mapping)
    fault = found["fault"]
    return NodeLife(
        **{
            **{name: found[name] for name in NodeLife.__struct_fields__},
            "fault": None if fault is None else Fault(fault),
            "counted": bool(found["counted"]),
            "died": bool(found["died"]),
            "is_hard": bool(found["is_hard"]),
        }
    )


def _ruling(node_id: str, case: Case, why: str, by: str) -> Values:
    body = msgspec.json.encode(case).decode()
    kind = str(case.__struct_config__.tag)
    return {"node_id": node_id, "kind": kind, "why": why, "given_by": by, "body": body}


def _set_state(connection: Connection, node_id: str, case: Case, why: str) -> None:
    state = state_under(case)
    reason = "" if state is NodeState.UP else why
    values = {"node_id": node_id, "state": state.value, "reason": reason, "own": _OWN}
    connection.execute(sql.SET_CASE_STATE, values)
