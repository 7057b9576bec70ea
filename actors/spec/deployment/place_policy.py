"""Where a worker may run in a cluster; checked when it is constructed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from ...errors import Problem
from ..validation import Policy, setting


class OnPartition(StrEnum):
    """What happens to a worker whose node has lost its lease."""

    STOP = "stop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacePolicy(Policy):
    """Where the cluster may run a worker, and where it prefers to.

    Workers of one table are spread over the nodes if nothing else is said. A worker stays where it is: a
    node that joins or returns moves nothing by itself.
    """

    spread: str = setting("", "The label whose values get the same number of copies, such as zone.")
    pack: bool = setting(False, "Whether nodes are filled one after the other instead of evenly.")
    needs: Mapping[str, float] = setting(
        description="What one copy reserves of the capacity of its node, such as cpu = 0.5.",
        factory=lambda: MappingProxyType({}),
    )
    labels: Mapping[str, str] = setting(
        description="Labels that its node must have, with these values.", factory=lambda: MappingProxyType({})
    )
    per_node: int | None = setting(None, "The most copies on one node.", least=1)
    apart_from: tuple[str, ...] = setting((), "Workers, by table, that must not run on the same node.")
    everywhere: bool = setting(False, "Whether one copy runs on each node that has the labels.")
    on_partition: OnPartition = setting(
        OnPartition.STOP,
        "What happens on a node that is cut off: stop ends the worker before it starts elsewhere; keep lets "
        "it run, which only a worker of everywhere may.",
    )

    def __post_init__(self) -> None:
        for name in ("needs", "labels"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                object.__setattr__(self, name, MappingProxyType(dict(value)))
        # Named: `super()` does not work in a dataclass with slots.
        Policy.__post_init__(self)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Settings that contradict each other."""
        if not {"spread", "pack"} & set(wrong) and self.spread and self.pack:
            yield Problem("pack", "conflicts with spread: copies are either spread or packed")
        if "needs" not in wrong:
            for name, amount in self.needs.items():
                if not 0.0 <= amount < float("inf"):
                    yield Problem(f"needs.{name}", "must be 0 or more", amount)
        if "everywhere" not in wrong and self.everywhere and (self.spread or self.pack):
            yield Problem("everywhere", "conflicts with spread and pack: there is one copy on each node")
        keeps = "on_partition" not in wrong and self.on_partition is OnPartition.KEEP
        if keeps and not self.everywhere:
            yield Problem(
                "on_partition", "may be keep only with everywhere = true: elsewhere the worker moves"
            )
