"""Pure: the past of a worker on all nodes, as one history and one timeline.

    the node that runs it, or this one ─▶ what it answers now
    every other node                   ─▶ what it has sent to the database
                                       ─▶ merged by time, each entry with its node

Times are those of the nodes' own clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ...facts.records import DeathRecord, EventRecord, Lives
from ...messages import WorkerDied
from ...messages.event_json import event_type
from ...views.timeline import Failures, Timeline, TimelineSources, failures, timeline
from ..facts.shipped_events import ShippedEvent, ShippedPast

DIED = event_type(WorkerDied)


def deaths_of(events: Iterable[ShippedEvent], names: Mapping[str, str]) -> tuple[DeathRecord, ...]:
    """The deaths among the events, with the names of their nodes."""
    found = (_death(each.record, names.get(each.node_id, each.node_id)) for each in events)
    return tuple(death for death in found if death is not None)


def _death(record: EventRecord, node: str) -> DeathRecord | None:
    if record.type != DIED:
        return None
    fields = msgspec.json.decode(record.payload)
    known = {name: fields[name] for name in DeathRecord.__struct_fields__ if name in fields}
    known |= {"component_id": record.component_id, "died_at_wall_ms": record.at_wall_ms, "node": node}
    try:
        return msgspec.convert(known, DeathRecord)
    except msgspec.ValidationError:  # another version wrote it
        return None


def on_node(deaths: Iterable[DeathRecord], node: str) -> tuple[DeathRecord, ...]:
    """The same deaths with the name of their node."""
    return tuple(replace(death, node=node) for death in deaths)


def newest(deaths: Iterable[DeathRecord], limit: int) -> tuple[DeathRecord, ...]:
    """The latest ones, newest first."""
    return tuple(sorted(deaths, key=lambda each: -each.died_at_wall_ms)[:limit])


def timeline_of_all(
    component_id: str,
    live: Iterable[tuple[str, Timeline]],
    past: ShippedPast,
    names: Mapping[str, str],
    limit: int,
) -> Timeline:
    """One timeline; `live` has what nodes answer now, by their names."""
    parts = [_named(found, node) for node, found in live]
    for node_id in sorted({*past.lives, *(each.node_id for each in past.events)}):
        records = tuple(each.record for each in past.events if each.node_id == node_id)
        known = TimelineSources(own=records, lives=past.lives.get(node_id, Lives()))
        made = timeline(component_id, known, limit=limit)
        parts.append(_named(made, names.get(node_id, node_id)))
    entries = sorted((entry for each in parts for entry in each.entries), key=lambda each: -each.at_wall_ms)
    return Timeline(
        id=component_id,
        entries=tuple(entries[:limit]),
        shown=_sum(each.shown for each in parts),
        ever=_sum(each.ever for each in parts),
        more=len(entries) > limit or any(each.more for each in parts),
    )


def _named(found: Timeline, node: str) -> Timeline:
    return replace(found, entries=tuple(replace(entry, node=node) for entry in found.entries))


def _sum(parts: Iterable[Failures]) -> Failures:
    counted = [each for each in parts if each.mean_between_ms is not None]
    uptime_ms = sum(each.deaths * (each.mean_between_ms or 0) for each in counted)
    return failures(Lives(sum(each.deaths for each in counted), uptime_ms))


# ── where it is known from ───────────────────────────────────────────────────────────────


def from_node(node: str) -> str:
    """The node of the worker has answered."""
    return f"{node}, which runs it, has answered."


def from_before(node: str | None, why: str) -> str:
    """It has not; `node` is None if the worker has none."""
    where = "It has no node now" if node is None else f"{node}, its node, does not answer ({why})"
    return f"{where}: this is what the nodes sent to the database before."


def from_here(node: str, why: str) -> str:
    """The database does not answer."""
    return f"The other nodes cannot be asked ({why}): this is what {node} has on record."
