"""Pure: what the cluster should run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from ...spec.deployment.place_policy import PlacePolicy
from ...spec.worker_spec import Until


class Wanted(StrEnum):
    """What an operator wants of a worker."""

    RUN = "run"
    STOP = "stop"
    PAUSE = "pause"
    GONE = "gone"
    """It is stopped and given back; then the wish is removed."""
    DONE = "done"
    """A task that has ended well; it is given back, and runs again if its part of the file changes."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_wish`: a worker, wherever it runs."""

    component_id: str
    group: str = ""
    """The worker's table in the file: copies of one group are interchangeable."""
    spec: str = ""
    """The checked spec as JSON."""
    place: PlacePolicy = PlacePolicy()
    wanted: Wanted = Wanted.RUN
    revision: int = 1
    """Grows with each change of the spec."""
    pinned: str | None = None
    """The id of the only node where it may run: a copy of a worker that runs everywhere."""
    min_healthy: int | None = None
    """How many copies of its group must be placed while others move; None: all but one."""
    once: bool = False
    """It is a task: when it has ended well, it is done for the cluster."""
    unit: str = ""
    """The group that stands and falls together: its workers run on one node. Empty: it belongs to none."""
    beside: tuple[str, ...] = ()
    """The workers of its unit that start before it."""
    after: Mapping[str, Until] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """What workers outside its unit must be before it is placed."""

    @property
    def is_template(self) -> bool:
        """Whether it only stands for its copies, one on each node."""
        return self.place.everywhere and self.pinned is None
