"""The link to Ray: `python -m rekindle.actors.gateways.ray.link STATE_DIR ADDRESS IP CLUSTER [ATTACHMENT]`.

A process of its own, supervised by Rekindle, and the only one that imports `ray`. It takes orders from the
engine over a socket (Ray writes to standard output) and tells it every second which machines are alive. It
may end or hang at any time: Ray's own code ends it when the head is away for a minute, and its supervisor
when it sends no keep-alive. A connection that closes ends it. IP is that of this machine's Ray; - for any.
ATTACHMENT is how agents are started on a Ray that was there before.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import msgspec
import ray
from ray.exceptions import RayError
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)

from ...cluster.engine_messages import RoomClaim
from ..settings.ray_attachment import Attachment
from .agent_launch import connected, first_line, living_machines, started
from .link_frames import Away, Keep, Machines, Order, RayMachine, Reserve, Reserved, WantAgent
from .link_socket import connect
from .reservations import FREES_S, NewGroup, OwnGroup, group_of, has_machine, name_of, settle, why_not

SPEAKS_S = 1.0
HANGS_S = 3.0
TICK_S = 0.02


class PendingClaim(NamedTuple):
    """A claim for which Ray is looking for room."""

    number: int
    group: str
    since: float


class RayLink:
    """Carries out the orders of one engine."""

    def __init__(self, engine: socket.socket, cluster: str, attachment: Attachment | None = None) -> None:
        self._engine, self._cluster, self._attachment = engine, cluster, attachment
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._pending: list[PendingClaim] = []
        self._machines: tuple[RayMachine, ...] = ()
        self._spoke = 0.0
        self._serials = itertools.count()
        self._life = f"{os.getpid():x}-{time.time_ns():x}"
        """Makes the names of groups unique: Ray refuses a name twice."""
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, news: Machines | Away | Reserved) -> None:
        """Tell the engine."""
        self._engine.sendall(msgspec.json.encode(news) + b"\n")

    def join(self, address: str, ip: str) -> None:
        """Connect to Ray, as often as it takes."""
        while (why := connected(address, ip)) is not None:
            notify(f"WATCHDOG=1\nSTATUS={why}")
            self.say(Away(why))
            time.sleep(SPEAKS_S)
        threading.Thread(target=self._watch, daemon=True).start()

    def work(self) -> None:
        """Carry out orders and tell the news, forever."""
        while True:
            with suppress(Empty):
                self._carry_out(self._orders.get(timeout=TICK_S if self._pending else SPEAKS_S / 4))
            self._look_at_pending()
            if time.monotonic() - self._spoke >= SPEAKS_S:
                self._machines = living_machines()
                self.say(Machines(self._machines))
                notify("WATCHDOG=1\nSTATUS=Ray answers")
                self._spoke = time.monotonic()

    def _watch(self) -> None:
        """Say so if Ray holds the main thread: it does while its head is away."""
        while True:
            time.sleep(SPEAKS_S)
            if self._spoke and time.monotonic() - self._spoke > HANGS_S:
                notify("STATUS=Ray does not answer")

    def _listen(self) -> None:
        decoder, rest = msgspec.json.Decoder(Order), b""
        with suppress(OSError, msgspec.DecodeError):
            while data := self._engine.recv(65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._orders.put(decoder.decode(line))
        os._exit(0)  # also while Ray holds the main thread

    def _carry_out(self, order: Order) -> None:
        match order:
            case Reserve(number=number, claim=claim):
                self._reserve(number, claim)
            case Keep(claims=claims):
                settlement = settle(self._groups(), claims, self._machines)
                for id_ in settlement.remove:
                    _remove(id_)
                for request in settlement.make:
                    self._make(request)
            case WantAgent(engine_node=address):
                self._start_agent(address)

    def _reserve(self, number: int, claim: RoomClaim) -> None:
        if not has_machine(claim, self._machines):
            self.say(Reserved(number))
            return
        settlement = settle(self._groups(), (claim,), self._machines, all_=False)
        for id_ in settlement.remove:
            _remove(id_)
        group = settlement.kept.get(claim.component_id)
        try:
            group = group or self._make(settlement.make[0])
        except (ValueError, RayError) as error:
            self.say(Reserved(number, f"Ray refuses the reservation: {first_line(error)}"))
        else:
            # The demand of this worker may have taken the very room that it needs, and Ray frees it slowly.
            settled = time.monotonic() + (FREES_S if settlement.remove else 0.0)
            self._pending.append(PendingClaim(number, group, settled))

    def _make(self, request: NewGroup) -> str:
        group = placement_group(
            [dict(request.bundle)],
            strategy="STRICT_PACK",
            name=name_of(self._cluster, request, f"{self._life}-{next(self._serials)}"),
            lifetime="detached",
            bundle_label_selector=[dict(request.selector)],
        )
        return str(group.id.hex())

    def _start_agent(self, address: str) -> None:
        """On a machine of a Ray that was there before; on others no agent is ours to start."""
        machine = next((each for each in self._machines if each.address == address), None)
        if self._attachment is not None and machine is not None:
            started(self._attachment, machine, self._machines)

    def _look_at_pending(self) -> None:
        if not self._pending:
            return
        groups, now = {each.id: each for each in self._groups()}, time.monotonic()
        undecided = []
        for each in self._pending:
            why = why_not(groups.get(each.group), now - each.since)
            if why is None:
                undecided.append(each)
                continue
            if why and each.group in groups:
                _remove(each.group)
            self.say(Reserved(each.number, why or None))
        self._pending = undecided

    def _groups(self) -> list[OwnGroup]:
        rows: dict[str, dict[str, Any]] = placement_group_table()
        found = (group_of(self._cluster, row) for row in rows.values())
        return [group for group in found if group is not None]


def _remove(group_id: str) -> None:
    remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(group_id))))


def notify(state: str) -> None:
    """Tell the supervisor, as programs for systemd do."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        if path:
            sender.sendto(state.encode(), f"\0{path[1:]}" if path.startswith("@") else path)


def main(state_dir: str, address: str, ip: str, cluster: str, attachment: str = "") -> None:
    """Serve the engine of a state directory until it closes the connection."""
    attached = msgspec.json.decode(attachment, type=Attachment) if attachment else None
    link = RayLink(connect(state_dir), cluster, attached)
    notify("READY=1\nSTATUS=joins Ray")
    link.join(address, ip)
    link.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
