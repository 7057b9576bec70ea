"""Where each rule of a cluster matters: scenarios and orders of events that show a missing rule."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.chaos.cluster.clusters import at_random

from rekindle.actors.simulation.cluster.cluster_moves import (
    ClusterMove,
    ClusterScenario,
    ClusterStep,
    Cordon,
    CutDatabase,
    KillAgent,
    KillNode,
    LoseAnswers,
    PauseNode,
    SetDatabaseClock,
    SlowDatabase,
)

Aim = Callable[[int, random.Random], ClusterScenario]
"""The scenario of a seed."""


def words(*allowed: str, moves: int = 10) -> Aim:
    """Moves of these kinds, drawn by the seed."""
    return lambda seed, chance: at_random(seed, moves, allowed)


def directed(nodes: int, aim: Callable[[random.Random], tuple[tuple[float, ClusterMove], ...]]) -> Aim:
    """Moves in an order that matters, at times that the seed varies."""

    def made(seed: int, chance: random.Random) -> ClusterScenario:
        steps = tuple(ClusterStep(at, move) for at, move in sorted(aim(chance), key=lambda each: each[0]))
        return ClusterScenario(f"seed {seed}", nodes=nodes, lasts_s=40.0, steps=steps)

    return made


def clock_set_back(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """The answer to the first renewal after the jump is lost, and two of three nodes lose the database."""
    cut = 10.0 + chance.uniform(0.3, 0.8)
    return (
        (10.0, SetDatabaseClock(-5.0)),
        (10.0, LoseAnswers(1.0, 0.8)),
        (cut, CutDatabase("n1", 20.0)),
        (cut, CutDatabase("n2", 20.0)),
    )


def testimony_without_answer(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """The last testimony of a member is applied, its answer is lost, and it loses the database."""
    cut = 10.0 + chance.uniform(2.6, 4.0)
    return (
        (10.0, CutDatabase("n1", 25.0)),
        (cut - 0.6, LoseAnswers(1.0, 0.6)),
        (cut, CutDatabase("n2", 20.0)),
    )


def member_returns(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """Two of three nodes lose the database; one of them gets it back soon."""
    return (
        (10.0, CutDatabase("n1", 25.0)),
        (10.0 + chance.uniform(-0.5, 0.5), CutDatabase("n2", chance.uniform(5.0, 9.0))),
    )


def member_returns_as_a_new_life(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """The same, and the agent of the member that returns is a new one, which has forgotten its promise."""
    back = 10.0 + chance.uniform(5.0, 9.0)
    return (
        (10.0, CutDatabase("n1", 25.0)),
        (10.0, CutDatabase("n2", back - 10.0)),
        (back + chance.uniform(0.0, 0.3), KillAgent("n2", 0.02)),
    )


def list_that_is_not_stored(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """A node learns of a third one and loses the database, before it has stored the longer list."""
    cut = 22.0 + chance.uniform(0.1, 1.0)
    return (
        (10.0, KillNode("n3", 12.0)),
        (cut, CutDatabase("n1", 15.0)),
        (22.0 + chance.uniform(0.3, 1.0), CutDatabase("n3", 15.0)),
    )


def late_testimony(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """A testimony is sent into a cut cable, and arrives after its author has promised."""
    return (
        (10.0, CutDatabase("n1", 25.0)),
        (10.0 + chance.uniform(-0.5, 0.5), CutDatabase("n2", chance.uniform(4.0, 9.0))),
    )


def clock_set_forward(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """By the clock of the database the lease of a node that has just lost it is long over."""
    return (
        (10.0, SetDatabaseClock(3600.0)),
        (10.0 + chance.uniform(-0.5, 0.5), CutDatabase("n1", 15.0)),
    )


def two_of_three_lose_the_database(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """They keep each other's leases, and the third one reaches the database."""
    return (
        (10.0, CutDatabase("n1", 20.0)),
        (10.0 + chance.uniform(0.0, 0.3), CutDatabase("n2", 20.0)),
    )


def one_loses_the_database(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """It has no promise but its own."""
    return ((10.0 + chance.uniform(0.0, 0.5), CutDatabase("n1", 20.0)),)


def cordon_while_placing(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """A node is cordoned after a coordinator has read that it is up, and before the worker is placed."""
    return (
        (8.0, SlowDatabase(0.8, 20.0)),
        (10.0, KillNode("n1", 20.0)),
        *((at + chance.uniform(0.0, 0.7), Cordon("n2", 0.5)) for at in (14.0, 15.0, 16.0, 17.0, 18.0)),
    )


def answer_after_a_pause(chance: random.Random) -> tuple[tuple[float, ClusterMove], ...]:
    """A machine pauses with an answer under way, and handles it when it goes on, cut off."""
    at, for_s = 10.0 + chance.uniform(0.0, 0.5), chance.uniform(3.0, 5.0)
    return (
        (9.0, SlowDatabase(0.4, 1.5)),
        (at, PauseNode("n1", for_s)),
        (at + 0.6, CutDatabase("n1", 15.0)),
    )
