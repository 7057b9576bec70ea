"""Pure: the exact chance of at least this many deaths on one node, if all nodes were alike.

Each group of workers has a share of its life on the node; each of its deaths falls there with that share. The
number of deaths on the node is a sum of binomial numbers, one for each group, and its tail is computed
exactly: no approximation holds for a handful of deaths.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb


def tail(strata: Iterable[tuple[int, float]], at_least: int) -> float:
    """The chance of `at_least` deaths on the node; `strata` has the deaths of each group and its share."""
    chances = [1.0]
    for deaths, share in strata:
        chances = _sum(
            chances, [comb(deaths, k) * share**k * (1 - share) ** (deaths - k) for k in range(deaths + 1)]
        )
    return min(1.0, sum(chances[at_least:]))


def _sum(one: list[float], other: list[float]) -> list[float]:
    """The distribution of the sum of two independent numbers."""
    found = [0.0] * (len(one) + len(other) - 1)
    for i, chance in enumerate(one):
        for j, factor in enumerate(other):
            found[i + j] += chance * factor
    return found
