"""Pure: to whom a death is attributed, and whether it counts against the worker.

an operator's stop, a move, a drain ─▶ operator   not counted
the node was lost or fenced ─────────▶ node       not counted
the node was convicted meanwhile ────▶ node       refunded
an exit, a signal, a hang ───────────▶ worker     counted
no status is known ──────────────────▶ unknown    counted
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from ..facts.tenures import TenureEnd


class Fault(StrEnum):
    """Who is at fault for a death."""

    WORKER = "worker"
    NODE = "node"
    OPERATOR = "operator"
    UNKNOWN = "unknown"

    @property
    def counts(self) -> bool:
        """Whether it counts against the worker."""
        return self in (Fault.WORKER, Fault.UNKNOWN)


class Conviction(msgspec.Struct, frozen=True):
    """When a node was at fault."""

    node: str
    since_ms: int
    until_ms: int | None = None
    """None: it still is."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How one process ended."""

    node: str
    at_ms: int
    ordered: bool = False
    """An operator, a move or a drain stopped it."""
    how: TenureEnd | None = None
    """How its tenure ended, if it ended with the process."""
    has_status: bool = True


def fault(ending: Ending, convictions: Iterable[Conviction] = ()) -> Fault:
    """Who is at fault."""
    if ending.ordered:
        return Fault.OPERATOR
    if ending.how in (TenureEnd.LOST, TenureEnd.FENCED):
        return Fault.NODE
    if any(_covers(each, ending) for each in convictions):
        return Fault.NODE
    return Fault.WORKER if ending.has_status else Fault.UNKNOWN


def _covers(conviction: Conviction, ending: Ending) -> bool:
    is_over = conviction.until_ms is not None and ending.at_ms > conviction.until_ms
    return conviction.node == ending.node and ending.at_ms >= conviction.since_ms and not is_over


def sentence(
    endings: Iterable[Ending], convictions: Iterable[Conviction], names: dict[str, str]
) -> str | None:
    """How many deaths were a node's fault, for `explain`; None if none was."""
    known = tuple(convictions)
    listed = [(each, fault(each, known)) for each in endings]
    guilty = [each.node for each, who in listed if who is Fault.NODE]
    if not guilty:
        return None
    nodes = " and ".join(sorted({names.get(node, node) for node in guilty}))
    return f"{len(guilty)} of its {len(listed)} deaths were the fault of {nodes}"
