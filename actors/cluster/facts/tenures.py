"""Pure: where a worker runs, under which epoch, and what happened to it there.

    unplaced ─ place (new epoch) ─▶ placed ─ begin release ─▶ releasing ─ its agent has stopped it ─▶ unplaced
        ▲                             │                           │
        └───────── its node is lost, or its agent says that it cannot run it ────────┘

A release is never taken back: the worker may return to the same node, but under a new epoch. So an agent
that has ended an epoch never starts it again, whatever an old answer says.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec


class TenurePhase(StrEnum):
    """How far an assignment is."""

    UNPLACED = "unplaced"
    PLACED = "placed"
    RELEASING = "releasing"


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_assignment`."""

    component_id: str
    epoch: int = 0
    """Grows with each placement: `rules.fencing_tokens.next_epoch`."""
    node_id: str | None = None
    phase: TenurePhase = TenurePhase.UNPLACED
    reason: str = ""
    """Why it is there, is leaving, or is unplaced."""
    since_ms: int = 0
    target: str | None = None
    """The node where it should go next, if an operator chose one."""
    refused: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """By node: why it cannot run the worker. A changed wish clears it."""


class TenureEnd(StrEnum):
    """How the time of a worker on a node ended."""

    RELEASED = "released"
    LOST = "lost"
    FENCED = "fenced"
    """The lease of its node ended while it ran; the agent or the guardian killed it."""


class Tenure(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_tenure`: a worker on one node under one epoch; written by the holder of the epoch.

    The counters are those of this tenure alone; `rules.tenure_counters` adds them up.
    """

    component_id: str
    epoch: int
    node_id: str
    began_ms: int = 0
    ended_ms: int | None = None
    how: TenureEnd | None = None
    restarts: int = 0
    """Restarts that were decided and counted in this tenure."""
    streak: int = 0
    """The streak at its end, the former tenures' part included: it is handed on, not added up."""
    last_restart_ms: int | None = None
    recent_deaths_ms: tuple[int, ...] = ()
    failed_at_wall_ms: int | None = None
    failure_reason: str | None = None
    refunded: int = 0
    """Restarts that were the node's fault and do not count against the worker."""
    lifted_ms: int | None = None
    """When its failure was found to be the node's fault: it does not go with the worker."""
    reset_at_wall_ms: int | None = None
    """When an operator reset the counters; what older tenures counted is void."""
    last_generation: int = 0
    ready_ms: int | None = None
    """When the worker was healthy for the first time under this epoch."""
    done_ms: int | None = None
    """When the task ended well."""
    timetable: str | None = None
    """The timetable of its schedule, as the journal of the node has it: it is handed on."""
    noted: int = 0
    """How far in the journal of its node: later news of one tenure have a greater number."""
