"""Orders across nodes: gives those to workers elsewhere, and carries out those that came from elsewhere."""

from __future__ import annotations

import json
import pwd
import secrets
import time
from collections.abc import Callable
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
from rekindle.actors.errors import StoreError
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.gateways.api.audit_trail import sender

from .node_link import NodeLink

TAKEN_S = 5.0
"""How long a node may take to hear of an order."""
DONE_S = 10.0
STOPPED_S = 120.0
POLL_S = 0.5
"""How often an order is read although no notice about it came."""


class OrderDesk:
    """Both ends of an order to a worker of another node."""

    def __init__(self, system: System, node: Node) -> None:
        self._system, self._node = system, node
        self.link: NodeLink | None = None

    # ── the node that is given the order ─────────────────────────────────────────────────

    def give(self, node: Node, component_id: str, action: str, arguments: dict[str, Any]) -> Any:
        """Have another node carry out an order; what it returned, as JSON.

        Raises:
            RequestRefusedError: the node refused it, or has not taken it: nothing was done.
            RequestTimeoutError: the node has taken it, and does not answer.
            StoreError: the database does not answer.
        """
        assert self.link is not None
        order = Order(
            id=secrets.token_hex(16),
            component_id=component_id,
            node_id=node.id,
            from_node=self._node.id,
            action=action,
            arguments=json.dumps(arguments),
            given_by=f"{_who()}@{self._node.name}",
        )
        news = self.link.news  # before a notice about it can arrive
        self.link.desk.give(order, TAKEN_S)
        ended = self._awaited(self.link, order, node, news)
        self.link.refresh()
        if ended.state is OrderState.DONE:
            return json.loads(ended.result)
        if ended.state is OrderState.EXPIRED:
            raise RequestRefusedError(_not_taken(node, order))
        if ended.result.startswith(_UNKNOWN):
            raise UnknownWorkerError(component_id)
        raise RequestRefusedError(f"{node.name} refused: {ended.result}")

    def _awaited(self, link: NodeLink, order: Order, node: Node, news: int) -> Order:
        began = time.monotonic()
        patience_s = STOPPED_S if order.action == "stop" else DONE_S
        while True:
            news = link.await_news(news, POLL_S)
            known = link.desk.read(order.id)
            waited_s = time.monotonic() - began
            if known.state.is_over:
                return known
            if known.state is OrderState.PENDING and waited_s > TAKEN_S and link.desk.withdraw(order.id):
                raise RequestRefusedError(_not_taken(node, order))
            if waited_s > patience_s:
                raise RequestTimeoutError(f"{node.name} has taken the order, and may still carry it out")

    # ── the node that carries it out ─────────────────────────────────────────────────────

    def carry_out(self, order: Order) -> None:
        """Do what an order says, and put the result on record."""
        assert self.link is not None
        try:
            result = msgspec.json.encode(self._done(order)).decode()
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


def _not_taken(node: Node, order: Order) -> str:
    return (
        f"{node.name} has not taken the order within {TAKEN_S:g} s, so nothing was done to"
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
