"""What a node answers about workers of other nodes.

a state, output, evidence ─▶ asked of the node that runs the worker; refused if that does not answer
explanation               ─▶ the same, or what the node has said before
history, timeline         ─▶ the same, merged with what all other nodes have sent of their journals
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from rekindle.actors import RekindleError, RequestRefusedError, UnknownWorkerError
from rekindle.actors.cluster.facts.looks import ClusterLook
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.shipped_events import ShippedPast
from rekindle.actors.cluster.facts.tenures import Assignment
from rekindle.actors.cluster.views import shipped_history as shipped
from rekindle.actors.errors import StoreError
from rekindle.actors.messages import WorkerStatus
from rekindle.actors.views.diagnosis import WorkerDiagnosis, diagnosis
from rekindle.actors.views.explanation import explain
from rekindle.actors.views.timeline import Timeline
from rekindle.actors.views.worker_history import WorkerHistory

from .node_link import NodeLink
from .order_desk import OrderDesk


class Whereabouts(msgspec.Struct, frozen=True):
    """Where a worker is, as far as this node has heard."""

    look: ClusterLook
    age_s: float
    assignment: Assignment | None = None
    """None: the cluster does not know the worker now."""

    @property
    def node(self) -> Node | None:
        """Its node."""
        wanted = None if self.assignment is None else self.assignment.node_id
        return next((node for node in self.look.nodes if node.id == wanted), None)

    @property
    def names(self) -> dict[str, str]:
        """The names of the nodes, by id."""
        return {node.id: node.name for node in self.look.nodes}

    def why_silent(self) -> str | None:
        """Why the node of the worker cannot be asked; None if it can."""
        if self.assignment is None or self.node is None:
            return "" if self.assignment is None else self.assignment.reason
        if not self.node.state.is_member:
            return f"it is {self.node.state.value}"
        left_ms = self.node.lease_until_ms - self.look.now_ms - self.age_s * 1000
        return None if left_ms > 0 else "its lease is over"


class RemoteLooks:
    """Asks other nodes, and reads what they have sent."""

    def __init__(self, own: Node, link: NodeLink, orders: OrderDesk) -> None:
        self._own, self._link, self._orders = own, link, orders

    def ask(self, where: Whereabouts, component_id: str, view: str, **arguments: Any) -> Any:
        """The answer of the node that runs a worker.

        Raises:
            RequestRefusedError: it has no node, or that does not answer.
            UnknownWorkerError: it has moved, or is not known.
        """
        node, why = where.node, where.why_silent()
        if node is None:
            raise RequestRefusedError(f"{component_id} runs on no node now: {why}")
        if node.id == self._own.id:
            raise RequestRefusedError(f"{component_id} is on its way to {node.name}; try again")
        if why is not None:
            raise RequestRefusedError(
                f"{component_id} runs on node {node.name}, which does not answer: {why}"
            )
        try:
            return self._orders.look(node, component_id, view, arguments)
        except StoreError as error:
            raise RequestRefusedError(
                f"{component_id} runs on node {node.name}, which cannot be asked: {error}"
            ) from None

    def diagnose(self, where: Whereabouts, worker: WorkerStatus) -> WorkerDiagnosis:
        """The state of a worker elsewhere."""
        id_, source = worker.component_id, ""
        try:
            found: WorkerDiagnosis = self.ask(where, id_, "diagnose")
        except (RekindleError, UnknownWorkerError) as error:
            deaths = self._past_deaths(where, id_, limit=1)
            source = self._before(where, error)
            found = diagnosis(worker, explain(worker, deaths), deaths[0] if deaths else None)
        else:
            assert where.node is not None
            source = shipped.from_node(where.node.name)
        return replace(found, source=source, text=f"{found.text}\n{source}")

    def history(self, where: Whereabouts, component_id: str, limit: int, own: WorkerHistory) -> WorkerHistory:
        """The deaths of a worker on all nodes; `own` are those on this one."""
        deaths, asked, source = shipped.on_node(own.deaths, self._own.name), [self._own.id], ""
        if self._is_elsewhere(where):
            try:
                answer: WorkerHistory = self.ask(where, component_id, "history", limit=limit)
            except RekindleError as error:
                source = self._before(where, error)
            else:
                assert where.node is not None
                deaths += shipped.on_node(answer.deaths, where.node.name)
                asked.append(where.node.id)
                source = shipped.from_node(where.node.name)
        try:
            past = self._past(component_id, asked, limit=limit, only=shipped.DIED)
        except StoreError as error:
            past, source = ShippedPast(), shipped.from_here(self._own.name, str(error))
        deaths += shipped.deaths_of(past.events, where.names)
        return WorkerHistory(id=component_id, deaths=shipped.newest(deaths, limit), source=source)

    def timeline(
        self, where: Whereabouts, component_id: str, since_wall_ms: int, limit: int, own: Timeline | None
    ) -> Timeline:
        """What happened to a worker on all nodes; `own` is the part of this one."""
        parts = [] if own is None else [(self._own.name, own)]
        asked, source = [self._own.id] if own is not None else [], ""
        if self._is_elsewhere(where):
            try:
                wanted = {"since_wall_ms": since_wall_ms, "limit": limit}
                answer = self.ask(where, component_id, "timeline", **wanted)
            except RekindleError as error:
                source = self._before(where, error)
            else:
                assert where.node is not None
                parts.append((where.node.name, answer))
                asked.append(where.node.id)
                source = shipped.from_node(where.node.name)
        try:
            past = self._past(component_id, asked, since_wall_ms=since_wall_ms, limit=2 * limit + 1)
        except StoreError as error:
            past, source = ShippedPast(), shipped.from_here(self._own.name, str(error))
        merged = shipped.timeline_of_all(component_id, parts, past, where.names, limit)
        return replace(merged, source=source)

    def _is_elsewhere(self, where: Whereabouts) -> bool:
        return where.assignment is not None and where.assignment.node_id != self._own.id

    def _before(self, where: Whereabouts, error: Exception) -> str:
        why = where.why_silent()
        return shipped.from_before(None if where.node is None else where.node.name, why or str(error))

    def _past(self, component_id: str, asked: list[str], **more: Any) -> ShippedPast:
        return self._link.desk.shipped(component_id, tuple(asked), **more)

    def _past_deaths(self, where: Whereabouts, component_id: str, limit: int) -> Any:
        try:
            past = self._past(component_id, [], limit=limit, only=shipped.DIED)
        except StoreError:
            return ()
        return shipped.deaths_of(past.events, where.names)
