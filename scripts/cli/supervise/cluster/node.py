"""Makes a supervisor a node of its cluster: puts the actors of the cluster together with real ports."""

from __future__ import annotations

import os
import secrets
import time
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pykka
from loguru import logger

from rekindle import __version__
from rekindle.actors.cluster.agent import Agent
from rekindle.actors.cluster.coordinator import Coordinator
from rekindle.actors.cluster.courier import TOPICS, Courier
from rekindle.actors.cluster.courier_messages import ShipDue
from rekindle.actors.cluster.facts.nodes import Node, Resources
from rekindle.actors.cluster.history_courier import TOPICS as HISTORY
from rekindle.actors.cluster.history_courier import HistoryCourier
from rekindle.actors.cluster.node_host import NodeHost
from rekindle.actors.cluster.rules.lease import terms
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.node_figures import NodeFigures
from rekindle.actors.gateways.peers.udp import UdpPeers, digest
from rekindle.actors.gateways.secret_file import read_secret
from rekindle.actors.ports import Store
from rekindle.actors.runtime.boot_clock import BootClock
from rekindle.actors.runtime.thread_runtime import ThreadRuntime
from rekindle.actors.spec.deployment.assigned import stored
from rekindle.persistence.cluster.cluster_desk import ClusterDesk
from rekindle.persistence.cluster.node_desk import NodeDesk
from rekindle.persistence.cluster.postgres_cluster import PostgresCluster
from rekindle.persistence.cluster.shared_jobs import SharedJobs
from rekindle.persistence.store import SqlStore

from ...config import Config
from ...config.file_tables import ClusterSettings
from ...config.tables.wishes import spec_of
from ..fleet import SupervisedFleet
from .cluster_operator import ClusterMembership, ClusterOperator
from .node_engine import engine_of
from .node_fleet import NodeFleet
from .node_link import NodeLink
from .order_desk import OrderDesk

RETRY_S = 1.0
NODE_ID = "node.id"
"""The file in the state directory with the id of the node: a node keeps it, whatever its name is."""


LEASE_UNTIL = "lease.until"
"""The file in the state directory with the end of the node's right to run workers, by its wall clock."""


class LeaseNote:
    """Keeps the end of the right for the next life of the agent: its guardian kills the workers then.

    It is not synchronised: a machine that crashes takes the workers along.
    """

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        text = os.pread(self._file, 32, 0).strip()
        self.former_ms = int(text) if text.isdigit() else None
        """What the former life has noted, if there was one."""

    def keep(self, until_ms: int) -> None:
        """Note another end."""
        os.pwrite(self._file, f"{until_ms:020}\n".encode(), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class ClusterNode:
    """The actors of the cluster on this machine."""

    def __init__(
        self,
        fleet: SupervisedFleet,
        config: Config,
        journal: Store,
        jobs: SharedJobs,
        operator: ClusterOperator,
    ) -> None:
        """Join the cluster; what is assigned to this node begins to run.

        Raises:
            StoreError: the database belongs to another cluster, or cannot be used.
            GatewayError: the address for the other nodes cannot be used, or the secret cannot be read.
        """
        settings = config.cluster
        assert settings is not None
        assert config.shared_database is not None
        self._agent: pykka.ActorRef[Any] | None = None
        self._coordinator: pykka.ActorRef[Any] | None = None
        secret = _secret(settings)
        self._peers = UdpPeers(
            settings.listen, cluster=settings.name, secret=secret, receiver=lambda: self._agent
        )
        try:
            shown, node_id = digest(secret, settings.name), _node_id(config.state_dir)
            _see_cluster(config.shared_database, settings.name, shown, node_id)
            self._store = PostgresCluster(config.shared_database, lease_s=settings.lease_s, node_id=node_id)
        except BaseException:
            self._peers.close()
            raise
        assert isinstance(fleet, NodeFleet)
        fleet.share_jobs(jobs, journal)
        self._jobs = jobs
        self._runtime, self._figures = ThreadRuntime(), NodeFigures()
        machine = _machine(config, settings, self._peers.address, fleet.mark)
        self._engine = engine_of(settings, secret, machine, config.state_dir, lambda: self._coordinator)
        for spec in self._engine.specs:
            fleet.add(spec)
        self._start(fleet, config, journal, machine, settings)
        orders = OrderDesk(fleet, machine)
        desk = NodeDesk(config.shared_database, machine.id, answers_s=settings.lease_s / 3)
        self._link = orders.link = NodeLink(
            desk, fleet, orders.carry_out, node_id=machine.id, unplaced_after_s=settings.unplaced_after_s
        )
        operator.membership = ClusterMembership(machine, self._link, orders, self._figures)

    @property
    def agent(self) -> pykka.ActorRef[Any]:
        """The Agent."""
        assert self._agent is not None
        return self._agent

    def _start(
        self, fleet: SupervisedFleet, config: Config, journal: Store, machine: Node, settings: ClusterSettings
    ) -> None:
        clock, times = BootClock(), terms(settings.lease_s)
        note = self._note = LeaseNote(config.state_dir / LEASE_UNTIL)
        courier = self._runtime.start(
            Courier,
            machine.id,
            runtime=self._runtime,
            store=self._store,
            journal=journal,
            epochs=stored(journal.load().meta),
            agent=lambda: self.agent,
            former_until_ms=note.former_ms,
            node=machine.name,
            announce=fleet.announce,
        )
        history = self._runtime.start(
            HistoryCourier,
            machine.id,
            runtime=self._runtime,
            store=self._store,
            journal=journal,
            epochs=stored(journal.load().meta),
            keep_days=config.retention.history_days,
            former_until_ms=note.former_ms,
            node=machine.name,
            announce=fleet.announce,
            figures=self._figures,
        )
        host = NodeHost(
            fleet,
            node_id=machine.id,
            node=machine.name,
            clock=clock,
            supervisor=fleet.supervisor,
            couriers=(courier, history),
            note_until=note.keep,
            agent=lambda: self.agent,
            spec_of=partial(spec_of, file=config.path),
        )
        self._host = host
        self._agent = self._runtime.start(
            Agent,
            machine,
            times,
            runtime=self._runtime,
            store=self._store,
            peers=self._peers,
            host=host,
            nonce=partial(secrets.token_hex, 16),
            clock=clock,
            announce=fleet.announce,
            figures=self._figures,
        )
        fleet.subscribe(courier, *TOPICS)
        fleet.subscribe(history, *HISTORY)
        for each in (courier, history):
            each.tell(ShipDue())
        self._coordinator = self._runtime.start(
            Coordinator,
            times,
            runtime=self._runtime,
            store=self._store,
            engine=self._engine.port,
            clock=clock,
            suspects=settings.suspects,
            announce=fleet.announce,
            figures=self._figures,
        )
        logger.info(
            "cluster: node {} of {}, promises at {}", machine.name, settings.name, self._peers.address
        )

    def close(self) -> None:
        """End the actors; the workers have ended, and the lease runs out by itself."""
        self._link.close()
        self._engine.close()
        self._runtime.close()
        self._host.close()
        self._jobs.close()
        self._note.close()
        self._store.close()
        self._peers.close()


def _see_cluster(database: str, name: str, secret: str, node_id: str) -> None:
    """Wait for the database, and see that it belongs to this cluster and that its nodes have our secret."""
    has_warned = False
    while True:
        try:
            desk = ClusterDesk(database)
        except StoreUnavailableError as error:
            if not has_warned:
                logger.warning("cluster: the node cannot join yet: {}", str(error))
            has_warned = True
            time.sleep(RETRY_S)
        else:
            try:
                desk.claim_name(name)
                desk.compare_secret(secret, node_id)
            finally:
                desk.close()
            return


def _secret(settings: ClusterSettings) -> str:
    return "" if settings.secret_file is None else read_secret(Path(settings.secret_file))


def shared_jobs(config: Config, store: Store) -> SharedJobs:
    """Let the journal of this node be a store whose queues are those of the cluster."""
    assert isinstance(store, SqlStore)
    assert config.shared_database is not None
    jobs = SharedJobs(
        config.shared_database,
        node_id=_node_id(config.state_dir),
        worker_database=config.shared_worker_database,
        retention=config.retention,
    )
    store.use_jobs_of(jobs)
    return jobs


def _machine(config: Config, settings: ClusterSettings, address: str, run: str) -> Node:
    id_ = _node_id(config.state_dir)
    return Node(
        id=id_,
        name=settings.node,
        address=address,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        version=__version__,
        labels=dict(settings.labels),
        capacity=Resources(amounts=dict(settings.capacity)),
        run=run,
        engine_node=id_ if settings.attached is None else address.rpartition(":")[0].strip("[]"),
    )


def _node_id(state_dir: Path) -> str:
    file = state_dir / NODE_ID
    with suppress(FileNotFoundError):
        return file.read_text().strip()
    id_ = uuid.uuid4().hex
    file.write_text(f"{id_}\n")
    return id_
