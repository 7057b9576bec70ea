"""What stays in force until it is lifted: pauses, the start of the system, its shutdown, groups given up.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

import msgspec

from ...ports import Runtime
from ...supervision.pauses import Pauses
from ...supervision.worker import SupervisedWorker, World


class DownGroup(msgspec.Struct, frozen=True):
    """A group that is down until its last member to die is started again."""

    member: str
    why: str


class StandingOrders:
    """The orders in force, and the moment as it is for a worker under them."""

    def __init__(self, runtime: Runtime) -> None:
        self.pauses = Pauses()
        self.started = False
        """The whole system was started: a worker that is added starts, too."""
        self.stopping = False
        """The supervisor shuts down and starts no worker from now on."""
        self.versions: dict[str, str] = {}
        """Code and configuration when they were last read, by id of the workers whose policy asks for it."""
        self.given_up: dict[str, DownGroup] = {}
        """The groups that are down, by name."""
        self._runtime = runtime

    def down(self, worker: SupervisedWorker) -> str | None:
        """Why this worker must not start: one of its groups is given up because of another member."""
        if not self.given_up:
            return None
        for place in worker.spec.membership:
            given_up = self.given_up.get(place.group.name)
            if given_up is not None and given_up.member != worker.id:
                return f"group {place.group.name} is given up because of {given_up.member}: {given_up.why}"
        return None

    def world(
        self, worker: SupervisedWorker | None, held: str | None = None, at: float | None = None
    ) -> World:
        """The moment as it is for this worker; `held` is why a breaker holds the worker back."""
        clock = self._runtime.clock
        spec = None if worker is None else worker.spec
        return World(
            now_ms=round((clock.monotonic() if at is None else at) * 1000),
            wall_ms=clock.wall_ms(),
            stopping=self.stopping,
            paused=spec is not None and self.pauses.holds(spec.id),
            held=held,
            down=None if worker is None else self.down(worker),
            chance=self._runtime.chance() if spec is not None and spec.restart.jitter else 0.0,
            version=None if spec is None else self.versions.get(spec.id),
        )
