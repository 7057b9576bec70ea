"""Every statement that the store runs, built once for a dialect.

They are Core statements on the typed tables, the same for SQLite and PostgreSQL except for each
dialect's own `insert`, which supports ON CONFLICT.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import (
    CompoundSelect,
    Delete,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    case,
    delete,
    func,
    select,
    union_all,
    update,
)

from rekindle.actors.facts.records import RECENT_DEATHS

from ..schema.tables import (
    ALERT,
    AUDIT,
    BUNDLE,
    DEATH,
    EVENT,
    HEALTH,
    META,
    POLICY,
    USAGE,
)
from .generation_rows import GenerationUpserts, generation_upserts
from .run_rows import keep_run

_THIS_WORKER = POLICY.c.component_id == bindparam("worker")


class Upserts(msgspec.Struct, frozen=True):
    """The statements that need a dialect's own ON CONFLICT.

    Each is safe to run for many rows at once, even several of one worker: none of them becomes a
    multi-row INSERT, in which PostgreSQL does not allow the same row twice.
    """

    add_death: Insert
    """Changes no row if the death exists."""
    add_event: Insert
    """Changes no row if an event with that number exists."""
    count_restart: Insert
    count_lost_restarts: Insert
    count_late_restart: Insert
    mark_failed: Insert
    set_meta: Insert
    mirror: Insert
    keep_alert: Insert
    keep_bundle: Insert
    note_usage: Insert
    keep_run: Insert
    generation: GenerationUpserts


def upserts(dialect: str) -> Upserts:
    """The statements for `sqlite` or `postgresql`."""
    insert = _insert_of(dialect)
    return Upserts(
        add_death=insert(DEATH).on_conflict_do_nothing(index_elements=["component_id", "generation"]),
        add_event=insert(EVENT).on_conflict_do_nothing(index_elements=["id"]),
        count_restart=_count_restart(insert),
        count_lost_restarts=_count_lost_restarts(insert),
        count_late_restart=_count_late_restart(insert),
        mark_failed=_mark_failed(insert),
        set_meta=_replace(insert, META, "key"),
        mirror=_replace(insert, HEALTH, "component_id"),
        keep_alert=_replace(insert, ALERT, "id"),
        keep_bundle=_replace(insert, BUNDLE, "component_id", "generation"),
        keep_run=keep_run(insert),
        note_usage=insert(USAGE).on_conflict_do_nothing(index_elements=["component_id", "at_wall_ms"]),
        generation=generation_upserts(insert),
    )


def _insert_of(dialect: str) -> Any:
    # The other dialect is not loaded: PostgreSQL's alone takes 3 MB.
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert
    from sqlalchemy.dialects import postgresql

    return postgresql.insert


def _count_restart(insert: Any) -> Insert:
    # `kept` is 0 if sustained health had cleared the streak, else 1.
    statement = insert(POLICY).values(
        component_id=bindparam("worker"),
        restart_count=1,
        streak_count=1,
        last_restart_wall_ms=bindparam("at"),
        updated_at_wall_ms=bindparam("at"),
    )
    result: Insert = statement.on_conflict_do_update(
        index_elements=["component_id"],
        set_={
            "restart_count": POLICY.c.restart_count + 1,
            "streak_count": POLICY.c.streak_count * bindparam("kept") + 1,
            "last_restart_wall_ms": statement.excluded.last_restart_wall_ms,
            "updated_at_wall_ms": statement.excluded.updated_at_wall_ms,
        },
    )
    return result


def _count_lost_restarts(insert: Any) -> Insert:
    statement = insert(POLICY).values(
        component_id=bindparam("worker"),
        restart_count=bindparam("restarts"),
        streak_count=bindparam("streak"),
        last_restart_wall_ms=bindparam("at"),
        updated_at_wall_ms=bindparam("at"),
    )
    new, last = statement.excluded, POLICY.c.last_restart_wall_ms
    result: Insert = statement.on_conflict_do_update(
        index_elements=["component_id"],
        set_={
            "restart_count": POLICY.c.restart_count + new.restart_count,
            "streak_count": POLICY.c.streak_count + new.streak_count,
            "last_restart_wall_ms": case(
                (last > new.last_restart_wall_ms, last), else_=new.last_restart_wall_ms
            ),
            "updated_at_wall_ms": new.updated_at_wall_ms,
        },
    )
    return result


def _count_late_restart(insert: Any) -> Insert:
    """A restart of a former run: streak and failure stay, and a later reset has taken it off."""
    statement = insert(POLICY).values(
        component_id=bindparam("worker"),
        restart_count=1,
        streak_count=0,
        last_restart_wall_ms=bindparam("at"),
        updated_at_wall_ms=bindparam("at"),
    )
    was_reset = case((POLICY.c.reset_at_wall_ms >= statement.excluded.last_restart_wall_ms, 1), else_=0)
    result: Insert = statement.on_conflict_do_update(
        index_elements=["component_id"],
        set_={
            "restart_count": POLICY.c.restart_count + 1 - was_reset,
            "restarts_before_reset": POLICY.c.restarts_before_reset + was_reset,
        },
    )
    return result


def _mark_failed(insert: Any) -> Insert:
    statement = insert(POLICY).values(
        component_id=bindparam("worker"),
        restart_count=0,
        streak_count=0,
        failed_at_wall_ms=bindparam("at"),
        failure_reason=bindparam("reason"),
        failed_fingerprint=bindparam("version"),
        updated_at_wall_ms=bindparam("at"),
    )
    new = statement.excluded
    result: Insert = statement.on_conflict_do_update(
        index_elements=["component_id"],
        set_={
            "streak_count": POLICY.c.streak_count * bindparam("kept"),
            "failed_at_wall_ms": new.failed_at_wall_ms,
            "failure_reason": new.failure_reason,
            "failed_fingerprint": new.failed_fingerprint,
            "updated_at_wall_ms": new.updated_at_wall_ms,
        },
    )
    return result


def _replace(insert: Any, table: Table, *key: str) -> Insert:
    statement = insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.c if column.name not in key}
    result: Insert = statement.on_conflict_do_update(index_elements=[*key], set_=others)
    return result


AMEND_DEATH: Update = (
    update(DEATH)
    .where(DEATH.c.component_id == bindparam("worker"), DEATH.c.generation == bindparam("number"))
    .values(exit_code=bindparam("code"), signal=bindparam("signum"))
)
NOTE_RELEASE: Update = (
    update(DEATH)
    .where(DEATH.c.component_id == bindparam("worker"), DEATH.c.generation == bindparam("number"))
    .values(work_item=bindparam("item"), released=bindparam("outcome"))
)
CLEAR_STREAK: Update = (
    update(POLICY).where(_THIS_WORKER).values(streak_count=0, updated_at_wall_ms=bindparam("at"))
)
RESET: Update = (
    update(POLICY)
    .where(_THIS_WORKER)
    .values(
        restart_count=0,
        streak_count=0,
        last_restart_wall_ms=None,
        failed_at_wall_ms=None,
        failure_reason=None,
        failed_fingerprint=None,
        updated_at_wall_ms=bindparam("at"),
        reset_at_wall_ms=bindparam("at"),
        restarts_before_reset=POLICY.c.restarts_before_reset + POLICY.c.restart_count,
    )
)
PRUNE_BUNDLES: Delete = delete(BUNDLE).where(
    BUNDLE.c.component_id == bindparam("worker"), BUNDLE.c.generation <= bindparam("up_to")
)
ADD_AUDIT: Insert = AUDIT.insert()
REMOVE_MIRROR: Delete = delete(HEALTH).where(HEALTH.c.component_id == bindparam("worker"))
REMOVE_META: Delete = delete(META).where(META.c.key == bindparam("name"))
WIPE_MIRROR: Delete = delete(HEALTH)

LOAD_POLICIES: Select[*tuple[Any, ...]] = select(POLICY)
_LATEST = select(EVENT.c.at_wall_ms).order_by(EVENT.c.id.desc()).limit(1000).subquery()
LAST_EVENT_AT: Select[*tuple[Any, ...]] = select(func.max(_LATEST.c.at_wall_ms))
"""Of the latest ones: the very last may be those of a former run, which came late."""

LAST_EVENT: Select[*tuple[Any, ...]] = select(func.max(EVENT.c.id))
EVENT_SPAN: Select[*tuple[Any, ...]] = select(func.min(EVENT.c.id), func.max(EVENT.c.id))
LOAD_TRACES: CompoundSelect[*tuple[Any, ...]] = union_all(
    select(HEALTH.c.component_id, HEALTH.c.generation),
    select(BUNDLE.c.component_id, func.max(BUNDLE.c.generation)).group_by(BUNDLE.c.component_id),
)
"""Incarnations that may have no death."""
LOAD_META: Select[*tuple[Any, ...]] = select(META.c.key, META.c.value)


def _recent_deaths() -> Select[*tuple[Any, ...]]:
    # A window function would read every death. The unique index instead yields the workers one
    # after the other, and for each the generation at which "recent" begins: the cost depends on
    # the number of workers, not on the length of their history.
    first = select(func.min(DEATH.c.component_id).label("id")).cte("workers", recursive=True)
    after = select(func.min(DEATH.c.component_id)).where(DEATH.c.component_id > first.c.id)
    workers = first.union_all(select(after.scalar_subquery()).where(first.c.id.is_not(None)))
    older = DEATH.alias("older")
    since = (
        select(older.c.generation)
        .where(older.c.component_id == workers.c.id)
        .order_by(older.c.generation.desc())
        .limit(1)
        .offset(RECENT_DEATHS - 1)
        .scalar_subquery()
    )
    columns = (
        DEATH.c.component_id,
        DEATH.c.generation,
        DEATH.c.died_at_wall_ms,
        DEATH.c.action,
        DEATH.c.delay_ms,
        DEATH.c.cause,
    )
    return (
        select(*columns)
        .select_from(workers.join(DEATH, DEATH.c.component_id == workers.c.id))
        .where(DEATH.c.generation >= func.coalesce(since, 0))
        .order_by(workers.c.id, DEATH.c.generation)
    )


LOAD_RECENT_DEATHS: Select[*tuple[Any, ...]] = _recent_deaths()


def latest_deaths(component_id: str | None, signal: int | None, limit: int) -> Select[*tuple[Any, ...]]:
    """Deaths, newest first: by generation for one worker, by id for all. Clocks may jump, these do not."""
    order = DEATH.c.id if component_id is None else DEATH.c.generation
    statement = select(DEATH).order_by(order.desc()).limit(max(limit, 0))
    if component_id is not None:
        statement = statement.where(DEATH.c.component_id == component_id)
    if signal is not None:
        statement = statement.where(DEATH.c.signal == signal)
    return statement


def latest_bundles(component_id: str, generation: int | None, limit: int) -> Select[*tuple[Any, ...]]:
    """The bundles of one worker, newest first, or one of them."""
    statement = select(BUNDLE.c.details).where(BUNDLE.c.component_id == component_id)
    if generation is not None:
        return statement.where(BUNDLE.c.generation == generation)
    return statement.order_by(BUNDLE.c.generation.desc()).limit(max(limit, 0))


def latest_audit(limit: int) -> Select[*tuple[Any, ...]]:
    """Orders of operators, newest first."""
    return select(AUDIT).order_by(AUDIT.c.id.desc()).limit(max(limit, 0))


def events_after(after_id: int, limit: int) -> Select[*tuple[Any, ...]]:
    """Events, oldest first."""
    return select(EVENT).where(EVENT.c.id > after_id).order_by(EVENT.c.id).limit(max(limit, 0))


def events_of(component_id: str | None, since_wall_ms: int, limit: int) -> Select[*tuple[Any, ...]]:
    """Events about one worker, or about no worker, newest first."""
    about = EVENT.c.component_id.is_(None) if component_id is None else EVENT.c.component_id == component_id
    statement = select(EVENT).where(about).order_by(EVENT.c.id.desc()).limit(max(limit, 0))
    return statement.where(EVENT.c.at_wall_ms >= since_wall_ms) if since_wall_ms else statement


def lives(component_id: str) -> Select[*tuple[Any, ...]]:
    """How many deaths of a worker are stored, and the sum of its uptimes before them."""
    return select(func.count(), func.sum(DEATH.c.uptime_ms)).where(DEATH.c.component_id == component_id)
