"""One node of a cluster in a test: a System with a journal, and the actors that keep its lease."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pykka

from rekindle import __version__
from rekindle.actors import System, UnknownWorkerError, WorkerSpec
from rekindle.actors.cluster.agent import Agent
from rekindle.actors.cluster.cluster_messages import Change, JoinNode, ReadCluster, Renew, StoreAway
from rekindle.actors.cluster.coordinator import Coordinator
from rekindle.actors.cluster.courier import TOPICS, Courier
from rekindle.actors.cluster.courier_messages import ShipDue
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.promises import PromiseAsked, PromiseGot
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.cluster.no_engine import NoEngine
from rekindle.actors.cluster.node_host import NodeHost
from rekindle.actors.cluster.rules.lease import terms
from rekindle.actors.messages import WorkerStatus
from rekindle.actors.ports import Receiver
from rekindle.actors.runtime.boot_clock import BootClock
from rekindle.actors.runtime.resilient_actor import tell
from rekindle.actors.runtime.thread_runtime import ThreadRuntime
from rekindle.actors.spec.deployment.assigned import stored
from rekindle.persistence import open_store
from rekindle.persistence.cluster.postgres_cluster import PostgresCluster


class Cables:
    """What the nodes of one process reach each other by: the `Peers` of all of them."""

    def __init__(self) -> None:
        self._agents: dict[str, pykka.ActorRef[Any]] = {}
        self._cut: set[str] = set()

    def connect(self, name: str, agent: pykka.ActorRef[Any]) -> None:
        """Have a node be reached."""
        self._agents[name] = agent

    def disconnect(self, name: str) -> None:
        """Cut a node off."""
        self._agents.pop(name, None)

    def cut(self, name: str) -> None:
        """Lose everything from and to a node."""
        self._cut.add(name)

    def plug(self, name: str) -> None:
        """Undo a cut."""
        self._cut.discard(name)

    def is_cut(self, name: str) -> bool:
        """Whether a node is cut off."""
        return name in self._cut

    def carry(self, source: str, target: str, message: PromiseAsked | PromiseGot) -> None:
        """Deliver a promise, unless a cable is cut."""
        agent = self._agents.get(target)
        if agent is not None and not self._cut & {source, target}:
            tell(agent, message)


class NodeReach:
    """The `ClusterStore`, `TenureStore` and `Peers` of one node: nothing passes while its cable is cut."""

    def __init__(self, name: str, store: PostgresCluster, cables: Cables) -> None:
        self._name, self._store, self._cables = name, store, cables

    def join(self, request: JoinNode, receiver: Receiver) -> None:
        """Begin a new life of a node."""
        self._pass(request, receiver, lambda: self._store.join(request, receiver))

    def renew(self, request: Renew, receiver: Receiver) -> None:
        """Extend a lease."""
        self._pass(request, receiver, lambda: self._store.renew(request, receiver))

    def read(self, request: ReadCluster, receiver: Receiver) -> None:
        """Read the state of the cluster."""
        self._pass(request, receiver, lambda: self._store.read(request, receiver))

    def change(self, change: Change, receiver: Receiver) -> None:
        """Try one guarded statement."""
        self._pass(change, receiver, lambda: self._store.change(change, receiver))

    def tenures(self, keys: tuple[tuple[str, int], ...], receiver: Receiver) -> None:
        """Read the tenures of these workers and epochs."""
        self._pass(keys, receiver, lambda: self._store.tenures(keys, receiver))

    def send(self, node_id: str, address: str, message: PromiseAsked | PromiseGot) -> None:
        """Send a message to the agent of a node, whose address is its name."""
        self._cables.carry(self._name, address, message)

    def _pass(self, request: object, receiver: Receiver, act: Callable[[], None]) -> None:
        if self._cables.is_cut(self._name):
            tell(receiver, StoreAway(request=request, reason="the cable is cut"))
        else:
            act()


class TestNode:
    """A node that can be started, stopped and started again, with the journal that it had."""

    __test__ = False

    def __init__(
        self,
        name: str,
        folder: Path,
        database: str,
        lease_s: float,
        cables: Cables,
        spec_of: Callable[[Wish], WorkerSpec],
    ) -> None:
        self._name, self._folder, self._database, self._lease_s = name, folder, database, lease_s
        self._cables, self._spec_of = cables, spec_of
        self._id = secrets.token_hex(16)
        self._running: System | None = None

    @property
    def system(self) -> System:
        """Its supervisor."""
        assert self._running is not None, f"{self._name} does not run"
        return self._running

    def status(self, component_id: str) -> WorkerStatus | None:
        """What it says of a worker; None if it does not have it."""
        if self._running is None:
            return None
        try:
            return self._running.status(component_id)
        except UnknownWorkerError:
            return None

    def shown(self) -> str:
        """What it runs, in a line."""
        if self._running is None:
            return "does not run"
        cut = "cut off, " if self._cables.is_cut(self._name) else ""
        workers = [f"{each.component_id} {each.shown}" for each in self._running.report().workers]
        return f"{cut}{', '.join(workers) or 'no workers'}"

    def start(self) -> None:
        """Start its supervisor, without workers, and join."""
        if self._running is not None:
            return
        self._folder.mkdir(exist_ok=True)
        journal = open_store(self._folder / "rekindle.db")
        system = System([], store=journal)
        system.open()
        system.start()
        self._running = system
        store = PostgresCluster(self._database, lease_s=self._lease_s, node_id=self._id)
        runtime, clock, reach = ThreadRuntime(), BootClock(), NodeReach(self._name, store, self._cables)
        agents: list[pykka.ActorRef[Any]] = []
        courier = runtime.start(
            Courier,
            self._id,
            runtime=runtime,
            store=reach,
            journal=journal,
            epochs=stored(journal.load().meta),
            agent=lambda: agents[0],
        )
        host = NodeHost(
            system,
            node_id=self._id,
            node=self._name,
            clock=clock,
            supervisor=system.supervisor,
            couriers=(courier,),
            agent=lambda: agents[0],
            spec_of=self._spec_of,
        )
        machine = Node(id=self._id, name=self._name, address=self._name, version=__version__)
        times = terms(self._lease_s)
        agent = runtime.start(
            Agent,
            machine,
            times,
            runtime=runtime,
            store=reach,
            peers=reach,
            host=host,
            nonce=lambda: secrets.token_hex(16),
            clock=clock,
        )
        agents.append(agent)
        self._cables.connect(self._name, agent)

        def end() -> None:
            self._cables.disconnect(self._name)
            runtime.close()
            host.close()
            store.close()

        system.at_stop(end)
        system.subscribe(courier, *TOPICS)
        courier.tell(ShipDue())
        runtime.start(Coordinator, times, runtime=runtime, store=reach, engine=NoEngine(), clock=clock)

    def close(self) -> None:
        """End its workers, then itself."""
        if self._running is not None:
            self._running.stop()
            self._running = None
