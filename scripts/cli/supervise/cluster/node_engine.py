"""The engine of a node, and the workers of Rekindle's own that it needs on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors import WorkerSpec
from rekindle.actors.cluster.cluster_ports import Engine
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.no_engine import NoEngine
from rekindle.actors.gateways.ray.head_check import is_reached
from rekindle.actors.gateways.ray.ray_engine import RayEngine
from rekindle.actors.gateways.ray.ray_node import RayNode, attached_link
from rekindle.actors.ports import Receiver

from ...config.file_tables import ClusterSettings


@dataclass(frozen=True, slots=True)
class NodeEngine:
    """The engine as the Coordinator of a node uses it."""

    port: Engine
    specs: tuple[WorkerSpec, ...] = ()
    """Workers that belong to the node itself."""
    close: Callable[[], None] = lambda: None


def engine_of(
    settings: ClusterSettings,
    secret: str,
    machine: Node,
    state_dir: Path,
    receiver: Callable[[], Receiver | None],
) -> NodeEngine:
    """Put the engine of a node together.

    Raises:
        GatewayError: the socket for the link to Ray cannot be opened.
    """
    if settings.engine == "none":
        return NodeEngine(NoEngine())
    specs: tuple[WorkerSpec, ...]
    if settings.attached is None:
        node = ray_node(settings, secret, machine, state_dir)
        node.write_token()
        specs = node.specs()
    else:
        specs = (attached_link(state_dir, settings.attached, settings.name),)
    engine = RayEngine(state_dir, receiver)
    return NodeEngine(engine, specs, engine.close)


def ray_node(settings: ClusterSettings, secret: str, machine: Node, state_dir: Path) -> RayNode:
    """The Ray that this machine runs; a file without `join` is that of the head."""
    head = next(filter(is_reached, settings.join), "".join(settings.join[:1]))
    return RayNode(
        node_id=machine.id,
        cluster=settings.name,
        ip=machine.address.rpartition(":")[0].strip("[]"),
        state_dir=state_dir,
        secret=secret,
        head=head,
        port=settings.ray_port,
        capacity=machine.capacity.amounts,
        labels=machine.labels,
    )
