"""What is set for a queue as a whole: its pause and its limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, Update, bindparam, or_, select, text, update

from rekindle.actors.facts.queues import QueueLimits, QueuePause, Rate

from ..schema.tables import QUEUE
from ..sql.encoding import storable

_PAUSED: Select[*tuple[Any, ...]] = (
    select(QUEUE)
    .where(
        QUEUE.c.paused_at_wall_ms.is_not(None),
        or_(QUEUE.c.paused_until_wall_ms.is_(None), QUEUE.c.paused_until_wall_ms > bindparam("now")),
    )
    .order_by(QUEUE.c.name)
)
_RESUME: Update = (
    update(QUEUE)
    .where(QUEUE.c.name == bindparam("queue"))
    .values(paused_at_wall_ms=None, paused_until_wall_ms=None, pause_reason=None)
)
_ENSURE = text("INSERT INTO rekindle_queue (name) VALUES (:name) ON CONFLICT DO NOTHING")


def pauses(connection: Connection, now_wall_ms: int) -> tuple[QueuePause, ...]:
    """The queues that are paused now, by name."""
    return tuple(
        QueuePause(
            queue=row.name,
            at_wall_ms=row.paused_at_wall_ms,
            until_wall_ms=row.paused_until_wall_ms,
            reason=row.pause_reason or "",
        )
        for row in connection.execute(_PAUSED, {"now": now_wall_ms})
    )


def set_pause(connection: Connection, pause: QueuePause) -> None:
    """Pause a queue; a former pause of it is replaced."""
    ensure_row(connection, pause.queue)
    values = {
        "paused_at_wall_ms": pause.at_wall_ms,
        "paused_until_wall_ms": pause.until_wall_ms,
        "pause_reason": storable(pause.reason),
    }
    connection.execute(update(QUEUE).where(QUEUE.c.name == pause.queue).values(values))


def end_pause(connection: Connection, queue: str, now_wall_ms: int) -> bool:
    """Resume a queue; False if it was not paused."""
    was_paused = any(pause.queue == queue for pause in pauses(connection, now_wall_ms))
    connection.execute(_RESUME, {"queue": queue})
    return was_paused


def ensure_row(connection: Connection, queue: str) -> None:
    """Have a row for the settings of a queue."""
    connection.execute(_ENSURE, {"name": queue})


def limits(connection: Connection) -> tuple[QueueLimits, ...]:
    """The queues that have limits, by name."""
    found = (_limits(row) for row in connection.execute(select(QUEUE).order_by(QUEUE.c.name)))
    return tuple(each for each in found if each != QueueLimits(queue=each.queue))


def set_limits(connection: Connection, wanted: Iterable[QueueLimits]) -> bool:
    """Have these limits and no others; False if nothing changes."""
    new, before = {each.queue: each for each in wanted}, {each.queue: each for each in limits(connection)}
    new = {queue: each for queue, each in new.items() if each != QueueLimits(queue=queue)}
    changed = [
        new.get(queue) or QueueLimits(queue=queue)
        for queue in sorted(new.keys() | before.keys())
        if new.get(queue) != before.get(queue)
    ]
    for each in changed:
        ensure_row(connection, each.queue)
        connection.execute(update(QUEUE).where(QUEUE.c.name == each.queue).values(_columns(each)))
    return bool(changed)


def _limits(row: Any) -> QueueLimits:
    return QueueLimits(
        queue=row.name,
        concurrency=row.concurrency,
        rate=None if row.rate is None else Rate(row.rate, row.rate_period_ms),
        key_concurrency=row.key_concurrency,
        key_rate=None if row.key_rate is None else Rate(row.key_rate, row.key_rate_period_ms),
    )


def _columns(limits: QueueLimits) -> dict[str, Any]:
    rate, key_rate = limits.rate, limits.key_rate
    return {
        "concurrency": limits.concurrency,
        "rate": None if rate is None else rate.count,
        "rate_period_ms": None if rate is None else rate.period_ms,
        "key_concurrency": limits.key_concurrency,
        "key_rate": None if key_rate is None else key_rate.count,
        "key_rate_period_ms": None if key_rate is None else key_rate.period_ms,
        "bucket_full_us": 0,
    }
