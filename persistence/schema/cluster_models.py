"""The tables of a cluster as ORM models; `models` loads them."""

from __future__ import annotations

from . import cluster_tables
from .row_base import Model


class NodeRow(Model):
    """One machine with an agent."""

    __table__ = cluster_tables.NODE


class WishRow(Model):
    """A worker that the cluster should run."""

    __table__ = cluster_tables.WISH


class AssignmentRow(Model):
    """Where a worker runs, and under which epoch."""

    __table__ = cluster_tables.ASSIGNMENT


class TenureRow(Model):
    """What happened to a worker on one node under one epoch."""

    __table__ = cluster_tables.TENURE


class ShippedEventRow(Model):
    """One event of the journal of a node."""

    __table__ = cluster_tables.SHIPPED_EVENT


class NodeLifeRow(Model):
    """A process of a worker on a node, and how it ended."""

    __table__ = cluster_tables.NODE_LIFE


class RulingRow(Model):
    """A change of the case of a node that workers die on."""

    __table__ = cluster_tables.RULING


class OrderRow(Model):
    """An order to a worker, given on another node than the worker's."""

    __table__ = cluster_tables.ORDER


class NodeReportRow(Model):
    """What a node says of its workers."""

    __table__ = cluster_tables.NODE_REPORT
