"""The tables of a cluster as typed models; `models` loads them."""

from __future__ import annotations

from sqlalchemy.orm import Mapped

from . import cluster_tables
from .row_base import Model


class NodeRow(Model):
    """One machine with an agent."""

    __table__ = cluster_tables.NODE

    id: Mapped[str]
    name: Mapped[str]
    address: Mapped[str]
    boot_id: Mapped[str]
    life: Mapped[str]
    version: Mapped[str]
    labels: Mapped[str]
    capacity: Mapped[str]
    engine_node: Mapped[str]
    state: Mapped[str]
    state_reason: Mapped[str]
    state_by: Mapped[str]
    held: Mapped[str]
    incarnation: Mapped[int]
    renewals: Mapped[int]
    lease_until_ms: Mapped[int]
    testified_at_wall_ms: Mapped[int]
    members: Mapped[str]
    drain_until_ms: Mapped[int | None]
    run: Mapped[str]


class WishRow(Model):
    """A worker that the cluster should run."""

    __table__ = cluster_tables.WISH

    component_id: Mapped[str]
    group_name: Mapped[str]
    spec: Mapped[str]
    place: Mapped[str]
    wanted: Mapped[str]
    revision: Mapped[int]
    pinned: Mapped[str | None]
    min_healthy: Mapped[int | None]
    once: Mapped[int]
    unit: Mapped[str]
    beside: Mapped[str]
    after: Mapped[str]


class AssignmentRow(Model):
    """Where a worker runs, and under which epoch."""

    __table__ = cluster_tables.ASSIGNMENT

    component_id: Mapped[str]
    epoch: Mapped[int]
    node_id: Mapped[str | None]
    phase: Mapped[str]
    reason: Mapped[str]
    since_ms: Mapped[int]
    target: Mapped[str | None]
    refused: Mapped[str]


class TenureRow(Model):
    """What happened to a worker on one node under one epoch."""

    __table__ = cluster_tables.TENURE

    component_id: Mapped[str]
    epoch: Mapped[int]
    node_id: Mapped[str]
    began_ms: Mapped[int]
    ended_ms: Mapped[int | None]
    how: Mapped[str | None]
    restarts: Mapped[int]
    streak: Mapped[int]
    last_restart_ms: Mapped[int | None]
    recent_deaths_ms: Mapped[str]
    failed_at_wall_ms: Mapped[int | None]
    failure_reason: Mapped[str | None]
    refunded: Mapped[int]
    reset_at_wall_ms: Mapped[int | None]
    last_generation: Mapped[int]
    noted: Mapped[int]
    lifted_ms: Mapped[int | None]
    ready_ms: Mapped[int | None]
    done_ms: Mapped[int | None]
    timetable: Mapped[str | None]


class ShippedEventRow(Model):
    """One event of the journal of a node."""

    __table__ = cluster_tables.SHIPPED_EVENT

    node_id: Mapped[str]
    number: Mapped[int]
    at_wall_ms: Mapped[int]
    type: Mapped[str]
    component_id: Mapped[str | None]
    payload: Mapped[str]


class NodeLifeRow(Model):
    """A process of a worker on a node, and how it ended."""

    __table__ = cluster_tables.NODE_LIFE

    node_id: Mapped[str]
    component_id: Mapped[str]
    generation: Mapped[int]
    epoch: Mapped[int]
    began_ms: Mapped[int]
    ended_ms: Mapped[int | None]
    cause: Mapped[str]
    fault: Mapped[str | None]
    counted: Mapped[int]
    died: Mapped[int]
    is_hard: Mapped[int]


class RulingRow(Model):
    """A change of the case of a node that workers die on."""

    __table__ = cluster_tables.RULING

    node_id: Mapped[str]
    number: Mapped[int]
    at_ms: Mapped[int]
    kind: Mapped[str]
    why: Mapped[str]
    given_by: Mapped[str]
    body: Mapped[str]


class OrderRow(Model):
    """An order to a worker, given on another node than the worker's."""

    __table__ = cluster_tables.ORDER

    id: Mapped[str]
    component_id: Mapped[str]
    node_id: Mapped[str]
    from_node: Mapped[str]
    action: Mapped[str]
    arguments: Mapped[str]
    given_by: Mapped[str]
    given_ms: Mapped[int]
    until_ms: Mapped[int]
    state: Mapped[str]
    result: Mapped[str]
    ended_ms: Mapped[int | None]


class NodeReportRow(Model):
    """What a node says of its workers."""

    __table__ = cluster_tables.NODE_REPORT

    node_id: Mapped[str]
    at_ms: Mapped[int]
    written_ms: Mapped[int]
    report: Mapped[str]
