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
from ..facts.tenures import Tenure, TenureEnd


def carried(tenures: Iterable[Tenure]) -> RememberedWorker:
    """What the next node must know of a worker, from all its tenures."""
    tenures = sorted(tenures, key=lambda each: each.epoch)
    found = since_reset(tenures)
    if not found:
        return RememberedWorker()
    newest = found[-1]
    deaths = sorted({at for each in found for at in _own_deaths(each)})
    has_failed = newest.failed_at_wall_ms is not None and newest.lifted_ms is None
    return RememberedWorker(
        restart_count=max(0, sum(each.restarts for each in found) - refunded(found)),
        streak_count=max(0, newest.streak - newest.refunded),
        last_restart_wall_ms=max((each.last_restart_ms or 0 for each in found), default=0) or None,
        failed_at_wall_ms=newest.failed_at_wall_ms if has_failed else None,
        failure_reason=newest.failure_reason if has_failed else None,
        recent_deaths_wall_ms=tuple(deaths[-RECENT_DEATHS:]),
        timetable=next((each.timetable for each in reversed(tenures) if each.timetable), None),
        scheduled_since_wall_ms=newest.began_ms,
    )


def _own_deaths(tenure: Tenure) -> tuple[int, ...]:
    """Its latest deaths without those that were refunded, which are the last ones."""
    return tenure.recent_deaths_ms[: max(0, len(tenure.recent_deaths_ms) - tenure.refunded)]


def refunded(tenures: Iterable[Tenure]) -> int:
    """How many restarts of a worker do not count, of those that would."""
    return sum(min(each.refunded, each.restarts) for each in since_reset(tenures))


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
        lifted_ms=stored.lifted_ms if stored.lifted_ms is not None else news.lifted_ms,
        last_generation=max(stored.last_generation, news.last_generation),
        noted=max(stored.noted, news.noted),
    )


def late_restarts(stored: Tenure | None, after: Tenure) -> int:
    """How many restarts news have added to a tenure whose node was declared lost before."""
    if stored is None or stored.how is not TenureEnd.LOST:
        return 0
    return max(0, after.restarts - stored.restarts)
