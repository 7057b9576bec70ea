"""Pure: the counters of a worker, as a sum over its tenures.

    tenure 1 on A: 4 restarts ┐
    tenure 2 on B: 1 restart  ├─▶ lifetime 5, less what was refunded; the streak is that of the newest
    late news of A: 5, not 4  ┘   merged into tenure 1: the sum is 6

Each tenure has one author, the holder of its epoch, so nothing conflicts. The end of a tenure counts
nothing: neither the loss of the node, nor its fencing, nor a drain, nor a move.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ...facts.records import RECENT_DEATHS, RememberedWorker
from ..facts.tenures import Tenure


def carried(tenures: Iterable[Tenure]) -> RememberedWorker:
    """What the next node must know of a worker, from all its tenures."""
    found = since_reset(tenures)
    if not found:
        return RememberedWorker()
    newest = found[-1]
    deaths = sorted({at for each in found for at in each.recent_deaths_ms})
    refunded = sum(each.refunded for each in found)
    return RememberedWorker(
        restart_count=max(0, sum(each.restarts for each in found) - refunded),
        streak_count=max(0, newest.streak - newest.refunded),
        last_restart_wall_ms=max((each.last_restart_ms or 0 for each in found), default=0) or None,
        failed_at_wall_ms=newest.failed_at_wall_ms,
        failure_reason=newest.failure_reason,
        recent_deaths_wall_ms=tuple(deaths[-RECENT_DEATHS:]),
    )


def since_reset(tenures: Iterable[Tenure]) -> tuple[Tenure, ...]:
    """The tenures that count, oldest first: an operator's reset voids those before it."""
    ordered = sorted(tenures, key=lambda each: each.epoch)
    for index in range(len(ordered) - 1, -1, -1):
        if ordered[index].reset_at_wall_ms is not None:
            return tuple(ordered[index:])
    return tuple(ordered)


def merged(stored: Tenure | None, news: Tenure) -> Tenure:
    """One tenure after news of it: later news replace earlier ones, and what ended stays ended as it did.

    An operator may reset a worker that has no node; then news from before the reset change no counter.
    """
    if stored is None:
        return news
    reset = (news.reset_at_wall_ms or 0) - (stored.reset_at_wall_ms or 0)
    latest = news if reset > 0 or (reset == 0 and news.noted >= stored.noted) else stored
    return replace(
        latest,
        ended_ms=stored.ended_ms if stored.ended_ms is not None else news.ended_ms,
        how=stored.how if stored.how is not None else news.how,
        refunded=max(stored.refunded, news.refunded),
        last_generation=max(stored.last_generation, news.last_generation),
        noted=max(stored.noted, news.noted),
    )
