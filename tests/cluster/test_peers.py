"""Promises between agents over real datagrams: what is not signed is dropped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from rekindle.actors.cluster.facts.promises import PromiseAsked, PromiseGot
from rekindle.actors.gateways.gateway_errors import GatewayError
from rekindle.actors.gateways.peers.udp import UdpPeers

ASKED = PromiseAsked(asker="a", incarnation=1, member="b", nonce="n", lease_until_ms=7, for_s=2.0)
GOT = PromiseGot(member="b", member_incarnation=3, asker="a", nonce="n", granted=False, reason="no")


class Inbox:
    """What one agent receives."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[Any] = SimpleQueue()

    def tell(self, message: object) -> None:
        """Receive a message."""
        self._arrived.put(message)

    def next(self, within_s: float = 20.0) -> Any:
        """The next message."""
        try:
            return self._arrived.get(timeout=within_s)
        except Empty:
            pytest.fail(f"nothing within {within_s} s")


Peer = Callable[..., tuple[UdpPeers, Inbox]]


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Makes agents that are reached at a free port of this machine."""
    with ExitStack() as stack:

        def make(secret: str = "s", cluster: str = "c") -> tuple[UdpPeers, Inbox]:
            inbox = Inbox()
            made = UdpPeers("127.0.0.1:0", cluster=cluster, secret=secret, receiver=lambda: inbox)
            stack.callback(made.close)
            return made, inbox

        yield make


@pytest.mark.parametrize("message", [ASKED, GOT])
def test_a_message_arrives_as_it_was_sent(peer: Peer, message: PromiseAsked | PromiseGot) -> None:
    (sender, _), (receiver, inbox) = peer(), peer()
    sender.send("b", receiver.address, message)
    assert inbox.next() == message


@pytest.mark.parametrize(("secret", "cluster"), [("another", "c"), ("s", "another")])
def test_what_another_secret_or_cluster_has_signed_is_dropped_and_told(
    peer: Peer, logs: list[str], secret: str, cluster: str
) -> None:
    (stranger, _), (member, _), (receiver, inbox) = peer(secret, cluster), peer(), peer()
    stranger.send("b", receiver.address, ASKED)
    member.send("b", receiver.address, GOT)
    assert inbox.next() == GOT
    assert any("is the secret the same?" in line for line in logs)


def test_what_was_changed_on_its_way_and_what_is_no_message_is_dropped(peer: Peer) -> None:
    (sender, _), (receiver, inbox) = peer(), peer()
    sealed = sender._sealed(GOT)
    host, _, port = receiver.address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        for data in (sealed.replace(b"false", b"true "), b"", b"\n", b"\xff" * 4000, sealed[:-1]):
            wire.sendto(data, (host, int(port)))
    sender.send("b", receiver.address, ASKED)
    assert inbox.next() == ASKED


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:x", "203.0.113.1:9"])
def test_an_address_that_leads_nowhere_costs_nothing(peer: Peer, address: str) -> None:
    sender, _ = peer()
    sender.send("b", address, ASKED)


def test_an_address_of_another_machine_is_refused_in_a_sentence() -> None:
    with pytest.raises(GatewayError, match=r"cannot listen at 203\.0\.113\.1:0 for the other nodes"):
        UdpPeers("203.0.113.1:0", cluster="c", secret="s", receiver=Inbox)
