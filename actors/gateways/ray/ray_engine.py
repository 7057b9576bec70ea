"""`RayEngine`: the `Engine` port, on the agent's side of the link.

It owns the connection to the link process, and whether Ray answers. One thread accepts the link and reads,
another writes; the calls of the port put a frame into a queue. If the link is silent for `SILENCE_S`, or says
that Ray is away, the engine is away: claims are answered with `EngineSilent`, and nothing is sent.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import msgspec
from loguru import logger

from ...cluster.engine_messages import (
    EngineAnswered,
    EngineSilent,
    NodeOffered,
    NodeWithdrawn,
    RoomClaim,
    RoomDenied,
    RoomGranted,
)
from ...cluster.facts.nodes import Resources
from ...ports import Receiver
from ...runtime.resilient_actor import tell
from .link_frames import Away, Keep, Machines, News, Order, RayMachine, Reserve, Reserved, WantAgent
from .link_socket import listen
from .reservations import NODE_LABEL, bundle

SILENCE_S = 4.0
"""The link speaks every second while Ray answers."""
GLANCE_S = 0.5
WRITE_S = 5.0
CLOSE_S = 5.0
MOST_WAITING = 10_000


class RayEngine:
    """Asks the link to reserve room, and tells its news to the Coordinator."""

    def __init__(self, state_dir: Path, receiver: Callable[[], Receiver | None]) -> None:
        """Open the socket for the link.

        Raises:
            GatewayError: it cannot be opened.
        """
        self._receiver = receiver
        self._listening = listen(state_dir)
        self._listening.settimeout(GLANCE_S)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[RoomClaim, Receiver]] = {}
        self._machines: dict[str, RayMachine] = {}
        self._link: socket.socket | None = None
        self._why_away = "the link to Ray has not started yet"
        """Empty while Ray answers."""
        self._frames: SimpleQueue[Order | None] = SimpleQueue()
        self._closing = threading.Event()
        self._threads = tuple(
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._receive, "rekindle-ray"), (self._send, "rekindle-ray-out"))
        )
        for thread in self._threads:
            thread.start()

    # ── the port ─────────────────────────────────────────────────────────────────────────

    def reserve(self, claim: RoomClaim, receiver: Receiver) -> None:
        """Reserve room for a worker; one that needs nothing is granted."""
        if not bundle(claim.needs.amounts):
            tell(receiver, RoomGranted(claim))
        elif self._why_away:
            tell(receiver, EngineSilent(self._why_away))
        else:
            number = next(self._numbers)
            if len(self._waiting) >= MOST_WAITING:  # the coordinator has continued without these answers
                self._waiting.clear()
            self._waiting[number] = claim, receiver
            self._frames.put(Reserve(number, claim))

    def keep(self, claims: tuple[RoomClaim, ...]) -> None:
        """Have exactly these reservations."""
        if not self._why_away:
            self._frames.put(Keep(tuple(each for each in claims if bundle(each.needs.amounts))))

    def want_agent(self, engine_node: str) -> None:
        """Have an agent run on a machine."""
        if not self._why_away:
            self._frames.put(WantAgent(engine_node))

    def close(self) -> None:
        """Close the sockets and end the threads; reservations stay for the next coordinator."""
        self._closing.set()
        self._frames.put(None)
        self._drop()
        for thread in self._threads:
            thread.join(CLOSE_S)
        self._listening.close()

    # ── the link ─────────────────────────────────────────────────────────────────────────

    def _receive(self) -> None:
        while not self._closing.is_set():
            try:
                link, _ = self._listening.accept()
            except OSError:
                continue
            link.settimeout(GLANCE_S)
            self._link = link
            why = "the link to Ray has ended"
            try:
                self._follow(link)
            except (OSError, msgspec.DecodeError) as error:
                why = f"the link to Ray does not speak as it should: {error}"
            self._drop()
            link.close()
            if not self._closing.is_set():
                self._is_away(why)

    def _follow(self, link: socket.socket) -> None:
        rest, heard = b"", time.monotonic()
        decoder = msgspec.json.Decoder(News)
        while not self._closing.is_set():
            try:
                data = link.recv(65536)
            except TimeoutError:
                if time.monotonic() - heard > SILENCE_S:
                    self._is_away("Ray does not answer")
                continue
            if not data:
                return
            heard = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(decoder.decode(line))

    def _take(self, news: News) -> None:
        match news:
            case Machines(machines=machines):
                self._is_back()
                self._offer(machines)
            case Away(why=why):
                self._is_away(why)
            case Reserved(number=number, why_not=why_not):
                claim, receiver = self._waiting.pop(number, (None, None))
                if claim is not None:
                    tell(receiver, RoomGranted(claim) if why_not is None else RoomDenied(claim, why_not))

    def _is_away(self, why: str) -> None:
        has_changed, self._why_away = why != self._why_away, why
        self._waiting.clear()
        if has_changed:
            tell(self._receiver(), EngineSilent(why))

    def _is_back(self) -> None:
        if self._why_away:
            self._why_away = ""
            tell(self._receiver(), EngineAnswered())

    def _offer(self, machines: tuple[RayMachine, ...]) -> None:
        """Tell what has changed. While Ray is away the last offers serve."""
        before, self._machines = self._machines, {_known_as(each): each for each in machines}
        for engine_node in before.keys() - self._machines.keys():
            gone = NodeWithdrawn(engine_node=engine_node, certain=False, why="Ray has lost it")
            tell(self._receiver(), gone)
        for engine_node, machine in self._machines.items():
            if before.get(engine_node) != machine:
                total = Resources(amounts=machine.total)
                offer = NodeOffered(engine_node=engine_node, labels=machine.labels, total=total, free=total)
                tell(self._receiver(), offer)

    # ── writing ──────────────────────────────────────────────────────────────────────────

    def _send(self) -> None:
        encoder = msgspec.json.Encoder(enc_hook=_plain)
        while (frame := self._frames.get()) is not None:
            link = self._link
            if link is None:
                continue
            try:
                _send_all(link, encoder.encode(frame) + b"\n")
            except OSError as error:
                logger.warning("cluster: the link to Ray takes no orders, and is dropped: {}", str(error))
                self._drop()

    def _drop(self) -> None:
        """Close the connection; the link ends by that, and its supervisor starts it again."""
        link, self._link = self._link, None
        if link is not None:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


def _send_all(link: socket.socket, data: bytes) -> None:
    """Send it all, however short the time-out of the socket is."""
    deadline = time.monotonic() + WRITE_S
    left = memoryview(data)
    while left:
        try:
            left = left[link.send(left) :]
        except TimeoutError:
            if time.monotonic() > deadline:
                raise


def _plain(value: object) -> object:
    """Mappings of specs are proxies."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"cannot send {type(value).__name__}")


def _known_as(machine: RayMachine) -> str:
    """What a node calls its machine: its own id if Rekindle has started its Ray, else its address."""
    return machine.labels.get(NODE_LABEL) or machine.address
