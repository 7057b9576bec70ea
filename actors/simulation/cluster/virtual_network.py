"""The network between agents: promises, delayed, lost, doubled and cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cluster.facts.promises import PromiseAsked, PromiseGot

if TYPE_CHECKING:
    from .cluster_run import ClusterRun


class VirtualNetwork:
    """Carries messages between the agents of all nodes."""

    def __init__(self, run: ClusterRun) -> None:
        self._run = run
        self.takes_s = 0.0
        self.lost_share = 0.0

    def carry(self, source: str, target: str, message: PromiseAsked | PromiseGot) -> None:
        """Send a message on its way."""
        run, chance = self._run, self._run.chance
        copies = 1
        if self.lost_share:
            copies = 0 if chance.random() < self.lost_share else 1 + (chance.random() < self.lost_share)
        for _ in range(copies):
            delay = chance.uniform(0.0005, 0.01) + (
                chance.uniform(0.0, self.takes_s) if self.takes_s else 0.0
            )
            run.later(delay, lambda: self._arrive(source, target, message))

    def _arrive(self, source: str, target: str, message: PromiseAsked | PromiseGot) -> None:
        node = self._run.nodes.get(target)
        if node is not None and not self._run.is_cut(source, target):
            node.hear(message)


class Letters:
    """The `Peers` of one node."""

    def __init__(self, network: VirtualNetwork, node_id: str) -> None:
        self._network, self._node_id = network, node_id

    def send(self, node_id: str, address: str, message: PromiseAsked | PromiseGot) -> None:
        """Send a message to the agent of a node."""
        self._network.carry(self._node_id, node_id, message)
