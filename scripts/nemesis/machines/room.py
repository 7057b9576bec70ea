"""The machines of a run, and the switch that joins them.

    machine ── its cable ──▶ segment "left" or "right" of the switch, or none

A cable that is in no segment loses every packet, and neither end notices. Two machines lose each other
while all others reach both, if each sends to a hardware address that is not there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Self

from .machine import Machine
from .namespaces import DIES_WITH_US, RoomError, namespace, obstacle, run, wait_for

NETWORK = "10.77.0"
SEGMENTS = ("left", "right")
CLOCKS_APART_S = 3600
"""No decision of two machines may depend on their clocks."""
NOWHERE = "02:00:00:00:00:fe"
"""No machine has this hardware address."""


class Room:
    """Machines that can be cut off, split, slowed down and killed."""

    def __init__(self) -> None:
        """Make the switch.

        Raises:
            RoomError: namespaces are not allowed here.
        """
        if (why := obstacle()) is not None:
            raise RoomError(why)
        self.machines: dict[str, Machine] = {}
        self._stack = ExitStack()
        ours = namespace(os.getpid(), "net")
        switch = subprocess.Popen(
            [*DIES_WITH_US, "unshare", "--net", "sleep", "infinity"], start_new_session=True
        )
        self._switch = switch
        self._stack.callback(switch.wait)
        self._stack.callback(switch.kill)
        wait_for(lambda: _differs(switch.pid, ours), "the switch to start")
        for segment in SEGMENTS:
            self._on_switch("ip", "link", "add", "name", segment, "type", "bridge", "forward_delay", 0)
            self._on_switch("ip", "link", "set", segment, "up")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Power everything off; the kernel removes networks and cables."""
        for machine in self.machines.values():
            machine.power_off()
        self._stack.close()

    def add(self, name: str) -> Machine:
        """A new machine, without power."""
        number = len(self.machines) + 1
        hardware = f"02:00:00:00:00:{number:02x}"
        machine = Machine(name, f"{NETWORK}.{number}", hardware, number * CLOCKS_APART_S)
        self.machines[name] = machine
        return machine

    def power_on(self, name: str) -> None:
        """Give a machine power, plug its cable in, and let it start its service."""
        machine = self.machines[name]
        if machine.is_on:
            return
        machine.power_on()
        port = ("ip", "link", "add", "name", name, "type", "veth", "peer", "name", "eth0")
        self._on_switch(*port, "netns", machine.init)
        self._on_switch("ip", "link", "set", "dev", name, "master", SEGMENTS[0], "up")
        machine.run("ip", "link", "set", "dev", "eth0", "address", machine.hardware)
        machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
        machine.run("ip", "link", "set", "eth0", "up")
        machine.begin()

    # ── cables ───────────────────────────────────────────────────────────────────────────

    def cut(self, name: str) -> None:
        """Lose every packet from and to a machine, without a sign at either end."""
        self._port(name, "nomaster")

    def unplug(self, name: str) -> None:
        """The same, and both ends notice it."""
        self._port(name, "down")

    def plug(self, name: str, segment: str = SEGMENTS[0]) -> None:
        """Undo every cut of a cable."""
        self._port(name, "master", segment, "up")

    def split(self, others: Iterable[str]) -> None:
        """Have these machines reach each other, and none of the rest."""
        for name in others:
            self.plug(name, SEGMENTS[1])

    def lose(self, one: str, other: str) -> None:
        """Lose every packet between two machines."""
        for here, there in ((one, other), (other, one)):
            self._neighbour(here, "replace", there, "lladdr", NOWHERE, "nud", "permanent")

    def find(self, one: str, other: str) -> None:
        """Undo `lose`."""
        for here, there in ((one, other), (other, one)):
            known = self.machines[there].hardware
            self._neighbour(here, "replace", there, "lladdr", known, "nud", "reachable")

    def slow(self, name: str, delay_s: float) -> str:
        """Delay what a machine receives; returns how.

        A kernel without `netem` gets a line that is so narrow that packets wait for each other.
        """
        port = ("tc", "qdisc", "replace", "dev", name, "root")
        try:
            self._on_switch(*port, "netem", "delay", f"{delay_s * 1000:.0f}ms")
        except RoomError:
            rate = max(8, round(12 / delay_s))  # a full packet of 1,500 octets takes so long
            self._on_switch(*port, "tbf", "rate", f"{rate}kbit", "burst", 1600, "latency", "5s")
            return "narrow"
        return "delayed"

    def hurry(self, name: str) -> None:
        """Undo `slow`."""
        if self.machines[name].is_on:
            self._on_switch("tc", "qdisc", "replace", "dev", name, "root", "pfifo")

    def heal(self) -> None:
        """Undo everything that was done to cables."""
        for name, machine in self.machines.items():
            if machine.is_on:
                self.plug(name)
                self.hurry(name)
                for other in self.machines.values():
                    if other is not machine:
                        self._neighbour(
                            name, "replace", other.name, "lladdr", other.hardware, "nud", "reachable"
                        )

    def _port(self, name: str, *words: str) -> None:
        if self.machines[name].is_on:
            self._on_switch("ip", "link", "set", "dev", name, *words)

    def _neighbour(self, here: str, action: str, there: str, *words: str) -> None:
        if self.machines[here].is_on:
            address = self.machines[there].address
            self.machines[here].run("ip", "neighbour", action, address, "dev", "eth0", *words)

    def _on_switch(self, *words: str | int) -> None:
        run("nsenter", "--target", str(self._switch.pid), "--net", *words)


def _differs(pid: int, ours: str | None) -> bool | None:
    found = namespace(pid, "net")
    return True if found not in (None, ours) else None
