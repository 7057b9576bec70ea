"""Pure: what the cluster should run."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ...spec.deployment.place_policy import PlacePolicy


class Wanted(StrEnum):
    """What an operator wants of a worker."""

    RUN = "run"
    STOP = "stop"
    PAUSE = "pause"
    GONE = "gone"
    """It is stopped and given back; then the wish is removed."""


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

    @property
    def is_template(self) -> bool:
        """Whether it only stands for its copies, one on each node."""
        return self.place.everywhere and self.pinned is None
