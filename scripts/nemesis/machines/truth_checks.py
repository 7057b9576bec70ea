"""Pure: what must hold in every run, whatever was done to machines, cables and database.

It compares what the workers wrote and what the attacker did with the counters in the database. The database
is asked for nothing else: it may not vouch for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .traces import Life

OVERLAP = "two processes of a worker never run at the same time, on whichever machines"
TOKENS = "the token of a worker only grows"
CAUSE = "no process is stopped while nothing but the database is away"
COUNTERS = "the counters of a worker are its crashes: no lost node, cut or pause counts"
RECOVERY = "when the faults are over, every worker runs once"

AFTER_THAW_S = 1.0
"""A machine that was paused may execute for a moment before anything in it can act; the token covers that."""
CAUSE_S = 12.0
"""For so long after its end a fault may be the cause of a stop."""
UNSURE_S = 1.5
"""A crash so shortly before a fault may die with its agent, unseen."""

HARMLESS = frozenset({"database killed", "database cut off", "database paused"})
"""Alone, none of them stops a process while most of the agents reach each other."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the attacker did."""

    kind: str
    nodes: tuple[str, ...]
    """Those that it was done to; none if it was done to the database."""
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that did not hold."""

    check: str
    text: str


@dataclass(frozen=True)
class Evidence:
    """All that is known of a run."""

    lives: Mapping[str, list[Life]]
    faults: tuple[Fault, ...]
    counted: Mapping[str, int]
    """By worker: its restarts in the database after the end."""
    running: Mapping[str, bool] = field(default_factory=dict)
    """By worker: whether it ran after the end."""


def violations(evidence: Evidence) -> list[Broken]:
    """Every promise that was broken."""
    found: list[Broken] = []
    for worker, lives in sorted(evidence.lives.items()):
        found += _overlaps(worker, lives, evidence.faults)
        found += _tokens(worker, lives)
        found += _causes(worker, lives, evidence.faults)
        found += _counters(worker, lives, evidence)
    found += [
        Broken(RECOVERY, f"{worker} does not run") for worker, runs in evidence.running.items() if not runs
    ]
    return found


def thawed(lives: Iterable[Life], faults: Iterable[Fault]) -> int:
    """How many signs of life processes gave on machines that had just resumed after a pause."""
    return sum(len(life.beats) - len(_beats(life, faults)) for life in lives)


def _beats(life: Life, faults: Iterable[Fault]) -> list[float]:
    """Its signs of life, but those of a machine that has just resumed: of no life but the last of a node."""
    ends = [each.ended for each in faults if each.kind == "machine paused" and life.node in each.nodes]
    return [beat for beat in life.beats if not any(end <= beat <= end + AFTER_THAW_S for end in ends)]


def _overlaps(worker: str, lives: list[Life], faults: tuple[Fault, ...]) -> Iterator[Broken]:
    for number, after in enumerate(lives):
        for before in lives[:number]:
            if before.last < after.began:
                continue
            late = [beat for beat in _beats(before, faults) if beat >= after.began]
            if late:
                ran = f"{_shown(before)} ran for {late[-1] - after.began:.3f} s"
                yield Broken(OVERLAP, f"{worker}: {ran} after {_shown(after)} had begun")


def _tokens(worker: str, lives: list[Life]) -> Iterator[Broken]:
    latest = 0
    for life in lives:
        if life.token <= latest:
            yield Broken(TOKENS, f"{worker}: {_shown(life)} has the token {life.token} after {latest}")
        latest = max(latest, life.token)


def _causes(worker: str, lives: list[Life], faults: tuple[Fault, ...]) -> Iterator[Broken]:
    for life in lives[:-1]:
        if life.has_crashed:
            continue
        near = {
            each.kind
            for each in faults
            if each.began <= life.last + 1.0 and life.last <= each.ended + CAUSE_S
        }
        if near <= HARMLESS:
            what = ", ".join(sorted(near)) or "nothing was done"
            yield Broken(CAUSE, f"{worker}: {_shown(life)} was stopped: {what}")


def _counters(worker: str, lives: list[Life], evidence: Evidence) -> Iterator[Broken]:
    crashes = [life for life in lives if life.has_crashed]
    unsure = sum(_is_unsure(life, evidence.faults) for life in crashes)
    guarded = sum(_dies_with_its_agent(life, evidence.faults) for life in lives if not life.has_crashed)
    counted = evidence.counted.get(worker, 0)
    if not len(crashes) - unsure <= counted <= len(crashes) + guarded:
        span = f"{len(crashes) - unsure} to {len(crashes) + guarded}"
        yield Broken(COUNTERS, f"{worker}: {counted} restarts in the database, {span} by its traces")


def _is_unsure(life: Life, faults: Iterable[Fault]) -> bool:
    """Whether the agent may have died, or lost its lease, before it saw the crash."""
    return any(
        life.node in each.nodes and each.began <= life.last + UNSURE_S and life.last <= each.ended
        for each in faults
    )


def _dies_with_its_agent(life: Life, faults: Iterable[Fault]) -> bool:
    """Whether its guardian may have killed it without an agent that knows why: this may count."""
    return any(
        each.kind in ("agent killed", "agent frozen")
        and life.node in each.nodes
        and each.began - UNSURE_S <= life.last <= each.ended + CAUSE_S
        for each in faults
    )


def _shown(life: Life) -> str:
    return f"process {life.token & 0xFFFFF} on {life.node} ({life.began:.3f} to {life.last:.3f})"
