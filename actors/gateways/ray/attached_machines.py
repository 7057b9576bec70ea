"""Pure: how an agent is started on each machine of a Ray that was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ..settings.ray_attachment import Attachment
from .link_frames import RayMachine


class Attached(msgspec.Struct, frozen=True):
    """What came of a machine."""

    address: str
    name: str
    why_not: str = ""


def names(machines: Iterable[RayMachine]) -> dict[str, str]:
    """By address: what each machine is called. Its host's name, or its address if hosts share a name."""
    found = tuple(machines)
    hosts = Counter(each.host for each in found)
    return {
        each.address: each.host if each.host and hosts[each.host] == 1 else each.address.replace(":", "-")
        for each in found
    }


def join_arguments(attachment: Attachment, machine: RayMachine, name: str) -> tuple[str, ...]:
    """The words of `rekindle` that make a machine a node."""
    host = f"[{machine.address}]" if ":" in machine.address else machine.address
    state_dir = Path(attachment.state_dir)
    if name != machine.host:  # two nodes of Ray on one machine
        state_dir /= name
    options = {
        "ray": attachment.ray,
        "listen": f"{host}:{attachment.port}",
        "node": name,
        "state": str(state_dir),
    }
    return ("cluster", "join", attachment.file, *(f"--{key}={value}" for key, value in options.items()))
