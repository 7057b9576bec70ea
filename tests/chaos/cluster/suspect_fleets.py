"""Fleets whose workers die at given rates, and what the rules of node suspects make of them.

Six nodes with five workers each; every group has a copy on each node. One step is a second.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from rekindle.actors.cluster.facts.cases import Case, Convicted, Noticed, OnParole, Suspect, Trusted
from rekindle.actors.cluster.rules.suspects.suspicion import (
    WINDOW_S,
    Ruling,
    WorkerLife,
    rulings,
)

NODES, GROUPS = 6, 5
LOOKS_S = 5
LONGEST_HOLD_S = 1_500.0
"""Lives are kept for so long: a witness may have to live for three mean lives."""

Rate = Callable[[str, str, float], float]
"""Deaths per second of a worker of this group on this node at this time."""


@dataclass
class Verdicts:
    """What became of one run."""

    convicted: list[tuple[float, str]] = field(default_factory=list)
    suspected: list[tuple[float, str]] = field(default_factory=list)
    most_held: int = 0
    """The most nodes that were under suspicion or convicted at a time."""
    refunds: int = 0


class SuspectFleet:
    """Workers that die and start again, on nodes that are judged every five seconds."""

    def __init__(self, rate: Rate, seed: int) -> None:
        self._rate, self._chance = rate, random.Random(seed)
        self.nodes = [f"k{number}" for number in range(NODES)]
        self._home = {f"g{group}:{node}": node for group in range(GROUPS) for node in self.nodes}
        self._place = dict(self._home)
        self._lives: dict[str, WorkerLife] = {}
        self._past: list[WorkerLife] = []
        self._cases: dict[str, Case] = {node: Trusted() for node in self.nodes}
        self.verdicts = Verdicts()

    def run(self, lasts_s: int = 1800) -> Verdicts:
        """Let the time pass."""
        for now in range(lasts_s):
            self._live(float(now))
            if now % LOOKS_S == 0:
                self._look(float(now))
        return self.verdicts

    def _live(self, now: float) -> None:
        for worker, node in self._place.items():
            group = worker.partition(":")[0]
            life = self._lives.get(worker)
            if life is None:
                self._lives[worker] = WorkerLife(worker, group, node, now)
            elif self._chance.random() < self._rate(node, group, now):
                self._end(worker, now, died=True)

    def _end(self, worker: str, now: float, *, died: bool) -> None:
        life = self._lives.pop(worker, None)
        if life is not None:
            self._past.append(replace(life, ended=now, died=died))

    def _look(self, now: float) -> None:
        self._past = [life for life in self._past if (life.ended or now) > now - WINDOW_S - LONGEST_HOLD_S]
        for ruling in rulings(self._cases, (*self._past, *self._lives.values()), now):
            self._take(ruling, now)
        held = sum(not isinstance(case, Trusted) for case in self._cases.values())
        self.verdicts.most_held = max(self.verdicts.most_held, held)

    def _take(self, ruling: Ruling, now: float) -> None:
        self._cases[ruling.node] = ruling.case
        match ruling.case:
            case Suspect():
                self.verdicts.suspected.append((now, ruling.node))
                self._move(ruling.moves, now)
            case Convicted():
                self.verdicts.convicted.append((now, ruling.node))
                self.verdicts.refunds += sum(ruling.refunds.values())
                self._move([worker for worker, node in self._place.items() if node == ruling.node], now)
            case OnParole():
                canary = next(worker for worker, node in self._home.items() if node == ruling.node)
                self._move([canary], now, home=True)
            case Trusted() | Noticed():
                self._move(
                    [worker for worker, node in self._home.items() if node == ruling.node], now, home=True
                )

    def _move(self, workers: list[str] | tuple[str, ...], now: float, *, home: bool = False) -> None:
        up = [node for node in self.nodes if isinstance(self._cases[node], Trusted)]
        for worker in workers:
            target = self._home[worker] if home else self._chance.choice(up)
            if self._place[worker] != target:
                self._end(worker, now, died=False)
                self._place[worker] = target


def bad_node(life_s: float, every_second_group: bool = False) -> Rate:
    """One node on which workers live for this long; elsewhere they live for hours."""

    def rate(node: str, group: str, now: float) -> float:
        is_hit = node == "k0" and not (every_second_group and int(group[1:]) % 2)
        return 1 / life_s if is_hit and now >= 60 else 1 / 36_000

    return rate


def bad_groups(*groups: str, life_s: float = 8.0) -> Rate:
    """Groups that die everywhere."""
    return lambda node, group, now: 1 / life_s if group in groups else 1 / 36_000


def outage(node: str, group: str, now: float) -> float:
    """Everything dies for three minutes, as without a database that all need."""
    return 1 / 5 if 300 <= now < 480 else 1 / 36_000


def flaky(life_s: float) -> Rate:
    """A fleet that dies everywhere, all the time."""
    return lambda node, group, now: 1 / life_s


def quiet(node: str, group: str, now: float) -> float:
    """A fleet in which a worker dies once in ten hours."""
    return 1 / 36_000


INNOCENT: dict[str, Rate] = {
    "a bad group": bad_groups("g1"),
    "two bad groups": bad_groups("g1", "g3"),
    "an outage for all": outage,
    "a fleet that dies every 120 s": flaky(120),
    "a fleet that dies every 30 s": flaky(30),
    "a quiet fleet": quiet,
}
"""Fleets in which no node is at fault."""
