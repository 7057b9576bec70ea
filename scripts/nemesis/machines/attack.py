"""One run: faults are done to a fleet for a while, then everything is undone, and the truth is compared."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .faults import KINDS, Planned, drawn
from .fleet import Fleet
from .namespaces import RoomError
from .truth_checks import Broken, Evidence, Fault, thawed, violations

RECOVERY_S = 90.0
CRASH_SHARE = 0.001
"""A worker lives for about a minute."""


@dataclass(frozen=True)
class Verdict:
    """What came of a run."""

    seed: int
    seconds: float
    figures: dict[str, int]
    broken: tuple[Broken, ...]
    faults: tuple[Fault, ...]
    folder: Path | None
    """Where traces and logs are, if a promise was broken."""


class Attack:
    """Does faults to a fleet, and remembers what it did."""

    def __init__(self, fleet: Fleet, told: Callable[[str], None]) -> None:
        self._fleet, self._told = fleet, told
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._now_on: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.faults: list[Fault] = []

    def run(self, plan: list[Planned]) -> None:
        """Begin and end all of them, at their times."""
        began = time.monotonic()
        for fault in plan:
            self._at(fault.at, lambda fault=fault: self._begin(fault, began))  # type: ignore[misc]
        while self._due:
            at, _, act = heapq.heappop(self._due)
            time.sleep(max(0.0, began + at - time.monotonic()))
            act()

    def _at(self, at: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at, next(self._order), act))

    def _begin(self, fault: Planned, began: float) -> None:
        key = fault.kind, fault.nodes
        self._told(f"{fault.kind} {', '.join(fault.nodes)} for {fault.for_s:.1f} s".replace("  ", " "))
        self._now_on[key] += 1
        since = time.time()
        KINDS[fault.kind].begin(self._fleet, fault)

        def end() -> None:
            self._now_on[key] -= 1
            # Noted before: what a machine does as it continues is done after the pause.
            self.faults.append(Fault(fault.kind, fault.nodes, since, time.time()))
            if not self._now_on[key]:
                KINDS[fault.kind].end(self._fleet, fault)

        self._at(time.monotonic() - began + fault.for_s, end)


def attacked(
    fleet: Fleet, plan: list[Planned], told: Callable[[str], None]
) -> tuple[Evidence, tuple[Fault, ...]]:
    """Do the faults to a fleet that runs, wait until it has recovered, and gather the evidence."""
    attack = Attack(fleet, told)
    attack.run(plan)
    told("every fault is over")
    recover(fleet)
    evidence = gathered(fleet, tuple(attack.faults))
    return evidence, tuple(attack.faults)


def recover(fleet: Fleet) -> None:
    """Undo what is left, and wait until everything runs, or for long enough."""
    for machine in fleet.room.machines.values():
        machine.resume()
    fleet.database.start()
    for name in fleet.names:
        fleet.room.power_on(name)
    fleet.room.heal()
    fleet.database.wait()
    try:
        fleet.until(lambda: fleet.has_joined() and fleet.all_run(), "everything to run", RECOVERY_S)
    except RoomError:
        return  # The check names what does not run.


def gathered(fleet: Fleet, faults: tuple[Fault, ...]) -> Evidence:
    """The truth of the workers, and what the database has counted once it has heard everything."""
    running = {id_: fleet.runs_on(id_) is not None for id_ in fleet.ids}

    def found() -> Evidence:
        lives = {id_: fleet.lives(id_) for id_ in fleet.ids}
        return Evidence(lives, faults, fleet.counted(), running)

    with suppress(RoomError):  # A crash of this moment is on its way to the database.
        fleet.until(lambda: not violations(found()), "the counters", 10.0)
    return found()


def run(
    seed: int, minutes: float, told: Callable[[str], None], *, nodes: int = 3, workers: int = 6
) -> Verdict:
    """Attack a new fleet.

    Raises:
        RoomError: machines or PostgreSQL cannot be had here, or the fleet does not start.
    """
    fleet = Fleet(nodes, workers, crash_share=CRASH_SHARE)
    keeps = True
    try:
        fleet.start()
        told(f"{workers} workers run on {nodes} machines")
        evidence, faults = attacked(fleet, drawn(seed, minutes * 60, fleet.names), told)
        broken = tuple(violations(evidence))
        keeps = bool(broken)
    finally:
        fleet.close(keep=keeps)
    lives = [life for each in evidence.lives.values() for life in each]
    figures = {
        "faults": len(faults),
        "processes": len(lives),
        "crashes": sum(life.has_crashed for life in lives),
        "signs of life": sum(len(life.beats) for life in lives),
        "of these after a pause": thawed(lives, faults),
    }
    return Verdict(seed, minutes * 60, figures, broken, faults, fleet.folder if keeps else None)
