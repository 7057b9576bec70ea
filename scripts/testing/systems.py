"""Real workers under a real supervisor, for the duration of a test."""

from __future__ import annotations

import os
import signal as signals
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from rekindle.actors import RequestRefusedError, RequestTimeoutError, Status, System, WorkerSpec
from rekindle.actors.deaths.death import Job
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.messages import Event, WorkerStatus
from rekindle.actors.ports import Store
from rekindle.persistence import MemoryStore, open_store

from .failure_report import timelines

PATIENCE_S = 20.0
"""How long the `wait_…` methods wait by default; long, because test machines are busy."""

_POLL_S = 0.01
_LAST_LINES = 10


class SystemUnderTest(System):
    """A `System` with methods that hurt its workers, and a record of its events.

    Methods without a worker's id are for systems with one worker.
    """

    def __init__(self, *specs: WorkerSpec, store: Store, max_concurrent_starts: int | None = None) -> None:
        super().__init__(specs, store=store, max_concurrent_starts=max_concurrent_starts)
        self.ids = tuple(spec.id for spec in specs)
        self.heard: list[tuple[float, Event]] = []
        """Every event, with the seconds since the start."""
        self._began = time.monotonic()
        self._hurt: dict[str, int] = {}

    def begin(self) -> None:
        """Subscribe to the events, then start every worker."""
        self.open()
        self.subscribe(_Subscriber(self._record))
        self.start()

    def _record(self, event: Event) -> None:
        self.heard.append((time.monotonic() - self._began, event))

    # ── faults ───────────────────────────────────────────────────────────────────────────

    def kill(self, component_id: str | None = None, signal: int = signals.SIGKILL) -> int:
        """Send the worker's process a signal from outside; returns its pid.

        Raises:
            RequestRefusedError: the worker has no process now.
        """
        id_ = self._named(component_id)
        worker = self.status(id_)
        if worker.pid is None:
            raise RequestRefusedError(f"{id_} has no process to send a signal to: it is {worker.shown}")
        self._hurt[id_] = worker.generation
        os.kill(worker.pid, signal)
        return worker.pid

    def freeze(self, component_id: str | None = None) -> int:
        """Freeze the worker's process by SIGSTOP: it lives, and does nothing."""
        return self.kill(component_id, signals.SIGSTOP)

    def thaw(self, component_id: str | None = None) -> int:
        """Continue a frozen process."""
        return self.kill(component_id, signals.SIGCONT)

    # ── waiting ──────────────────────────────────────────────────────────────────────────

    def wait_until_healthy(
        self, component_id: str | None = None, timeout_s: float = PATIENCE_S
    ) -> WorkerStatus:
        """Wait until the worker is healthy."""
        return self.wait_for(self._named(component_id), Status.HEALTHY, timeout_s=timeout_s)

    def wait_for_job(
        self, job: Job | None = None, component_id: str | None = None, timeout_s: float = PATIENCE_S
    ) -> WorkerStatus:
        """Wait until the worker runs this job, or any job."""

        def at_work(worker: WorkerStatus) -> bool:
            return worker.current_job == job if job is not None else worker.current_job is not None

        return self.wait_until(self._named(component_id), at_work, timeout_s)

    def wait_until_back(self, component_id: str | None = None, timeout_s: float = PATIENCE_S) -> WorkerStatus:
        """Wait until a later process than the one that was hurt is healthy."""
        id_ = self._named(component_id)
        before = self._hurt.get(id_, 0)
        return self.wait_until(
            id_, lambda each: each.generation > before and each.status is Status.HEALTHY, timeout_s
        )

    def wait_for_deaths(
        self, number: int = 1, component_id: str | None = None, timeout_s: float = PATIENCE_S
    ) -> tuple[DeathRecord, ...]:
        """Wait until this many deaths of the worker are recorded; returns all of them, oldest first."""
        id_ = self._named(component_id)
        deadline = time.monotonic() + timeout_s
        never = threading.Event()
        while len(deaths := self.deaths(id_, limit=max(number, 1000))) < number:
            if time.monotonic() > deadline:
                raise RequestTimeoutError(f"{id_} died {len(deaths)} times in {timeout_s:g} s, not {number}")
            never.wait(_POLL_S)
        return tuple(reversed(deaths))

    def _named(self, component_id: str | None) -> str:
        if component_id is not None:
            return component_id
        if len(self.ids) != 1:
            raise RequestRefusedError(f"there are {len(self.ids)} workers; name one of {', '.join(self.ids)}")
        return self.ids[0]


class Systems:
    """Starts systems, one or several; the fixture `rekindle_system`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[SystemUnderTest] = []

    def __call__(
        self,
        *specs: WorkerSpec,
        store: Store | os.PathLike[str] | Literal["memory", "sqlite"] = "memory",
        max_concurrent_starts: int | None = None,
    ) -> SystemUnderTest:
        """Start these workers; they run when this returns, and need not be healthy yet.

        Args:
            specs: the workers.
            store: `"memory"`, `"sqlite"` (a file in the test's folder, the same one for each system
                of the test), the path of such a file, or a store of your own.
            max_concurrent_starts: how many workers may be starting at the same time.
        """
        system = SystemUnderTest(
            *specs, store=self._store(store), max_concurrent_starts=max_concurrent_starts
        )
        self._made.append(system)
        system.begin()
        return system

    def _store(self, store: Store | os.PathLike[str] | str) -> Store:
        if store == "memory":
            return MemoryStore()
        if store == "sqlite":
            return open_store(self._folder / "rekindle.db")
        return open_store(store) if isinstance(store, str | os.PathLike) else store

    def stop(self) -> None:
        """Stop every system, the last one first, even if stopping another one fails."""
        errors = []
        while self._made:
            try:
                self._made.pop().stop()
            except Exception as error:  # noqa: BLE001  # the others must be stopped as well
                errors.append(error)
        if errors:
            raise errors[0]

    def sections(self) -> Iterator[tuple[str, str]]:
        """What happened, for the report of a failed test."""
        for number, system in enumerate(self._made, start=1):
            which = f" of system {number}" if len(self._made) > 1 else ""
            for worker, text in timelines(list(system.heard)):
                lines = [text, *_output(system, worker)]
                yield f"rekindle: {worker}{which}", "\n".join(lines)


def _output(system: SystemUnderTest, worker: str) -> Iterator[str]:
    lines = system.output(worker)[-_LAST_LINES:] if worker in system.ids else ()
    if lines:
        yield "last output:"
        yield from ("  | " + line.rstrip() for line in lines)


class _Subscriber:
    """Passes the published events on."""

    def __init__(self, take: Callable[[Event], None]) -> None:
        self._take = take

    def tell(self, message: Event) -> None:
        """Take an event."""
        self._take(message)
