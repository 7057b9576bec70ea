"""Pure: what the actors of a cluster need from outside, as narrow protocols.

Two sets implement them: PostgreSQL, UDP and an engine; and the virtual cluster, which runs the same actors
on one virtual clock. No call blocks; what comes of it arrives as a message.
"""

from __future__ import annotations

from typing import Protocol

from ..ports import Receiver
from .cluster_messages import Change, JoinNode, ReadCluster, Renew, StartTenure
from .courier_messages import ShipJournal
from .engine_messages import RoomClaim
from .facts.promises import PromiseAsked, PromiseGot
from .facts.wishes import Wish


class ClusterStore(Protocol):
    """The truth that all nodes share.

    Each request is answered by one message, or by `StoreAway` if the store did not answer in time: then
    it may have been applied, or be applied later.
    """

    def join(self, request: JoinNode, receiver: Receiver) -> None:
        """Begin a new life of a node. Answers: Joined, JoinRefused, StoreAway."""
        ...

    def renew(self, request: Renew, receiver: Receiver) -> None:
        """Extend a lease. Answers: Renewed, RenewalRefused, StoreAway."""
        ...

    def read(self, request: ReadCluster, receiver: Receiver) -> None:
        """Read the state of the cluster. Answers: ClusterRead, StoreAway."""
        ...

    def change(self, change: Change, receiver: Receiver) -> None:
        """Try one guarded statement. Answers: Changed, StoreAway."""
        ...


class Peers(Protocol):
    """The other agents. A message may be lost, late or doubled; what arrives is told to the Agent."""

    def send(self, node_id: str, address: str, message: PromiseAsked | PromiseGot) -> None:
        """Send a message to the agent of a node."""
        ...


class Engine(Protocol):
    """What knows machines and reserves room on them. Its news arrive as `EngineNews`."""

    def reserve(self, claim: RoomClaim, receiver: Receiver) -> None:
        """Reserve room for a worker. Answers: RoomGranted, RoomDenied, EngineSilent."""
        ...

    def keep(self, claims: tuple[RoomClaim, ...]) -> None:
        """Have exactly these reservations: missing ones are made, all others of the cluster removed.

        So one that leaked, because an agent was killed, does not last.
        """
        ...

    def want_agent(self, engine_node: str) -> None:
        """Have an agent run on a machine."""
        ...


class Host(Protocol):
    """The System of a node, as its Agent uses it.

    It tells the Agent `JournalShipped` once what former lives have counted is in the database,
    `TenureStopped` when a worker has ended, and `WorkerRefused` if it cannot run one.
    """

    def start(self, order: StartTenure) -> None:
        """Supervise a worker, with the counters and the epoch that it brings along."""
        ...

    def change(self, wish: Wish) -> None:
        """Take over a new spec or a pause of a worker that runs here."""
        ...

    def stop(self, component_id: str, epoch: int) -> None:
        """End a worker by its own stop policy, without counting it, and supervise it no longer."""
        ...

    def kill(self, component_id: str, epoch: int) -> None:
        """End a worker by SIGKILL that was told to stop under this epoch; the death is not counted."""
        ...

    def refund(self, component_id: str, epoch: int, restarts: int) -> None:
        """Stop counting this many of the restarts that a worker brought along."""
        ...

    def fence(self) -> None:
        """End all workers by SIGKILL that may not run without a lease, and supervise them no longer.

        None of these deaths is counted, nor those of workers that the guardian has killed before.
        """
        ...

    def guard(self, until: float | None) -> None:
        """Tell the guardian when to kill the workers if it is told nothing later; None: now.

        The time is that of the Agent's clock. After it no process may be started, whatever was ordered.
        """
        ...


class TenureStore(Protocol):
    """What the Courier of a node needs of the store."""

    def tenures(self, keys: tuple[tuple[str, int], ...], receiver: Receiver) -> None:
        """Read the tenures of these workers and epochs. Answers: TenuresRead, StoreAway."""
        ...

    def change(self, change: Change, receiver: Receiver) -> None:
        """Try one guarded statement. Answers: Changed, StoreAway."""
        ...


class HistoryStore(Protocol):
    """What the HistoryCourier of a node needs of the store."""

    def shipped_up_to(self, node_id: str, receiver: Receiver) -> None:
        """Read how far the journal of a node was shipped. Answers: JournalKept, StoreAway."""
        ...

    def ship(self, request: ShipJournal, receiver: Receiver) -> None:
        """Keep a page of the journal. Answers: JournalKept, StoreAway."""
        ...
