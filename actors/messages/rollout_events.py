"""Events about rollouts: new processes that take over from old ones."""

from __future__ import annotations

import msgspec


class RolloutStarted(msgspec.Struct, frozen=True):
    """New processes are to take over from those of these workers."""

    group: str
    """The workers of which table."""
    workers: tuple[str, ...]
    spares: tuple[str, ...]
    """The additional workers that exist meanwhile."""
    reason: str
    """`operator_restart`, `configuration_change` or `recycle`."""
    detail: str = ""
    """With `recycle`: why."""


class RolloutAdvanced(msgspec.Struct, frozen=True):
    """A rollout took a step."""

    group: str
    step: str
    """`raise` (the additional workers start), `replace` (these workers get their new processes), `replaced`
    (the new processes have proved themselves), `put_back` (these workers get the old configuration again) or
    `lower` (the additional workers stop)."""
    workers: tuple[str, ...]
    detail: str = ""
    """The problem that led to this step, if one did."""


class RolloutEnded(msgspec.Struct, frozen=True):
    """A rollout is over."""

    group: str
    replaced: tuple[str, ...]
    """The workers that have their new processes."""
    problem: str = ""
    """Why it was ended early; empty: it succeeded."""


RolloutEvent = RolloutStarted | RolloutAdvanced | RolloutEnded
