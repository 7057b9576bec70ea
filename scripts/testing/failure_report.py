"""Pure: what happened, in lines for people, worker by worker."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from rekindle.actors.messages import Event
from rekindle.actors.views.event_sentences import text_of

LAST = 20
"""How many events of a worker are reported at most."""


def timelines(heard: Iterable[tuple[float, Event]], last: int = LAST) -> Iterator[tuple[str, str]]:
    """The last events of each worker, with seconds since the beginning: its id, and lines."""
    by_worker: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=last))
    left_out: dict[str, int] = defaultdict(int)
    for at, event in heard:
        worker = getattr(event, "component_id", "") or "the system"
        if len(by_worker[worker]) == last:
            left_out[worker] += 1
        by_worker[worker].append(f"{at:>9.3f} s  {text_of(event)}")
    for worker, lines in by_worker.items():
        earlier = [f"{left_out[worker]:>9} earlier events"] if left_out[worker] else []
        yield worker, "\n".join((*earlier, *lines))
