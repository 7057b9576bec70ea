"""What is done to a run and when: drawn from the seed, pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_GAP_S = 0.7

WEIGHTS = {
    "kill": 40,
    "kill_many": 4,
    "term": 8,
    "freeze": 8,
    "kill_supervisor": 3,
    "kill_worker_then_supervisor": 2,
    "kill_supervisor_at_start": 1,
    "freeze_supervisor": 2,
    "stop_supervisor": 2,
    "database": 5,
    "upgrade": 5,
    "reload": 3,
    "scale": 4,
    "pause": 3,
    "pause_all": 1,
    "stop": 3,
    "restart": 2,
    "reset": 3,
}
"""How often each move is drawn, in relation to the others."""


@dataclass(frozen=True)
class Move:
    """One move; the machine decides which process `pick` meets."""

    at: float
    """Seconds from the beginning of the attack."""
    word: str
    pick: int
    """Chooses a worker among those that live at that time."""
    for_s: float
    """How long the state lasts, or how long to wait, where the move has one."""
    number: int
    """How many, where the move counts."""
    fault: str = ""
    """What happens to the database."""


def drawn(seed: int, seconds: float, faults: Sequence[str]) -> tuple[Move, ...]:
    """The moves of an attack of this length on a database that knows these faults."""
    chance = random.Random(seed)
    moves: list[Move] = []
    at = 0.0
    while True:
        at += chance.uniform(0.0, LONGEST_GAP_S)
        if at >= seconds:
            return tuple(moves)
        (word,) = chance.choices(tuple(WEIGHTS), weights=tuple(WEIGHTS.values()))
        # Many short ones, and some that outlast every timeout.
        for_s = chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.0, 2.5), chance.uniform(0.0, 8.0)))
        pick, number = chance.randrange(1 << 30), chance.randrange(1 << 30)
        fault = chance.choice(faults) if word == "database" else ""
        moves.append(Move(at, word, pick, for_s, number, fault))
