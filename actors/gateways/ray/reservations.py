"""Pure: reservations as placement groups of Ray.

A group of one bundle stands for a worker on a node. Its name carries what it is for, so that any link can
tell which groups belong to its cluster, and which of them leaked because an agent was killed:

    rekindle CLUSTER COMPONENT EPOCH NODE PIN SERIAL        NODE and PIN are - for demand

EPOCH is the one that the claim knew. PIN is the value of the label that ties the group to its machine: a
group that is tied to a machine which has another identity by now matches no claim, and is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from ...cluster.engine_messages import RoomClaim
from .link_frames import RayMachine

NODE_LABEL = "rekindle.node"
"""The label of a machine whose Ray was started by Rekindle; its value is the id of the node."""
RAY_LABEL = "ray.io/node-id"
MIB = 1024.0 * 1024.0
FINEST = 1e-4
"""Ray counts in ten-thousandths."""
SETTLES_S = 0.5
"""How long Ray may look for room: what was removed a moment ago is not free at once."""
FREES_S = 3.0
"""How long Ray may take until it gives away what was reserved for something else."""

_RAYS_NAME = {"cpu": "CPU", "gpu": "GPU"}
_NO_ROOM = ("NO_RESOURCES", "INFEASIBLE")


class OwnGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A placement group of this cluster that was not removed."""

    id: str
    component_id: str
    epoch: int
    node_id: str
    pin: str
    bundle: Mapping[str, float]
    is_created: bool = False
    scheduling: str = ""


class NewGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group to make."""

    claim: RoomClaim
    pin: str = "-"
    bundle: Mapping[str, float]
    selector: Mapping[str, str]


class GroupChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, so that exactly the wanted reservations are there."""

    make: tuple[NewGroup, ...] = ()
    remove: tuple[str, ...] = ()
    kept: Mapping[str, str] = {}
    """By component: the group that serves its claim."""


def bundle(needs: Mapping[str, float]) -> dict[str, float]:
    """What a copy needs, by Ray's names."""
    found = {}
    for name, amount in needs.items():
        if amount <= 0:
            continue
        if name == "memory_mb":
            found["memory"] = math.ceil(amount) * MIB
        else:
            found[_RAYS_NAME.get(name, name)] = max(FINEST, round(amount, 4))
    return found


def amounts(resources: Mapping[str, float]) -> dict[str, float]:
    """What a machine has, by Rekindle's names; without what Ray counts for itself."""
    ours = {rays: name for name, rays in _RAYS_NAME.items()}
    found = {}
    for name, amount in resources.items():
        if name == "memory":
            found["memory_mb"] = float(math.floor(amount / MIB))
        elif name != "object_store_memory" and not name.startswith(("node:", "bundle_", "accelerator_type:")):
            found[ours.get(name, name)] = amount
    return found


def name_of(cluster: str, request: NewGroup, serial: str) -> str:
    """The name of a group."""
    claim = request.claim
    words = (claim.component_id, str(claim.epoch), claim.node_id or "-", request.pin, serial)
    return " ".join(("rekindle", cluster, *words))


def group_of(cluster: str, row: Mapping[str, object]) -> OwnGroup | None:
    """A row of Ray's table as a group of this cluster; None if it is another's, or was removed."""
    words = str(row.get("name", "")).split(" ")
    state = row.get("state")
    if (
        len(words) != 7
        or words[:2] != ["rekindle", cluster]
        or state == "REMOVED"
        or not words[3].isdecimal()
    ):
        return None
    bundles, stats = row.get("bundles"), row.get("stats")
    return OwnGroup(
        id=str(row["placement_group_id"]),
        component_id=words[2],
        epoch=int(words[3]),
        node_id=words[4],
        pin=words[5],
        bundle=bundles.get(0, {}) if isinstance(bundles, Mapping) else {},
        is_created=state == "CREATED",
        scheduling=str(stats.get("scheduling_state", "")) if isinstance(stats, Mapping) else "",
    )


def machine_of(claim: RoomClaim, machines: Iterable[RayMachine]) -> RayMachine | None:
    """The machine of a node: the one that Rekindle has started for it, else the one at its address."""
    at_address = None
    for each in machines:
        if each.labels.get(NODE_LABEL) == claim.node_id:
            return each
        if each.address == claim.engine_node and NODE_LABEL not in each.labels:
            at_address = each
    return at_address


def has_machine(claim: RoomClaim, machines: Iterable[RayMachine]) -> bool:
    """Whether Ray can judge a claim: it has the machine of its node now, or the claim is for any machine.

    While the Ray of a node starts again, as all do after their head was away for a minute, the node lives by
    its lease and has the capacity that it declares; the reservation is made when its Ray is back.
    """
    return claim.node_id is None or machine_of(claim, machines) is not None


def request_of(claim: RoomClaim, machines: Iterable[RayMachine]) -> NewGroup | None:
    """The group for a claim; None if Ray has no machine for its node now."""
    needs = bundle(claim.needs.amounts)
    if claim.node_id is None:
        return NewGroup(claim=claim, bundle=needs, selector=dict(claim.labels))
    machine = machine_of(claim, machines)
    if machine is None:
        return None
    label = NODE_LABEL if NODE_LABEL in machine.labels else RAY_LABEL
    pin = machine.labels.get(label, machine.ray_id)
    return NewGroup(claim=claim, pin=pin, bundle=needs, selector={label: pin})


def settle(
    groups: Iterable[OwnGroup],
    claims: Iterable[RoomClaim],
    machines: tuple[RayMachine, ...],
    *,
    all_: bool = True,
) -> GroupChanges:
    """Match groups with claims, the newest first; with `all_`, groups without a claim are removed.

    Otherwise only those of the components that are claimed. A claim whose machine is away keeps its group.
    """
    make: list[NewGroup] = []
    kept: dict[str, str] = {}
    left: dict[str, list[OwnGroup]] = {}
    for group in sorted(groups, key=lambda each: -each.epoch):
        left.setdefault(group.component_id, []).append(group)
    stale = [] if not all_ else [id_ for id_ in left if id_ not in {each.component_id for each in claims}]
    remove = [group.id for id_ in stale for group in left[id_]]
    for claim in claims:
        request = request_of(claim, machines)
        found = next(
            (each for each in left.get(claim.component_id, ()) if _serves(each, claim, request)), None
        )
        if found is not None:
            kept[claim.component_id] = found.id
        elif request is not None and request.bundle:
            make.append(request)
        remove += [each.id for each in left.get(claim.component_id, ()) if each is not found]
    return GroupChanges(make=tuple(make), remove=tuple(remove), kept=kept)


def _serves(group: OwnGroup, claim: RoomClaim, request: NewGroup | None) -> bool:
    if group.node_id != (claim.node_id or "-") or group.epoch > claim.epoch:
        return False
    if group.bundle.keys() != (needs := bundle(claim.needs.amounts)).keys():
        return False
    is_same = all(abs(group.bundle[name] - amount) < FINEST for name, amount in needs.items())
    return is_same and (request is None or request.pin == group.pin)


def why_not(group: OwnGroup | None, waited_s: float) -> str | None:
    """Why a pinned claim is denied; empty if it is granted, None if Ray has not decided yet."""
    if group is None:
        return "Ray has removed the reservation"
    if group.is_created:
        return ""
    if group.scheduling in _NO_ROOM and waited_s > SETTLES_S:
        needs = ", ".join(f"{name}={amount:g}" for name, amount in amounts(group.bundle).items())
        return f"Ray has no room for {needs} ({group.scheduling})"
    return None
