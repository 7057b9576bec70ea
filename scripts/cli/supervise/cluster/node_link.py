"""Keeps this node and the others informed of each other: reports once a second, orders at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from loguru import logger

from rekindle.actors import RekindleError, System
from rekindle.actors.cluster.facts.looks import ClusterLook
from rekindle.actors.cluster.facts.orders import Order
from rekindle.actors.cluster.views.cluster_changes import SeenCluster, changes, watched
from rekindle.actors.cluster.views.whole_cluster import lasting
from rekindle.actors.errors import StoreError
from rekindle.actors.messages import (
    ClusterEvent,
    SharedDatabaseAway,
    SharedDatabaseBack,
    StatusReport,
    WorkerStatus,
)
from rekindle.persistence.cluster.node_desk import NodeDesk, OrderListener

ROUND_S = 1.0
SLICE_S = 0.25
"""How long a thread that listens is deaf to the end of the node."""
RETRY_S = 1.0
AWAY_S = 3.0
"""How long the database is unavailable before people are told."""
ORDERS_AT_ONCE = 8


class NodeLink:
    """A thread that tells the database how the workers of this node are, and reads how the others are."""

    def __init__(
        self,
        desk: NodeDesk,
        system: System,
        carry_out: Callable[[Order], None],
        *,
        node_id: str,
        unplaced_after_s: float,
    ) -> None:
        self.desk = desk
        self._node_id, self._unplaced_after_s = node_id, unplaced_after_s
        self._watched: SeenCluster | None = None
        self._system, self._carry_out = system, carry_out
        self._look: tuple[ClusterLook, float] | None = None
        self._told: tuple[WorkerStatus, ...] | None = None
        self._telling = threading.Lock()
        self._closing = threading.Event()
        self._heard = threading.Condition()
        self._news = 0
        self._away_since: float | None = None
        self._is_told_away = False
        self._orders = ThreadPoolExecutor(ORDERS_AT_ONCE, "rekindle-orders")
        self._thread = threading.Thread(target=self._work, name="rekindle-node-link", daemon=True)
        self._thread.start()

    def latest(self) -> tuple[ClusterLook, float] | None:
        """The latest look at the cluster, and how old it is in seconds; never waits."""
        found = self._look
        return None if found is None else (found[0], time.monotonic() - found[1])

    def refresh(self) -> None:
        """Read the cluster now; what cannot be read stays as it was."""
        with suppress(StoreError):
            self._read()

    def tell(self) -> None:
        """Tell the others now how the workers of this node are."""
        with suppress(RekindleError), self._telling:
            report: StatusReport = self._system.report()
            settled = lasting(report.workers)
            self.desk.keep_report(None if settled == self._told else report.workers)
            self._told = settled

    @property
    def news(self) -> int:
        """How many notices about orders have arrived."""
        return self._news

    def await_news(self, since: int, timeout_s: float) -> int:
        """Wait for the next notice about orders, at most this long; returns how many have arrived."""
        with self._heard:
            self._heard.wait_for(lambda: self._news != since, timeout_s)
            return self._news

    def close(self) -> None:
        """End the threads."""
        self._closing.set()
        self._orders.shutdown(wait=False, cancel_futures=True)
        self._thread.join(2 * ROUND_S)
        self.desk.close()

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                with self.desk.listener() as listener:
                    while not self._closing.is_set():
                        self._round(listener)
            except Exception as error:  # noqa: BLE001  # the node must continue, whatever the database says
                self._away(error)
                self._closing.wait(RETRY_S)

    def _round(self, listener: OrderListener) -> None:
        self.tell()
        self._watch(self._read())
        self._back()
        self._take()
        until = time.monotonic() + ROUND_S
        while (left_s := until - time.monotonic()) > 0 and not self._closing.is_set():
            if listener.heard(min(left_s, SLICE_S)):
                self._take()
                with self._heard:
                    self._news += 1
                    self._heard.notify_all()

    def _read(self) -> ClusterLook:
        look = self.desk.look()
        self._look = look, time.monotonic()
        return look

    def _watch(self, look: ClusterLook) -> None:
        if self._watched is None:
            self._watched = watched(look)
            return
        self._watched, events = changes(self._watched, look, self._node_id, self._unplaced_after_s)
        for event in events:
            self._announce(event)

    def _take(self) -> None:
        for order in self.desk.take():
            with suppress(RuntimeError):  # it is closing: the order stays `taken`, and its giver says so
                self._orders.submit(self._carry_out, order)

    def _away(self, error: Exception) -> None:
        self._told = None
        if self._closing.is_set():
            return
        now, what = time.monotonic(), str(error) if isinstance(error, StoreError) else repr(error)
        if self._away_since is None:
            self._away_since = now
            logger.warning("cluster: the other nodes cannot be read: {}", what)
        elif not self._is_told_away and now - self._away_since >= AWAY_S:
            self._is_told_away = True
            self._announce(SharedDatabaseAway(what))

    def _back(self) -> None:
        self._away_since = None
        if self._is_told_away:
            self._is_told_away = False
            self._announce(SharedDatabaseBack())

    def _announce(self, event: ClusterEvent) -> None:
        with suppress(RekindleError):  # it is stopping
            self._system.announce(event)
