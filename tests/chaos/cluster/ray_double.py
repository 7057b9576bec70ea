"""Ray in virtual time: its machines, its placement groups and its links, whose head may be away and back.

The decisions are those of the real link (`reservations`); what Ray does is as it was seen with Ray 2.60:
without its head nothing is answered, after a minute the raylets end, and their supervisors start them again,
one by one; a group that was removed holds its room a little longer.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rekindle.actors.cluster.engine_messages import (
    EngineAnswered,
    EngineSilent,
    RoomClaim,
    RoomDenied,
    RoomGranted,
)
from rekindle.actors.gateways.ray.link_frames import RayMachine
from rekindle.actors.gateways.ray.ray_engine import SILENCE_S
from rekindle.actors.gateways.ray.reservations import (
    FREES_S,
    NODE_LABEL,
    GroupChanges,
    NewGroup,
    OwnGroup,
    bundle,
    has_machine,
    settle,
    why_not,
)
from rekindle.actors.ports import Receiver
from rekindle.actors.simulation.cluster.virtual_engine import EnginePort, VirtualEngine

if TYPE_CHECKING:
    from rekindle.actors.simulation.cluster.cluster_run import ClusterRun
    from rekindle.actors.simulation.cluster.virtual_node import VirtualNode

TICK_S = 0.1
JOINS_S = 1.0, 90.0
"""How long the Ray of a machine takes to start and to join, with its attempts without a head."""
OUTLIVES_S = 60.0
"""How long raylets and links live without the head."""


class VirtualRay(VirtualEngine):
    """The head, and the machines that have joined it."""

    def __init__(self, run: ClusterRun) -> None:
        self.run = run
        self.groups: dict[str, OwnGroup] = {}
        self.ports: dict[str, LinkPort] = {}
        self._freeing: list[tuple[float, str]] = []
        """Room that is not free yet: until when, and on which machine."""
        self._joined: dict[str, float] = {}
        """By machine: from when on Ray has it."""
        self._serials = itertools.count()
        self._away_since: float | None = None
        self.answers_at = 0.0
        """When the links reach it again."""
        run.later(TICK_S, self._tick)

    @property
    def is_away(self) -> bool:
        """Whether the head is away."""
        return self._away_since is not None

    @is_away.setter
    def is_away(self, away: bool) -> None:
        now = self.run.clock.now
        if away and self._away_since is None:
            self._away_since = now
        elif not away and self._away_since is not None:
            lasted = now - self._away_since
            self._away_since = None
            is_long = lasted >= OUTLIVES_S
            self.answers_at = now + (self.run.chance.uniform(0.5, 15.0) if is_long else 0.2)
            if is_long:
                self._joined = {}
                self.groups = {id_: replace(each, is_created=False) for id_, each in self.groups.items()}
            for port in self.ports.values():
                port.goes_on(is_long)

    def away_for(self) -> float:
        """For how long nothing has answered."""
        return 0.0 if self._away_since is None else self.run.clock.now - self._away_since

    def port(self, node: VirtualNode) -> LinkPort:
        """The link of a node; the former one ended with its agent."""
        self.ports[node.id] = LinkPort(self, node)
        return self.ports[node.id]

    # ── what Ray does ────────────────────────────────────────────────────────────────────

    def machines(self) -> tuple[RayMachine, ...]:
        """Those that Ray has now."""
        now = self.run.clock.now
        return tuple(
            RayMachine(ray_id=f"ray-{id_}", address=id_, labels={NODE_LABEL: id_}, total={})
            for id_, since in self._joined.items()
            if since <= now
        )

    def make(self, request: NewGroup) -> str:
        """A placement group, which is created as soon as there is room."""
        claim, id_ = request.claim, f"pg{next(self._serials)}"
        self.groups[id_] = OwnGroup(
            id=id_,
            component_id=claim.component_id,
            epoch=claim.epoch,
            node_id=claim.node_id or "-",
            pin=request.pin,
            bundle=request.bundle,
        )
        self._place()
        return id_

    def apply(self, changes: GroupChanges) -> None:
        """Remove groups."""
        for id_ in changes.remove:
            self.remove(id_)

    def remove(self, id_: str) -> None:
        """Remove a group; its room is free a little later."""
        group = self.groups.pop(id_, None)
        if group is not None and group.is_created:
            self._freeing.append((self.run.clock.now + self.run.chance.uniform(0.05, 2.0), group.pin))

    def _tick(self) -> None:
        now, chance = self.run.clock.now, self.run.chance
        if not self.is_away:
            for node in self.run.nodes.values():
                lives = node.runtime is not None and not node.is_off
                if lives and node.id not in self._joined:
                    self._joined[node.id] = now + chance.uniform(*JOINS_S)
                elif not lives and node.id in self._joined:
                    del self._joined[node.id]
                    self._lose(node.id)
            self._freeing = [each for each in self._freeing if each[0] > now]
            self._place()
            for port in self.ports.values():
                port.look()
        self.run.later(TICK_S, self._tick)

    def _lose(self, machine: str) -> None:
        for id_, group in self.groups.items():
            if group.pin == machine:
                self.groups[id_] = replace(group, is_created=False)

    def _place(self) -> None:
        """Create the groups for which there is room, the oldest first."""
        slots = self.run.scenario.slots or 0
        free = {each.labels[NODE_LABEL]: slots for each in self.machines()}
        taken = [group.pin for group in self.groups.values() if group.is_created]
        for machine in (*taken, *(machine for _, machine in self._freeing)):
            if machine in free:
                free[machine] -= 1
        for id_, group in self.groups.items():
            if group.is_created:
                continue
            pins = [group.pin] if group.node_id != "-" else [each for each in free if free[each] > 0]
            if pins and free.get(pins[0], 0) > 0:
                free[pins[0]] -= 1
                self.groups[id_] = replace(group, is_created=True, pin=pins[0])
            else:
                self.groups[id_] = replace(group, scheduling="NO_RESOURCES")


class LinkPort(EnginePort):
    """The engine and the link of one node."""

    def __init__(self, ray: VirtualRay, node: VirtualNode) -> None:
        super().__init__(ray, node)
        self._ray = ray
        self._receiver: Receiver | None = None
        self._pending: list[tuple[RoomClaim, str, float]] = []
        self._queued: list[tuple[RoomClaim, ...] | RoomClaim] = []
        """Orders that the link takes when the head is back."""
        self._said_away = False

    def _answers(self) -> bool:
        return not self._ray.is_away and self._ray.run.clock.now >= self._ray.answers_at

    def _tell(self, message: object) -> None:
        if self._receiver is not None and self._node.runtime is not None:
            self._node.later(0.01, self._receiver, message)

    def reserve(self, claim: RoomClaim, receiver: Receiver) -> None:
        """Reserve room for a worker."""
        self._receiver = receiver
        if not bundle(claim.needs.amounts):
            self._tell(RoomGranted(claim))
        elif self._answers():
            self._reserve(claim)
        elif self._ray.is_away and self._ray.away_for() < SILENCE_S:
            self._queued.append(claim)
        else:
            self._said_away = True
            self._tell(EngineSilent("it does not answer"))

    def keep(self, claims: tuple[RoomClaim, ...]) -> None:
        """Have exactly these reservations."""
        if self._answers():
            self._keep(claims)
        elif self._ray.is_away and self._ray.away_for() < SILENCE_S:
            self._queued.append(claims)

    def want_agent(self, engine_node: str) -> None:
        """Every machine has an agent."""

    def goes_on(self, is_new: bool) -> None:
        """The head is back: the link takes what waited for it, or another link begins."""
        queued, self._queued, self._pending = self._queued, [], []
        for order in () if is_new else queued:
            if isinstance(order, RoomClaim):
                self._reserve(order)
            else:
                self._keep(order)
        self._pending = []  # the engine has forgotten the numbers of these

    def look(self) -> None:
        """Tell what has become of claims, and that the head is back."""
        if not self._answers():
            return
        if self._said_away:
            self._said_away = False
            self._tell(EngineAnswered())
        now, undecided = self._ray.run.clock.now, []
        for claim, id_, since in self._pending:
            why = why_not(self._ray.groups.get(id_), now - since)
            if why is None:
                undecided.append((claim, id_, since))
                continue
            if why:
                self._ray.remove(id_)
            self._tell(RoomDenied(claim, why) if why else RoomGranted(claim))
        self._pending = undecided

    def _reserve(self, claim: RoomClaim) -> None:
        machines = self._ray.machines()
        if not has_machine(claim, machines):
            self._tell(RoomGranted(claim))
            return
        changes = settle(list(self._ray.groups.values()), (claim,), machines, all_=False)
        self._ray.apply(changes)
        kept = changes.kept.get(claim.component_id)
        id_ = self._ray.make(changes.make[0]) if kept is None else kept
        settled = self._ray.run.clock.now + (FREES_S if changes.remove else 0.0)
        self._pending.append((claim, id_, settled))

    def _keep(self, claims: tuple[RoomClaim, ...]) -> None:
        wanted = tuple(each for each in claims if bundle(each.needs.amounts))
        changes = settle(list(self._ray.groups.values()), wanted, self._ray.machines())
        self._ray.apply(changes)
        for request in changes.make:
            self._ray.make(request)
