"""Pure: to whom a death is attributed, and whether it counts against the worker.

an operator's stop, a move, a drain ─▶ operator   not counted
the node was lost or fenced ─────────▶ node       not counted
the node was convicted meanwhile ────▶ node       refunded
an exit, a signal, a hang ───────────▶ worker     counted
no status is known ──────────────────▶ unknown    counted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ...facts.cases import Convicted, KeptRuling
from ...facts.node_lives import Fault, NodeLife
from ...facts.tenures import TenureEnd


class Conviction(msgspec.Struct, frozen=True):
    """When a node was at fault."""

    node: str
    since_ms: int
    until_ms: int | None = None
    """None: it still is."""


class ProcessEnding(msgspec.Struct, frozen=True, kw_only=True):
    """How one process ended."""

    node: str
    at_ms: int
    ordered: bool = False
    """An operator, a move or a drain stopped it."""
    how: TenureEnd | None = None
    """How its tenure ended, if it ended with the process."""
    has_status: bool = True


def fault(ending: ProcessEnding, convictions: Iterable[Conviction] = ()) -> Fault:
    """Who is at fault."""
    if ending.ordered:
        return Fault.OPERATOR
    if ending.how in (TenureEnd.LOST, TenureEnd.FENCED):
        return Fault.NODE
    if any(_covers(each, ending) for each in convictions):
        return Fault.NODE
    return Fault.WORKER if ending.has_status else Fault.UNKNOWN


def convictions(rulings: Iterable[KeptRuling]) -> tuple[Conviction, ...]:
    """When a node was at fault; its rulings in their order.

    It is at fault from the first death that convicted it until the next ruling: its parole, or an operator's.
    """
    found: list[Conviction] = []
    for ruling in rulings:
        if found and found[-1].until_ms is None:
            found[-1] = replace(found[-1], until_ms=ruling.at_ms)
        if isinstance(ruling.case, Convicted):
            found.append(Conviction(ruling.node_id, round(ruling.case.guilty_since * 1000)))
    return tuple(found)


def _covers(conviction: Conviction, ending: ProcessEnding) -> bool:
    is_over = conviction.until_ms is not None and ending.at_ms > conviction.until_ms
    return conviction.node == ending.node and ending.at_ms >= conviction.since_ms and not is_over


def sentence(lives: Iterable[NodeLife], names: Mapping[str, str]) -> str | None:
    """How many deaths of a worker were a node's fault, for `explain`; None if none was."""
    dead = [life for life in lives if life.died]
    guilty = [life.node_id for life in dead if life.fault is Fault.NODE]
    if not guilty:
        return None
    nodes = " and ".join(sorted({names.get(node, node) for node in guilty}))
    return f"{len(guilty)} of its {len(dead)} deaths were the fault of {nodes}"
