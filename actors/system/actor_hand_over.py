"""What only the actors know: asked for before an upgrade of the supervisor, and read after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from ..errors import RequestRefusedError
from ..facts.records import EventRecord, FormerClaimsReleased, HealthMirrored, MirrorWiped, Record
from ..handover import Estate, HandOverError, Inheritance
from ..handover.document import convert
from ..messages import Refused
from ..messages.internal.hand_over import ReportMemory
from ..runtime.resilient_actor import tell
from ..supervision.handed_over_worker import HandedOverFleet
from ..supervisor.handed_over_actors import HandedOverActors
from ..worker_proxy import KnownProcess
from .assembly import Actors
from .inboxes import Inbox

PART = "actors"
RECORDS = "records"

_OF_A_PROGRAM = (FormerClaimsReleased, HealthMirrored, MirrorWiped)
"""Records that the program that follows makes itself."""

_KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in get_args(Record)}


class KeptRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record that could not be written before the upgrade."""

    kind: str
    record: Any


def asked_memory(
    actors: Actors, timeout_s: float, *, final: bool = False, holds: bool = False
) -> HandedOverActors:
    """Ask the Supervisor, the HealthMonitor and the proxies for what only they know.

    After the freeze the Supervisor does not refuse: what was begun continues in the program that follows.
    If it holds, nothing begins that could not continue there.

    Raises:
        RequestRefusedError: the Supervisor cannot be replaced now.
        RequestTimeoutError: an actor does not answer.
    """
    health, answers = Inbox(), Inbox()
    tell(actors.monitor, ReportMemory(health))
    tell(actors.supervisor, ReportMemory(answers, final, holds))
    fleet: HandedOverFleet | Refused = answers.get(timeout_s)
    if isinstance(fleet, Refused):
        raise RequestRefusedError(fleet.reason)
    known: list[KnownProcess] = [answers.get(timeout_s) for _ in range(fleet.proxies)]
    return HandedOverActors(
        fleet=fleet,
        health=health.get(timeout_s),
        processes={each.component_id: each for each in known},
    )


def leave_memory(
    estate: Estate, memory: HandedOverActors, unsaved: Iterable[Record | EventRecord] = (), at: float = 0.0
) -> None:
    """Hand over what the actors know, and what could not be written: events keep their numbers."""
    unsaved = [each for each in unsaved if not isinstance(each, _OF_A_PROGRAM)]
    last = max((each.id for each in unsaved if isinstance(each, EventRecord)), default=0)
    estate.leave(PART, replace(memory, last_event_id=last, at=at))
    estate.leave(RECORDS, [KeptRecord(type(each).__name__, each) for each in unsaved])


def inherited_memory(inheritance: Inheritance | None) -> HandedOverActors | None:
    """What the actors of the former program knew; None if this process was not upgraded."""
    taken = None if inheritance is None else inheritance.take(PART, HandedOverActors)
    return None if taken is None else taken[0]


def inherited_records(inheritance: Inheritance | None) -> tuple[Record, ...]:
    """What the former program could not write, in order.

    Raises:
        HandOverError: this version does not know a kind of record.
    """
    taken = None if inheritance is None else inheritance.take(RECORDS, tuple[KeptRecord, ...])
    return () if taken is None else tuple(_record(each) for each in taken[0])


def _record(kept: KeptRecord) -> Record:
    kind = _KINDS.get(kept.kind)
    if kind is None:
        raise HandOverError(f"this version does not understand a record of the hand-over: {kept.kind}")
    return convert(kept.record, kind, "a record")
