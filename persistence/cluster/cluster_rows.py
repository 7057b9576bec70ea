"""Rows of the cluster's tables as facts, and facts as values of statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec
from sqlalchemy import Row

from rekindle.actors.cluster.facts.node_lives import NodeLife
from rekindle.actors.cluster.facts.nodes import Node, NodeState, Resources
from rekindle.actors.cluster.facts.tenures import Assignment, Tenure, TenureEnd, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wanted, Wish
from rekindle.actors.facts.records import EventRecord
from rekindle.actors.spec.deployment.place_policy import OnPartition, PlacePolicy
from rekindle.actors.spec.worker_spec import Until

Values = dict[str, Any]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _read(text: str) -> Any:
    return msgspec.json.decode(text)


def known(row: Row[Any], kind: type[msgspec.Struct]) -> Values:
    """The columns that this version knows: the tables may be those of a newer one."""
    return {name: value for name, value in row._mapping.items() if name in kind.__struct_fields__}


def node(row: Row[Any]) -> Node:
    """A row of `rekindle_node`."""
    found = known(row, Node)
    return Node(
        **{
            **found,
            "labels": _read(found["labels"]),
            "capacity": Resources(amounts=_read(found["capacity"])),
            "members": tuple(_read(found["members"])),
            "state": NodeState(found["state"]),
            "held": NodeState(found["held"]),
        }
    )


def described(machine: Node) -> Values:
    """What an agent says of its own machine."""
    return {
        "id": machine.id,
        "name": machine.name,
        "address": machine.address,
        "boot_id": machine.boot_id,
        "version": machine.version,
        "labels": _json(dict(machine.labels)),
        "capacity": _json(dict(machine.capacity.amounts)),
        "engine_node": machine.engine_node,
        "run": machine.run,
    }


def assignment(row: Row[Any]) -> Assignment:
    """A row of `rekindle_assignment`."""
    found = known(row, Assignment)
    return Assignment(**{**found, "phase": TenurePhase(found["phase"]), "refused": _read(found["refused"])})


def wish(row: Row[Any]) -> Wish:
    """A row of `rekindle_wish`."""
    found = dict(row._mapping)
    return Wish(
        component_id=found["component_id"],
        group=found["group_name"],
        spec=found["spec"],
        place=_place(_read(found["place"])),
        wanted=Wanted(found["wanted"]),
        revision=found["revision"],
        pinned=found["pinned"],
        min_healthy=found["min_healthy"],
        once=bool(found["once"]),
        unit=found["unit"],
        beside=tuple(_read(found["beside"])),
        after={id_: Until(state) for id_, state in _read(found["after"]).items()},
    )


def wish_values(wanted: Wish) -> Values:
    """The values of a wish."""
    return {
        "component_id": wanted.component_id,
        "group_name": wanted.group,
        "spec": wanted.spec,
        "place": _json({field.name: _plain(getattr(wanted.place, field.name)) for field in _PLACE}),
        "wanted": wanted.wanted.value,
        "pinned": wanted.pinned,
        "min_healthy": wanted.min_healthy,
        "once": int(wanted.once),
        "unit": wanted.unit,
        "beside": _json(wanted.beside),
        "after": _json(dict(wanted.after)),
    }


_PLACE = fields(PlacePolicy)


def _place(stored: Values) -> PlacePolicy:
    words = {"apart_from": tuple(stored["apart_from"]), "on_partition": OnPartition(stored["on_partition"])}
    known = {field.name: stored[field.name] for field in _PLACE if field.name in stored}
    return PlacePolicy(**{**known, **words})


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def tenure(row: Row[Any]) -> Tenure:
    """A row of `rekindle_tenure`."""
    found = known(row, Tenure)
    how = found["how"]
    return Tenure(
        **{
            **found,
            "how": None if how is None else TenureEnd(how),
            "recent_deaths_ms": tuple(_read(found["recent_deaths_ms"])),
        }
    )


def tenure_values(kept: Tenure) -> Values:
    """The values of a tenure."""
    return {
        **msgspec.structs.asdict(kept),
        "how": None if kept.how is None else kept.how.value,
        "recent_deaths_ms": _json(kept.recent_deaths_ms),
    }


def event_values(node_id: str, record: EventRecord) -> Values:
    """The values of a shipped event."""
    return {
        "node_id": node_id,
        "number": record.id,
        "at_wall_ms": record.at_wall_ms,
        "type": record.type,
        "component_id": record.component_id,
        "payload": record.payload,
    }


def life_values(life: NodeLife, shift_ms: int) -> Values:
    """The values of a life; `shift_ms` is how far the clock of the database is ahead of the node's."""
    return {
        **msgspec.structs.asdict(life),
        "fault": None if life.fault is None else life.fault.value,
        "counted": int(life.counted),
        "died": int(life.died),
        "is_hard": int(life.is_hard),
        "shift_ms": shift_ms,
    }
