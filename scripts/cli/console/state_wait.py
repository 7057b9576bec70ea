"""`rekindle wait`: look at the workers whenever the supervisor says that something changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from queue import Empty, SimpleQueue
from threading import Thread

from ..client import ControlClient, ControlError, NoSupervisorError
from ..event_client import stream
from ..render.status_table import Document
from ..render.text import printable
from .targets import Known

AGAIN_S = 0.1
"""The pause before the next attempt to reach a supervisor that does not answer."""
LOOK_S = 2.0
"""How often it looks while nothing is reported."""


class AwaitedState(StrEnum):
    """What is waited for."""

    READY = "ready"
    DONE = "done"
    STOPPED = "stopped"


class NeverError(Exception):
    """A worker will not get there by itself, and why."""


def is_there(worker: Document, wanted: AwaitedState) -> bool:
    """Pure: whether a worker is in the wanted state.

    Raises:
        NeverError: it will not get there unless someone acts.
    """
    id_, shown = worker["component_id"], worker["shown"]
    if wanted is AwaitedState.STOPPED:
        return worker["pid"] is None and shown in ("stopped", "failed", "done")
    if shown == "failed":
        raise NeverError(f"{id_} was given up: {worker['failure_reason']}")
    if wanted is AwaitedState.DONE:
        if worker.get("kind") == "scheduled":
            raise NeverError(f"{id_} has a schedule, which is never done; see: rekindle runs {id_}")
        if worker.get("kind", "service") == "service":
            raise NeverError(f'{id_} is a service, which is never done; kind = "once" declares a task')
        return bool(shown == "done")
    return bool(worker["status"] == "healthy" or shown in ("done", "scheduled"))


def wait(client: ControlClient, names: Sequence[str], wanted: AwaitedState, within_s: float) -> None:
    """Return once all workers of these names are in the wanted state.

    Raises:
        NeverError: one of them will not get there.
        TimeoutError: it took too long; the message names the workers that are not there.
        UnknownTargetError: the supervisor has no such worker.
        NoSupervisorError: no supervisor answered in that time.
    """
    deadline = time.monotonic() + within_s
    changes = _Changes(client)
    while True:
        left = deadline - time.monotonic()
        try:
            missing = _missing(client, names, wanted)
            if not missing:
                return
        except NoSupervisorError:
            if left <= 0:
                raise
            time.sleep(min(AGAIN_S, left))
            continue
        if left <= 0:
            raise TimeoutError("; ".join(missing))
        changes.next(min(left, LOOK_S))


def _missing(client: ControlClient, names: Sequence[str], wanted: AwaitedState) -> list[str]:
    """The workers that are not in the wanted state, with their present one."""
    report = client.get("/workers")
    known, workers = Known.of(report), {each["component_id"]: each for each in report["workers"]}
    chosen = dict.fromkeys(id_ for name in names for id_ in known.found(name))
    return [_state(workers[id_]) for id_ in chosen if not is_there(workers[id_], wanted)]


def _state(worker: Document) -> str:
    waits = ", ".join(worker.get("not_ready", ()))
    why = worker["why"] or (f"not yet: {waits}" if waits else "")
    return printable(f"{worker['component_id']} is {worker['shown']}" + (f" ({why})" if why else ""))


class _Changes:
    """Follows the states of all workers in a thread, as long as the command runs."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._seen: SimpleQueue[None] = SimpleQueue()
        Thread(target=self._follow, daemon=True).start()

    def next(self, within_s: float) -> None:
        """Wait until something changed, or for this time."""
        _emptied(self._seen.get_nowait)
        try:
            self._seen.get(timeout=within_s)
        except Empty:
            return

    def _follow(self) -> None:
        while True:
            try:
                for _ in stream(self._client, topics="worker:*:status"):
                    self._seen.put(None)
            except ControlError:
                time.sleep(AGAIN_S)


def _emptied(take: Callable[[], object]) -> None:
    """Forget what was reported before the last look."""
    try:
        while True:
            take()
    except Empty:
        return
