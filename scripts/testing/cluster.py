"""Several nodes of one cluster in one process, for tests and demonstrations against a real PostgreSQL.

Each node has a `System`, a journal and a lease of its own, and runs real workers. What a machine does to a
node, `cut` and `stop` do to one of these.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeVar

from rekindle.actors import RequestTimeoutError, System, WorkerSpec
from rekindle.actors.cluster.cluster_messages import (
    BeginRelease,
    Change,
    ClusterRead,
    PutWish,
    SetNodeState,
    WantWorker,
)
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.wishes import Wanted, Wish
from rekindle.actors.messages import WorkerStatus
from rekindle.actors.spec.deployment.place_policy import PlacePolicy
from rekindle.actors.system.declared_workers import distinct
from rekindle.persistence.cluster.cluster_desk import ClusterDesk

from .cluster_node import Cables, TestNode

PATIENCE_S = 60.0
"""How long the methods wait that wait; long, because test machines are busy."""

T = TypeVar("T")
MEMBERS = tuple(state for state in NodeState if state.is_member)


class Cluster:
    """Nodes named n1, n2 … that run workers between them.

    with Cluster([WorkerSpec("worker:web:0", Command(("./web",)))], database=url) as cluster:
        cluster.cut(cluster.wait_until_running("worker:web:0"))
        cluster.wait_until_running("worker:web:0")  # elsewhere
    """

    def __init__(
        self,
        specs: Iterable[WorkerSpec],
        *,
        database: str,
        nodes: int = 3,
        lease_s: float = 3.0,
        places: Mapping[str, PlacePolicy] = MappingProxyType({}),
    ) -> None:
        """Describe the cluster; nothing runs before it is entered.

        Args:
            specs: the workers.
            database: the address of a PostgreSQL database that no other cluster uses.
            nodes: how many.
            lease_s: how long a node may run its workers after it was last heard from.
            places: by worker or group, where it may run; anywhere if nothing is said.

        Raises:
            SpecError: two workers have one id, or one is invalid.
        """
        self._specs = {spec.id: spec for spec in distinct(specs)}
        self._places = places
        self._database, self._lease_s = database, lease_s
        self._cables = Cables()
        self._folder = tempfile.TemporaryDirectory(prefix="rekindle-cluster-")
        self._nodes = {f"n{number}": self._node(f"n{number}") for number in range(1, nodes + 1)}
        self._desk: ClusterDesk | None = None

    def __enter__(self) -> Self:
        try:
            self._desk = ClusterDesk(self._database)
            self._desk.claim_name("test")
            self._forget_former_nodes()
            for name in self._nodes:
                self.start(name)
            self._wish()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every worker and every node."""
        ends = [threading.Thread(target=node.close) for node in self._nodes.values()]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        if self._desk is not None:
            self._desk.close()
        self._folder.cleanup()

    def _node(self, name: str) -> TestNode:
        return TestNode(
            name, Path(self._folder.name) / name, self._database, self._lease_s, self._cables, self._spec
        )

    def _spec(self, wish: Wish) -> WorkerSpec:
        return replace(self._specs[wish.spec], id=wish.component_id)

    def _forget_former_nodes(self) -> None:
        """Free the names that a test before this one has used on the same database."""
        for node in self._read().nodes:
            forgets = partial(self._entered.forget, node.id, "a test")
            self.wait_until(forgets, f"the lease of the former {node.name} to end")

    def _wish(self) -> None:
        former = {wish.component_id for wish in self._read().wishes}
        for id_ in former - set(self._specs):
            self._order(WantWorker(id_, Wanted.GONE))
        for id_, spec in self._specs.items():
            place = self._places.get(id_) or self._places.get(spec.group) or PlacePolicy()
            self._order(PutWish(Wish(component_id=id_, group=spec.group, spec=id_, place=place)))

    # ── what is done to nodes ────────────────────────────────────────────────────────────

    @property
    def names(self) -> tuple[str, ...]:
        """Of the nodes."""
        return tuple(self._nodes)

    def system(self, node: str) -> System:
        """The supervisor of a node that runs."""
        return self._nodes[node].system

    def cut(self, node: str) -> None:
        """Cut a node off from the database and from the other nodes."""
        self._cables.cut(node)

    def plug(self, node: str) -> None:
        """Undo a cut."""
        self._cables.plug(node)

    def stop(self, node: str) -> None:
        """End a node with its workers, as SIGTERM does; others take them over when its lease is over."""
        self._nodes[node].close()

    def start(self, node: str) -> None:
        """Start a node that does not run, and wait until it holds its lease and the others know it.

        A node that is cut off before it knows the others is its own majority, and keeps its workers.
        """
        self._nodes[node].start()
        self.wait_until(lambda: self.holds_lease(node), f"{node} to join")
        self.wait_until(self._is_acquainted, "the nodes to know each other")

    def _is_acquainted(self) -> bool:
        living = [
            node for node in self._read().nodes if node.name in self._nodes and self.holds_lease(node.name)
        ]
        return all({each.id for each in living} <= set(node.members) for node in living)

    def drain(self, node: str) -> None:
        """Move all workers of a node elsewhere, and wait until others have them."""
        self._set(node, NodeState.DRAINING)
        self.wait_until(lambda: not {node, None} & set(self.places().values()), f"{node} to be drained")

    def uncordon(self, node: str) -> None:
        """End a drain."""
        self._set(node, NodeState.UP)

    def move(self, component_id: str, node: str) -> None:
        """Move one worker, and wait until it runs there."""
        read = self._read()
        known = next(each for each in read.assignments if each.component_id == component_id)
        target = next(each.id for each in read.nodes if each.name == node)
        self._order(
            BeginRelease(component_id=component_id, epoch=known.epoch, reason="a test", target=target)
        )
        self.wait_until(lambda: self.runs_on(component_id) == node, f"{component_id} to run on {node}")

    # ── what is true ─────────────────────────────────────────────────────────────────────

    def places(self) -> dict[str, str | None]:
        """By worker: the node that it is assigned to."""
        read = self._read()
        names = {node.id: node.name for node in read.nodes}
        return {each.component_id: names.get(each.node_id or "") for each in read.assignments}

    def holds_lease(self, name: str) -> bool:
        """Whether the database says so."""
        read = self._read()
        return any(
            node.name == name and node.state.is_member and node.lease_until_ms > read.now_ms
            for node in read.nodes
        )

    def restarts(self, component_id: str) -> int:
        """The restarts of a worker, on all nodes."""
        return self._entered.restarts().get(component_id, 0)

    def status(self, component_id: str) -> WorkerStatus | None:
        """What the node of a worker says of it; None if no node runs it."""
        for node in self._nodes.values():
            if (found := node.status(component_id)) is not None and found.pid is not None:
                return found
        return None

    def runs_on(self, component_id: str) -> str | None:
        """The node where a worker has a process now."""
        for name, node in self._nodes.items():
            if (found := node.status(component_id)) is not None and found.pid is not None:
                return name
        return None

    def shown(self) -> Iterator[str]:
        """What a failed test reports: the nodes, and what they say of their workers."""
        for name, node in self._nodes.items():
            yield f"{name}: {node.shown()}"

    def wait_until_running(self, component_id: str, *, elsewhere_than: str = "") -> str:
        """Wait until a worker has a process, on another node than the given one; returns its node."""

        def found() -> str | None:
            node = self.runs_on(component_id)
            return None if node == elsewhere_than else node

        return self.wait_until(found, f"{component_id} to run") or ""

    def wait_until(self, condition: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
        """The first true answer of the condition.

        Raises:
            RequestTimeoutError: there is none in time.
        """
        deadline = time.monotonic() + timeout_s
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise RequestTimeoutError(f"waited {timeout_s:g} s for {what}")
            time.sleep(0.02)
        return answer

    # ── the database ─────────────────────────────────────────────────────────────────────

    @property
    def _entered(self) -> ClusterDesk:
        assert self._desk is not None, "the cluster has not been entered"
        return self._desk

    def _read(self) -> ClusterRead:
        return self._entered.read()

    def _order(self, change: Change) -> None:
        self._entered.change(change)

    def _node_id(self, name: str) -> str:
        return next(node.id for node in self._read().nodes if node.name == name)

    def _set(self, name: str, state: NodeState) -> None:
        self._order(
            SetNodeState(node_id=self._node_id(name), state=state, reason="a test", by="", only_from=MEMBERS)
        )
