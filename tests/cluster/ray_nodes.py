"""Two nodes with a Ray each, on loopback addresses of this machine, and another user of their Ray."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from typing import Self

import psutil
from tests.cluster.nodes import Nodes, until

from rekindle.actors.gateways.ray.ray_node import LINK, PORTS, RAY, TOKEN_NAME, token_environment
from rekindle.cli.client import ControlClient, ControlError
from rekindle.worker.guardian import is_zombie

HEAD, OTHER = "127.0.0.2", "127.0.0.3"
"""Not 127.0.0.1, for which Ray takes another address of the machine."""
WORKERS = 4

_USER = f"""
import sys, ray
from ray.util.placement_group import placement_group, placement_group_table
ray.init(sys.argv[1], _node_ip_address={HEAD!r}, namespace="user", log_to_driver=False, logging_level=40)
def reserve(name, lifetime, amount, node):
    return placement_group([{{"slots": amount}}], name=name, lifetime=lifetime,
                           bundle_label_selector=[{{"rekindle.node": node}}])
for command in sys.stdin:
    word, node = command.split()
    if word == "take":
        assert reserve("mine", None, 1, node).wait(10)
    if word == "leak":
        assert reserve(f"rekindle test worker:gone:0 1 {{node}} {{node}} x", "detached", 0.01, node).wait(10)
    names = [row["name"].split() for row in placement_group_table().values() if row["state"] == "CREATED"]
    print("reserved", *(name[2] for name in names if name[0] == "rekindle"), flush=True)
"""
"""Another user of Ray: takes a slot of a node, or leaves a reservation as a killed agent would."""


class RayUser:
    """A driver of Ray that is not ours."""

    def __init__(self, nodes: RayNodes) -> None:
        environment = {**os.environ, **token_environment(nodes.nodes.folder / "k1" / TOKEN_NAME)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _USER, nodes.head],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def say(self, word: str, node_id: str = "-") -> list[str]:
        """Carry out a word; the workers that have a reservation then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word} {node_id}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:  # Ray writes there, too
            if line.startswith("reserved"):
                return sorted(line.split()[1:])
        raise AssertionError("the user of Ray has ended")


class RayNodes:
    """A head and a further node, with room for two workers each."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        port = _free_ports()
        self.head = f"{HEAD}:{port}"
        nodes.workers(WORKERS, place="{ needs = { slots = 1 } }")
        self.describe("k1", HEAD, port)
        self.describe("k2", OTHER, port + PORTS, f'join = ["{self.head}"]')

    def describe(self, name: str, ip: str, port: int, more: str = "") -> None:
        """Write the file of a node."""
        engine = f'engine = "ray"\nlisten = "{ip}:0"\nray_port = {port}\n{more}'
        self.nodes.describe(name, cluster=f"{engine}\ncapacity = {{ cpu = 1, slots = 2 }}")

    def up(self) -> None:
        """Start both nodes, and wait until Ray answers them."""
        self.nodes.start("k1", command="up")
        self.until_answers("k1")
        self.nodes.start("k2")
        self.until_answers("k2")
        until(lambda: self.nodes.hold_leases("k1", "k2"), "the nodes to join")

    def until_answers(self, *names: str) -> None:
        """Wait until the links of these nodes are connected to Ray, and their engines know it."""
        for name in names:
            until(partial(self._answers, name), f"the Ray of {name}")

    def _answers(self, name: str) -> bool:
        return self.says(name) == "Ray answers"

    def says(self, name: str) -> str:
        """What the link of a node says of Ray."""
        return str(self._shown(name, LINK).get("said"))

    def pid(self, name: str) -> int | None:
        """The process of a node's Ray."""
        found = self._shown(name, RAY).get("pid")
        return found if isinstance(found, int) else None

    def kill_ray(self, name: str) -> int:
        """Kill all processes of a node's Ray; returns the pid of the first one."""
        pid = self.pid(name)
        assert pid is not None
        process = psutil.Process(pid)
        family = [process.pid, *(each.pid for each in process.children(recursive=True))]
        for each in family:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        until(lambda: all(is_zombie(each) for each in family), "Ray to be dead")
        return pid

    def _shown(self, name: str, component_id: str) -> dict[str, object]:
        client = ControlClient(str(self.nodes.folder / name / "control.sock"))
        with suppress(ControlError, OSError):
            return dict(client.get(f"/workers/{component_id}"))
        return {}

    def placed(self) -> dict[str, int]:
        """How many workers each node has; `-` for those without one."""
        return dict(Counter(place or "-" for place in self.nodes.places().values()))

    def ids(self) -> dict[str, str]:
        """The ids of the nodes, by name."""
        return {node["name"]: node["id"] for node in self.nodes.status()["nodes"]}


def _free_ports() -> int:
    """The first port of a range for two nodes, below those that the kernel gives away."""
    for base in random.sample(range(11_000, 30_000, 2 * PORTS), 10):
        with ExitStack() as stack, suppress(OSError):
            for port in (*range(base, base + 7), *range(base + PORTS, base + PORTS + 7)):
                stack.enter_context(socket.socket()).bind(("", port))
            return base
    raise AssertionError("no range of ports is free")
