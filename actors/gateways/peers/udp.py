"""`UdpPeers`: promises between agents, in datagrams that carry an HMAC.

A datagram is a line of JSON, a line break and the HMAC-SHA256 of the line in hexadecimal, by the secret that
all nodes share and the name of the cluster. What is not signed so is dropped. A replayed answer extends
nothing: it belongs to no request that waits. Datagrams may be lost, late or doubled; the rules count on that.
"""

from __future__ import annotations

import hmac
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import pbkdf2_hmac, sha256

import msgspec
from loguru import logger

from ...cluster.facts.promises import PromiseAsked, PromiseGot
from ...ports import Receiver
from ...runtime.resilient_actor import tell
from ..gateway_errors import GatewayError

LONGEST = 4096
CLOSE_S = 5.0
DIGEST_ROUNDS = 100_000
"""So that a short secret cannot be guessed from its digest in no time."""
_KINDS = {"asked": PromiseAsked, "got": PromiseGot}


class _Letter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    body: msgspec.Raw


def digest(secret: str, cluster: str) -> str:
    """What says whether two nodes have the same secret, and not what it is."""
    return pbkdf2_hmac("sha256", secret.encode(), f"rekindle cluster {cluster}".encode(), DIGEST_ROUNDS).hex()


class UdpPeers:
    """The `Peers` port. One thread receives; sending never waits."""

    def __init__(
        self, listen: str, *, cluster: str, secret: str, receiver: Callable[[], Receiver | None]
    ) -> None:
        """Open the socket.

        Raises:
            GatewayError: the address is not one of this machine, or is in use.
        """
        self._key = hmac.digest(secret.encode(), f"rekindle promises {cluster}".encode(), "sha256")
        self._receiver = receiver
        self._refused = 0
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
            self._socket = socket.socket(family, kind)
        except OSError as error:
            raise _unusable(listen, error) from None
        try:
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            raise _unusable(listen, error) from None
        bound = self._socket.getsockname()
        self.address = f"[{bound[0]}]:{bound[1]}" if family == socket.AF_INET6 else f"{bound[0]}:{bound[1]}"
        """Where the others reach it."""
        self._closed = False
        self._thread = threading.Thread(target=self._receive, name="rekindle-peers", daemon=True)
        self._thread.start()

    def send(self, node_id: str, address: str, message: PromiseAsked | PromiseGot) -> None:
        """Send a message to the agent of a node; what cannot be sent is lost."""
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            return
        with suppress(OSError):
            self._socket.sendto(self._sealed(message), (host.strip("[]"), int(port)))

    def close(self) -> None:
        """Close the socket and end the thread."""
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)
        with suppress(OSError):  # wakes a receiver that the shutdown of a datagram socket does not
            self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join(CLOSE_S)
        self._socket.close()

    def _sealed(self, message: PromiseAsked | PromiseGot) -> bytes:
        kind = "asked" if isinstance(message, PromiseAsked) else "got"
        line = msgspec.json.encode({"kind": kind, "body": message})
        return line + b"\n" + hmac.new(self._key, line, sha256).hexdigest().encode()

    def _opened(self, data: bytes) -> PromiseAsked | PromiseGot | None:
        """The message; None if it is not signed by a node of this cluster."""
        line, _, seal = data.rpartition(b"\n")
        if not hmac.compare_digest(hmac.new(self._key, line, sha256).hexdigest().encode(), seal):
            return None
        try:
            letter = msgspec.json.decode(line, type=_Letter)
            message: PromiseAsked | PromiseGot = msgspec.json.decode(letter.body, type=_KINDS[letter.kind])
        except (msgspec.DecodeError, KeyError):
            return None
        return message

    def _receive(self) -> None:
        while not self._closed:
            try:
                data, sender = self._socket.recvfrom(LONGEST)
            except OSError:
                continue
            message = self._opened(data)
            if message is not None:
                tell(self._receiver(), message)
            elif data:
                self._refuse(sender)

    def _refuse(self, sender: object) -> None:
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:  # the 1st, 2nd, 4th …
            whence = sender[0] if isinstance(sender, tuple) else sender
            logger.warning(
                "cluster: a message from {} has a wrong signature ({} so far): is the secret the same?",
                str(whence),
                self._refused,
            )


def _unusable(listen: str, error: OSError) -> GatewayError:
    return GatewayError(f"cannot listen at {listen} for the other nodes: {error.strerror}")
