"""What is done to machines, cables and database: drawn by a seed, and undone after a while."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass

from .fleet import Fleet
from .postgres import NAME as DB

DURATIONS_S = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault that the seed has drawn."""

    at: float
    kind: str
    nodes: tuple[str, ...]
    for_s: float
    delay_s: float = 0.0


Deed = Callable[[Fleet, Planned], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault."""

    begin: Deed
    end: Deed
    nodes: int = 1
    """How many nodes it is done to; 0: to the database; -1: to as many as are less than half."""


def _nothing(fleet: Fleet, fault: Planned) -> None:
    """It is over at once."""


def _each(act: Callable[[Fleet, str], None]) -> Deed:
    def deed(fleet: Fleet, fault: Planned) -> None:
        for name in fault.nodes:
            if fleet.room.machines[name].is_on:
                act(fleet, name)

    return deed


def _power_off(fleet: Fleet, fault: Planned) -> None:
    fleet.room.machines[fault.nodes[0]].power_off()


def _power_on(fleet: Fleet, fault: Planned) -> None:
    fleet.room.power_on(fault.nodes[0])


def _pair(act: Callable[[Fleet, str, str], None]) -> Deed:
    return lambda fleet, fault: act(fleet, *(fault.nodes if len(fault.nodes) == 2 else (fault.nodes[0], DB)))


KINDS: dict[str, Kind] = {
    "machine killed": Kind(_power_off, _power_on),
    "machine paused": Kind(
        _each(lambda fleet, name: fleet.room.machines[name].pause()),
        _each(lambda fleet, name: fleet.room.machines[name].resume()),
    ),
    "cable cut": Kind(
        _each(lambda fleet, name: fleet.room.cut(name)), _each(lambda fleet, name: fleet.room.plug(name))
    ),
    "cable unplugged": Kind(
        _each(lambda fleet, name: fleet.room.unplug(name)), _each(lambda fleet, name: fleet.room.plug(name))
    ),
    "cut from the database": Kind(
        _pair(lambda fleet, one, other: fleet.room.lose(one, other)),
        _pair(lambda fleet, one, other: fleet.room.find(one, other)),
    ),
    "two cut from each other": Kind(
        _pair(lambda fleet, one, other: fleet.room.lose(one, other)),
        _pair(lambda fleet, one, other: fleet.room.find(one, other)),
        nodes=2,
    ),
    "split": Kind(
        lambda fleet, fault: fleet.room.split(fault.nodes),
        _each(lambda fleet, name: fleet.room.plug(name)),
        nodes=-1,
    ),
    "slow cable": Kind(
        lambda fleet, fault: fleet.room.slow(fault.nodes[0], fault.delay_s),
        lambda fleet, fault: fleet.room.hurry(fault.nodes[0]),
    ),
    "agent frozen": Kind(
        _each(lambda fleet, name: fleet.signal(name, signal.SIGSTOP)),
        _each(lambda fleet, name: fleet.signal(name, signal.SIGCONT)),
    ),
    "agent killed": Kind(_each(lambda fleet, name: fleet.kill_agent(name)), _nothing),
    "database killed": Kind(
        lambda fleet, fault: fleet.database.kill(), lambda fleet, fault: fleet.database.start(), nodes=0
    ),
    "database cut off": Kind(
        lambda fleet, fault: fleet.room.cut(DB), lambda fleet, fault: fleet.room.plug(DB), nodes=0
    ),
    "database paused": Kind(
        lambda fleet, fault: fleet.database.machine.pause(),
        lambda fleet, fault: fleet.database.machine.resume(),
        nodes=0,
    ),
}
"""By name: what begins and what ends it."""


def drawn(seed: int, lasts_s: float, names: tuple[str, ...]) -> list[Planned]:
    """The faults of a run, in the order in which they begin: often some at the same time."""
    chance = random.Random(seed)
    found: list[Planned] = []
    at = 1.0
    while at < lasts_s:
        kind = chance.choice(list(KINDS))
        wanted = KINDS[kind].nodes
        count = chance.randint(1, max(1, (len(names) - 1) // 2)) if wanted < 0 else wanted
        nodes = tuple(sorted(chance.sample(names, count)))
        for_s = chance.choice(DURATIONS_S) * chance.uniform(0.7, 1.3)
        found.append(Planned(at, kind, nodes, for_s, chance.uniform(0.05, 0.6)))
        at += chance.uniform(0.5, 4.0) if chance.random() < 0.4 else for_s + chance.uniform(3.0, 12.0)
    return found
