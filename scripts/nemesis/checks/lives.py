"""Pure: the generations and the lives of the workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ..evidence import Evidence, Incarnation, Life


def a_generation_is_used_once(evidence: Evidence) -> Iterator[str]:
    """Two processes of one worker never carry the same generation."""
    first: dict[Incarnation, Life] = {}
    for life in evidence.lives:
        other = first.setdefault(life.key, life)
        if other is not life:
            yield f"{life} began {life.began - other.began:.1f} s after pid {other.pid} with the same number"


def generations_never_go_back(evidence: Evidence) -> Iterator[str]:
    """The generation of a later process is larger than that of every earlier one."""
    largest: dict[str, Life] = {}
    for life in sorted(evidence.lives, key=lambda life: life.began):
        before = largest.get(life.worker)
        if before is not None and life.generation < before.generation:
            yield f"{life} began after generation {before.generation} (pid {before.pid})"
        if before is None or life.generation > before.generation:
            largest[life.worker] = life


def lives_never_overlap(evidence: Evidence) -> Iterator[str]:
    """A process of a worker begins after the former one has ended."""
    by_worker: dict[str, list[Life]] = defaultdict(list)
    for life in sorted(evidence.lives, key=lambda life: life.began):
        by_worker[life.worker].append(life)
    for lives in by_worker.values():
        latest: Life | None = None
        for life in lives:
            if life.holder:
                yield f"{life} began while {life.holder.strip()} held the lock of the worker"
            elif latest is not None and latest.last > life.began:
                yield f"{latest} still wrote {latest.last - life.began:.2f} s after {life} had begun"
            if latest is None or life.last > latest.last:
                latest = life


def generations_grow_in_the_events(evidence: Evidence) -> Iterator[str]:
    """The events tell larger and larger generations of a worker."""
    largest: dict[str, tuple[int, int]] = {}
    for event in evidence.events:
        if event.type != "worker_started" or event.worker is None or event.generation is None:
            continue
        number, told = largest.get(event.worker, (0, 0))
        if event.generation <= number:
            yield (
                f"event {event.id} starts {event.worker} generation {event.generation},"
                f" event {told} had started generation {number}"
            )
        else:
            largest[event.worker] = event.generation, event.id
