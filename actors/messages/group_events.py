"""Events about groups of workers that stand and fall together."""

from __future__ import annotations

import msgspec


class GroupRestarting(msgspec.Struct, frozen=True):
    """A member died: these others are stopped, in this order, and start again with it."""

    component_id: str
    """The member that died."""
    group: str
    strategy: str
    workers: tuple[str, ...]
    used: int
    """How many restarts of the group are used in its window, this one included."""
    allowed: int | None


class GroupGivenUp(msgspec.Struct, frozen=True):
    """A group cannot be kept up: all its members are stopped until a person restarts it."""

    component_id: str
    """The member that was the last to die."""
    group: str
    reason: str
    workers: tuple[str, ...]
    """The other members, which are stopped."""


class GroupEscalated(msgspec.Struct, frozen=True):
    """A group cannot be kept up, which is a death in the group around it."""

    component_id: str
    group: str
    to: str
    """The enclosing group."""
    reason: str


class GroupRestored(msgspec.Struct, frozen=True):
    """The worker that a group was given up for is started or removed: the others start again."""

    component_id: str
    group: str


class EssentialEnded(msgspec.Struct, frozen=True):
    """A worker or group without which the rest is of no use has ended: the supervisor stops everything."""

    component_id: str
    group: str
    """The essential group; empty if the worker itself is essential."""
    reason: str
    exit_code: int
    """What `rekindle run` exits with: the worker's code, or 128 + the signal that ended it."""


GroupEvent = GroupRestarting | GroupGivenUp | GroupEscalated | GroupRestored | EssentialEnded
