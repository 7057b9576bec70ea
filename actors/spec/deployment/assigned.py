"""Where a worker of a cluster runs, and by which right: its node and its epoch.

Only the agent of a node sets it; a worker without a cluster has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OF_THE_NODE = "system:"
"""The prefix of the ids of workers that belong to their node: they need no lease, and no lease ends them."""

META = "epoch:"
"""The prefix of the setting that keeps the latest epoch of a worker on this node; its id follows.

A supervisor that starts again under the same epoch continues with its tokens instead of giving them again.
"""

STARTS = 1 << 20
"""How many starts an epoch has tokens for."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """One worker on one node under one epoch."""

    node: str
    """The name of the node."""
    epoch: int
    """The number of the assignment: each is larger than all before it."""
    after: int = 0
    """The generation from which its tokens are counted: `counted_after`."""

    def token(self, generation: int) -> int:
        """What a process shows to the outside: a newer process has a larger one, on whichever node.

        An epoch of more than a million starts continues with its last token: the token of a later epoch
        must be larger still.
        """
        return self.epoch * STARTS + min(max(generation - self.after, 0), STARTS - 1)

    def text(self) -> str:
        """How the journal of the node keeps it."""
        return f"{self.epoch} {self.after} {self.node}"


def counted_after(last_generation: int) -> int:
    """From which number of processes on the tokens of a new epoch are counted.

    A number is used once on a node, so the number itself makes a token that no other process of the epoch
    has, also if the journal loses where the epoch began. Only numbers that are too large for that, as those
    taken from the clock, are counted from the last one.
    """
    return 0 if last_generation < STARTS // 2 else last_generation


def stored(meta: Mapping[str, str]) -> dict[str, Assigned]:
    """What the journal of the node holds, by worker; a damaged entry is left out."""
    found = {}
    for key, text in meta.items():
        epoch, _, rest = text.partition(" ")
        after, _, node = rest.partition(" ")
        if key.startswith(META) and epoch.isdecimal() and after.isdecimal():
            found[key.removeprefix(META)] = Assigned(node, int(epoch), int(after))
    return found
