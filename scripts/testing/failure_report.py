"""Pure: what happened, in lines for people, worker by worker."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from rekindle.actors.messages import (
    Event,
    StatusChanged,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
    WorkerStopped,
)
from rekindle.actors.messages.shapes import field_names

LAST = 20
"""How many events of a worker are told at most."""


def timelines(heard: Iterable[tuple[float, Event]], last: int = LAST) -> Iterator[tuple[str, str]]:
    """The last events of each worker, with seconds since the beginning: its id, and lines."""
    by_worker: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=last))
    left_out: dict[str, int] = defaultdict(int)
    for at, event in heard:
        worker = getattr(event, "component_id", "") or "the system"
        if len(by_worker[worker]) == last:
            left_out[worker] += 1
        by_worker[worker].append(f"{at:>9.3f} s  {words(event)}")
    for worker, lines in by_worker.items():
        earlier = [f"{left_out[worker]:>9} earlier events"] if left_out[worker] else []
        yield worker, "\n".join((*earlier, *lines))


def words(event: Event) -> str:
    """One event in a few words."""
    match event:
        case WorkerStarted(generation=generation, pid=pid):
            return f"started, pid {pid}, generation {generation}"
        case StatusChanged(old=old, new=new):
            return f"is {new.value} (was {old.value})"
        case WorkerDied(death=death, reason=reason):
            job = "" if death.job is None else f" in job {death.job!r}"
            return f"died{job}: {death}. {reason}"
        case WorkerFailed(reason=reason):
            return f"was given up: {reason}"
        case WorkerStopped(exit=exit_):
            return f"was stopped: {exit_}"
        case _:
            return _plainly(event)


def _plainly(event: Event) -> str:
    """`StoreDegraded(reason=…)` as `store degraded: …`; also what is new here can be told."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(event).__name__).lower()
    values = (getattr(event, name) for name in field_names(type(event)) if name != "component_id")
    told = ", ".join(str(value) for value in values)
    return f"{name}: {told}" if told else name
