"""Orders and questions across nodes: sends those about workers elsewhere, and answers those from elsewhere.

A question takes the way of an order, but it changes nothing: it is not audited, and its asker deletes it.
"""

from __future__ import annotations

import json
import pwd
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from loguru import logger

from rekindle.actors import (
    RekindleError,
    RequestRefusedError,
    RequestTimeoutError,
    System,
    UnknownWorkerError,
)
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.orders import Order, OrderState
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.errors import StoreError
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.runs import Run
from rekindle.actors.gateways.api.audit_trail import sender
from rekindle.actors.gateways.serving.json_values import encode
from rekindle.actors.processes.watch.transcript import OutputLines
from rekindle.actors.views.diagnosis import WorkerDiagnosis
from rekindle.actors.views.log_page import LogPage, LogQuery
from rekindle.actors.views.timeline import Timeline
from rekindle.actors.views.worker_history import WorkerHistory

from .node_link import NodeLink

TAKEN_S = 5.0
"""How long a node may take to hear of an order."""
DONE_S = 10.0
STOPPED_S = 120.0
POLL_S = 0.5
"""How often an order is read although no notice about it came."""
LOOK_S = 3.0
"""How long a node may take to answer a question."""
LOOK = "look "
"""Before the name of a question: one of `VIEWS`."""

VIEWS: dict[str, Any] = {
    "diagnose": WorkerDiagnosis,
    "history": WorkerHistory,
    "timeline": Timeline,
    "runs": tuple[Run, ...],
    "bundles": tuple[Bundle, ...],
    "bundle": Bundle,
    "output": tuple[str, ...],
    "written": OutputLines,
    "logged": LogPage,
}
"""What a node can be asked about a worker, and the types of the answers."""


class OrderDesk:
    """Both ends of an order to a worker of another node."""

    def __init__(self, system: System, node: Node) -> None:
        self._system, self._node = system, node
        self.link: NodeLink | None = None

    # ── the node that is given the order ─────────────────────────────────────────────────

    def look(self, node: Node, component_id: str, view: str, arguments: dict[str, Any]) -> Any:
        """Ask another node about a worker of its own.

        Raises:
            RekindleError: it does not answer, does not know the worker, or refuses.
        """
        order = self._order(node, component_id, f"{LOOK}{view}", arguments)
        assert self.link is not None
        try:
            result = self._result(order, node, LOOK_S)
        finally:
            with suppress(StoreError):
                self.link.desk.forget(order.id)
        return msgspec.json.decode(result, type=VIEWS[view])

    def give(self, node: Node, component_id: str, action: str, arguments: dict[str, Any]) -> Any:
        """Have another node carry out an order; what it returned, as JSON.

        Raises:
            RequestRefusedError: the node refused it, or has not taken it: nothing was done.
            RequestTimeoutError: the node has taken it, and does not answer.
            StoreError: the database does not answer.
        """
        order = self._order(node, component_id, action, arguments)
        assert self.link is not None
        try:
            return json.loads(self._result(order, node, TAKEN_S))
        finally:
            self.link.refresh()

    def _order(self, node: Node, component_id: str, action: str, arguments: dict[str, Any]) -> Order:
        return Order(
            id=secrets.token_hex(16),
            component_id=component_id,
            node_id=node.id,
            from_node=self._node.id,
            action=action,
            arguments=json.dumps(arguments),
            given_by=f"{_who()}@{self._node.name}",
        )

    def _result(self, order: Order, node: Node, taken_s: float) -> str:
        assert self.link is not None
        news = self.link.news  # before a notice about it can arrive
        self.link.desk.give(order, taken_s)
        ended = self._awaited(self.link, order, node, news, taken_s)
        if ended.state is OrderState.DONE:
            return ended.result
        if ended.state is OrderState.EXPIRED:
            raise RequestRefusedError(_not_taken(node, order, taken_s))
        if ended.result.startswith(_UNKNOWN):
            raise UnknownWorkerError(order.component_id)
        raise RequestRefusedError(f"{node.name} refused: {ended.result}")

    def _awaited(self, link: NodeLink, order: Order, node: Node, news: int, taken_s: float) -> Order:
        began = time.monotonic()
        is_look = order.action.startswith(LOOK)
        patience_s = LOOK_S if is_look else STOPPED_S if order.action == "stop" else DONE_S
        while True:
            news = link.await_news(news, POLL_S)
            known = link.desk.read(order.id)
            waited_s = time.monotonic() - began
            if known.state.is_over:
                return known
            if known.state is OrderState.PENDING and waited_s > taken_s and link.desk.withdraw(order.id):
                raise RequestRefusedError(_not_taken(node, order, taken_s))
            if waited_s > patience_s and is_look:
                raise RequestTimeoutError(_not_taken(node, order, patience_s))
            if waited_s > patience_s:
                raise RequestTimeoutError(f"{node.name} has taken the order, and may still carry it out")

    # ── the node that carries it out ─────────────────────────────────────────────────────

    def carry_out(self, order: Order) -> None:
        """Do what an order says, and put the result on record."""
        assert self.link is not None
        try:
            is_look = order.action.startswith(LOOK)
            result = encode(self._seen(order) if is_look else self._done(order)).decode()
            state = OrderState.DONE
        except UnknownWorkerError as error:
            state, result = OrderState.REFUSED, f"{_UNKNOWN}: {error}"
        except RekindleError as error:
            state, result = OrderState.REFUSED, str(error)
        except Exception as error:  # noqa: BLE001  # its giver waits for an answer
            logger.opt(exception=error).error(
                "cluster: the order {} of {} failed", order.action, order.given_by
            )
            state, result = OrderState.REFUSED, repr(error)
        if not order.action.startswith(LOOK):
            self._audit(order, state, result)
            self.link.tell()
        try:
            self.link.desk.end(order, state, result)
        except StoreError as error:
            logger.warning("cluster: the result of an order could not be stored: {}", str(error))

    def _done(self, order: Order) -> object:
        system, id_ = self._system, order.component_id
        actions: dict[str, Callable[..., object]] = {
            "restart": system.restart,
            "start": system.start_worker,
            "stop": system.stop_worker,
            "reset": system.reset,
            "pause": system.pause,
            "resume": system.resume,
            "signal": system.signal,
            "run_now": system.run_now,
        }
        if order.action not in actions:
            raise RequestRefusedError(f"it does not know the order {order.action}: is its version older?")
        system.check(id_)
        return actions[order.action](id_, **json.loads(order.arguments))

    def _seen(self, order: Order) -> object:
        view, given = order.action.removeprefix(LOOK), dict[str, Any](json.loads(order.arguments))
        if view not in VIEWS:
            raise RequestRefusedError(f"it does not know the question {view}: is its version older?")
        ids = given.pop("ids", [order.component_id])
        for id_ in ids:
            self._system.check(id_)
        numbers = given.pop("numbers", ())
        named = {"query": msgspec.convert(given, LogQuery)} if view == "logged" else given
        look: Callable[..., object] = getattr(self._system, view)
        return look(*ids, *numbers, **named)

    def _audit(self, order: Order, state: OrderState, result: str) -> None:
        is_done = state is OrderState.DONE
        self._system.audit(
            AuditEntry(
                at_wall_ms=time.time_ns() // 1_000_000,
                gateway="cluster",
                uid=None,
                pid=None,
                claimed_user=order.given_by,
                action=order.action,
                target=order.component_id,
                detail="" if order.arguments == "{}" else order.arguments,
                result=AuditResult.DONE if is_done else AuditResult.REFUSED,
                reason="" if is_done else result,
            )
        )


_UNKNOWN = "unknown worker"


def _not_taken(node: Node, order: Order, taken_s: float) -> str:
    if order.action.startswith(LOOK):
        return f"{node.name} has not answered within {taken_s:g} s"
    return (
        f"{node.name} has not taken the order within {taken_s:g} s, so nothing was done to"
        f" {order.component_id}; see: rekindle cluster status"
    )


def _who() -> str:
    client = sender.get()
    if client is None:
        return "a program"
    if client.claimed_user:
        return client.claimed_user
    if client.peer is None:
        return client.gateway
    try:
        return pwd.getpwuid(client.peer.uid).pw_name
    except KeyError:
        return str(client.peer.uid)
