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
    """The last generation of the worker on this node before it."""

    def token(self, generation: int) -> int:
        """What a process shows to the outside: a newer process has a larger one, on whichever node.

        An epoch of more than a million starts continues with its last token: the token of a later epoch
        must be larger still.
        """
        return self.epoch * STARTS + min(max(generation - self.after, 0), STARTS - 1)

    def text(self) -> str:
        """How the journal of the node keeps it."""
        return f"{self.epoch} {self.after} {self.node}"


def stored(meta: Mapping[str, str]) -> dict[str, Assigned]:
    """What the journal of the node holds, by worker; a damaged entry is left out."""
    found = {}
    for key, text in meta.items():
        epoch, _, rest = text.partition(" ")
        after, _, node = rest.partition(" ")
        if key.startswith(META) and epoch.isdecimal() and after.isdecimal():
            found[key.removeprefix(META)] = Assigned(node, int(epoch), int(after))
    return found
