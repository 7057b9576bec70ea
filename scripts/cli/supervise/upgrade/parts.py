"""Every part of a hand-over: as what it is read, and an example with all fields for the check.

The processes and their claims are left after the freeze only. The examples let the check of another version
see what they will look like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rekindle.actors.handover import Estate, HandOverError, Inheritance
from rekindle.actors.processes.claims import claim_desk
from rekindle.actors.processes.claims.claim_desk import KnownBadge, KnownClaims
from rekindle.actors.processes.sockets import listening_sockets
from rekindle.actors.processes.sockets.socket_path import Identity
from rekindle.actors.processes.takeover import inherited_table
from rekindle.actors.processes.takeover.known_child import KnownChild, KnownTable
from rekindle.actors.supervisor.handed_over_actors import HandedOverActors
from rekindle.actors.system import actor_hand_over
from rekindle.actors.system.actor_hand_over import KeptRecord

from .runner_state import ALERTS, RUNNER, RunnerState, StoreLock

ACTORS = actor_hand_over.PART

_KINDS: dict[str, Any] = {
    ACTORS: HandedOverActors,
    actor_hand_over.RECORDS: tuple[KeptRecord, ...],
    inherited_table.PART: KnownTable,
    claim_desk.PART: KnownClaims,
    listening_sockets.PART: type(None),
    listening_sockets.CREATED: dict[str, Identity],
    RUNNER: RunnerState,
    ALERTS: dict[str, Any],
    "store_lock": StoreLock,
    "state_lock": type(None),
    "signals": type(None),
    "control": type(None),
    "http": type(None),
}

_CHILD = KnownChild(component_id="", generation=0, pid=0, began=0.0)
_BADGE = KnownBadge(worker="", generation=0, queues=(), most_lanes=0, uid=0)

_EXAMPLES: dict[str, object] = {
    inherited_table.PART: KnownTable(mark="", children=(_CHILD,)),
    claim_desk.PART: KnownClaims(folder="", badges={"": _BADGE}),
    listening_sockets.CREATED: {"": (0, 0)},
    "store_lock": StoreLock(),
}


def leave_examples(estate: Estate, alerts: Mapping[str, object]) -> None:
    """Leave an example of each part that the check could not see otherwise."""
    if alerts:
        estate.leave(ALERTS, alerts)
    for name, example in _EXAMPLES.items():
        estate.leave(name, example)


def look_at_all(inheritance: Inheritance) -> None:
    """Read every part, as the program that takes over would.

    Raises:
        HandOverError: this version does not know or understand one of them.
    """
    for name in inheritance.names:
        if name not in _KINDS:
            raise HandOverError(f"this version does not know {name}, which is part of the hand-over")
        inheritance.look(name, _unsent_alerts() if name == ALERTS else _KINDS[name])


def _unsent_alerts() -> Any:
    from rekindle.actors.gateways.sinks.notification import Notification  # loaded only if it is used

    return dict[str, tuple[Notification, ...]]
