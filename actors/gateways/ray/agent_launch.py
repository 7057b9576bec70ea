"""Starts agents on the machines of a Ray cluster: `python -m rekindle.actors.gateways.ray.agent_launch JSON`.

A task on each machine starts the keeper of its agent there, and ends. It finds an agent that runs already.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..settings.ray_attachment import Attachment
from .attached_machines import Attached, join_arguments, names
from .head_check import refusal
from .link_frames import RayMachine
from .reservations import amounts

NAMESPACE = "rekindle"
STARTS_S = 60.0
"""How long Ray may take for a process of its own on each machine."""


def connected(address: str, ip: str) -> str | None:
    """Connect to Ray; why not, in a sentence. The ip is that of this machine's Ray; - for any."""
    if (why := refusal(address)) is not None:
        return why
    here: dict[str, Any] = {} if ip == "-" else {"_node_ip_address": ip}
    try:
        ray.init(address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR, **here)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is tried again
        with suppress(Exception):
            ray.shutdown()
        return f"cannot join Ray at {address}: {first_line(error)}"
    return None


def living_machines() -> tuple[RayMachine, ...]:
    """The machines of Ray that are alive."""
    nodes: Any = ray.nodes  # it has no types
    return tuple(
        RayMachine(
            ray_id=node["NodeID"],
            address=node["NodeManagerAddress"],
            host=node["NodeManagerHostname"],
            labels=node["Labels"],
            total=amounts(node["Resources"]),
        )
        for node in nodes()
        if node["Alive"]
    )


def started(attachment: Attachment, machine: RayMachine, machines: tuple[RayMachine, ...]) -> Any:
    """Have the agent of a machine run; a reference to what comes of it: why not, or nothing."""
    arguments = join_arguments(attachment, machine, names(machines)[machine.address])
    where = NodeAffinitySchedulingStrategy(node_id=machine.ray_id, soft=False)
    on_a_machine: Any = ray.remote  # its types do not know where
    task = on_a_machine(num_cpus=0, max_retries=0, scheduling_strategy=where)(_start_here)
    return task.remote(attachment.file, arguments)


def _start_here(file: str, arguments: tuple[str, ...]) -> str:
    """On that machine: start the keeper of its agent; why not, or nothing."""
    if not Path(file).is_file():
        return f"{file} is not there: put the same file on each machine"
    state_dir = next(each for each in arguments if each.startswith("--state=")).partition("=")[2]
    command = (sys.executable, "-m", "rekindle", *arguments)
    keeper = (sys.executable, "-m", "rekindle.actors.gateways.ray.agent_keeper", state_dir, *command)
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("RAY_") or name.startswith("RAY_AUTH_")
    }
    return subprocess.run(
        keeper, cwd=Path(file).parent, env=kept, capture_output=True, text=True, check=False
    ).stderr.strip()[-300:]


def first_line(error: Exception) -> str:
    """What an error of Ray says first."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def main(text: str) -> int:
    """Start an agent on each machine, and print what came of each as a line of JSON."""
    attachment = msgspec.json.decode(text, type=Attachment)
    if (why := connected(attachment.ray, "-")) is not None:
        sys.stderr.write(f"{why}\n")
        return 1
    machines = living_machines()
    for machine, reference in [(each, started(attachment, each, machines)) for each in machines]:
        try:
            why_not = str(ray.get(reference, timeout=STARTS_S))
        except (RayError, ImportError) as error:
            last = str(error).strip().splitlines() or [type(error).__name__]
            why_not = last[-1][:300]
        found = Attached(machine.address, names(machines)[machine.address], why_not)
        sys.stdout.write(f"\n{msgspec.json.encode(found).decode()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
