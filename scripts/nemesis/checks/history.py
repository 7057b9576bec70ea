"""Pure: the counters and the log of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..evidence import Evidence

CLEARS = frozenset({"worker_reset", "failure_lifted"})


def counters_equal_the_history(evidence: Evidence) -> Iterator[str]:
    """A stored counter, and each count that an event tells, equals the restarts since the last reset.

    A death that was kept aside while another run used the store is told late, with its own time and with
    the count of that time: it counts unless the worker was reset after it.
    """
    counts: Counter[str] = Counter()
    cleared: dict[str, int] = {}
    latest = 0
    for event in evidence.events:
        is_late, latest = event.at_wall_ms < latest, max(latest, event.at_wall_ms)
        if event.worker is None:
            continue
        if event.type in CLEARS:
            counts[event.worker], cleared[event.worker] = 0, event.at_wall_ms
        elif event.type == "worker_died":
            was_reset = is_late and event.at_wall_ms <= cleared.get(event.worker, -1)
            counts[event.worker] += event.action == "restart" and not was_reset
            if not is_late and event.restart_count not in (None, counts[event.worker]):
                yield (
                    f"event {event.id} tells {event.restart_count} restarts of {event.worker},"
                    f" the events before it make {counts[event.worker]}"
                )
    for worker, stored in evidence.counters.items():
        if stored != counts[worker]:
            yield f"{worker}: stored {stored}, history {counts[worker]}"


def events_have_no_gap(evidence: Evidence) -> Iterator[str]:
    """The numbers of the events follow each other, but for those that an events_lost event names."""
    lost = [
        range(event.first_lost, event.last_lost + 1)
        for event in evidence.events
        if event.first_lost is not None and event.last_lost is not None
    ]
    before: int | None = None
    for event in evidence.events:
        if before is not None:
            missing = [
                number for number in range(before + 1, event.id) if not any(number in each for each in lost)
            ]
            if missing:
                yield f"events {missing[0]} to {missing[-1]} are missing"
        before = event.id
