"""The statements that fill, read and maintain the queues, on the typed tables.

A state is a literal and not a parameter where a partial index should be used: the database's planner
cannot know the value of a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Delete,
    Dialect,
    Select,
    TextClause,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    union_all,
    update,
)

from rekindle.actors.facts.jobs import JobState
from rekindle.worker.jobs.job import LONGEST_ERROR

from ..schema.tables import DEATH, JOB, JOB_CRASH, JOB_TALLY

CHANNEL = "rekindle_jobs"
"""The channel that idle workers listen to on PostgreSQL."""


def is_in(state: JobState) -> ColumnElement[bool]:
    """Whether a job is in this state."""
    return JOB.c.state == literal_column(f"'{state.value}'")


SAME: Select[*tuple[Any, ...]] = (
    select(JOB.c.id)
    .where(
        JOB.c.queue == bindparam("of_queue"),
        JOB.c.unique_key == bindparam("key"),
        JOB.c.created_at_wall_ms > bindparam("since"),
        JOB.c.state.in_(bindparam("states", expanding=True)),
    )
    .order_by(JOB.c.id.desc())
    .limit(1)
)
"""The latest job that stands in the way of a unique one."""

SAME_OF_MANY: Select[*tuple[Any, ...]] = (
    select(JOB.c.unique_key, func.max(JOB.c.id).label("id"))
    .where(
        JOB.c.queue == bindparam("of_queue"),
        JOB.c.unique_key.in_(bindparam("keys", expanding=True)),
        JOB.c.created_at_wall_ms > bindparam("since"),
        JOB.c.state.in_(bindparam("states", expanding=True)),
    )
    .group_by(JOB.c.unique_key)
)
"""The same for many keys."""

ENQUEUE = JOB.insert().returning(JOB.c.id, sort_by_parameter_order=True)


@lru_cache(maxsize=8)
def enqueue_arrays(columns: tuple[str, ...], dialect: Dialect) -> TextClause:
    """Inserts jobs on PostgreSQL, in their order, with the values of each column as an array."""
    names = ", ".join(columns)
    arrays = ", ".join(f"CAST(:{name} AS {JOB.c[name].type.compile(dialect)}[])" for name in columns)
    return text(f"""INSERT INTO rekindle_job ({names}) SELECT {names}
        FROM unnest({arrays}) WITH ORDINALITY AS given({names}, place) ORDER BY place RETURNING id""")


CLAIM_COLUMNS = (
    JOB.c.id,
    JOB.c.queue,
    JOB.c.attempts,
    JOB.c.crash_count,
    JOB.c.crash_retries,
    JOB.c.alone,
    JOB.c.claimed_by,
    JOB.c.claimed_generation,
    JOB.c.claimed_run,
    JOB.c.started_at_wall_ms,
    JOB.c.timeout_ms,
    JOB.c.error_count,
    JOB.c.max_retries,
    JOB.c.retry_delay_ms,
    JOB.c.max_retry_delay_ms,
    JOB.c.cancel_requested_at_wall_ms,
    JOB.c.errors,
)
CLAIMS_OF_ONE: Select[*tuple[Any, ...]] = (
    select(*CLAIM_COLUMNS)
    .where(
        is_in(JobState.RUNNING),
        JOB.c.claimed_by == bindparam("worker"),
        JOB.c.claimed_generation == bindparam("number"),
        JOB.c.claimed_run == bindparam("run"),
    )
    .order_by(JOB.c.id)
    .with_for_update()
)
CLAIMS_OF_FORMER_RUNS: Select[*tuple[Any, ...]] = (
    select(*CLAIM_COLUMNS)
    .where(is_in(JobState.RUNNING), or_(JOB.c.claimed_run.is_(None), JOB.c.claimed_run != bindparam("run")))
    .order_by(JOB.c.id)
    .with_for_update()
)
SETTLE: Update = (
    update(JOB)
    .where(JOB.c.id == bindparam("job"))
    .values(
        state=bindparam("new_state"),
        crash_count=bindparam("crashes"),
        alone=0,
        error=func.coalesce(bindparam("verdict"), JOB.c.error),
        toxic_since_wall_ms=bindparam("toxic_since"),
        finished_at_wall_ms=bindparam("ended_at"),
        error_count=bindparam("failures"),
        errors=bindparam("all_errors"),
        not_before_wall_ms=func.coalesce(bindparam("retry_at"), JOB.c.not_before_wall_ms),
    )
)
DEATH_OF: Select[*tuple[Any, ...]] = select(
    DEATH.c.cause, DEATH.c.action, DEATH.c.exit_code, DEATH.c.signal
).where(DEATH.c.component_id == bindparam("worker"), DEATH.c.generation == bindparam("number"))
BLAMED: Select[*tuple[Any, ...]] = (
    select(JOB_CRASH.c.id)
    .where(
        JOB_CRASH.c.job_id == bindparam("job"),
        JOB_CRASH.c.component_id == bindparam("worker"),
        JOB_CRASH.c.generation == bindparam("number"),
    )
    .limit(1)
)
BLAMED_ON_NODE = BLAMED.where(JOB_CRASH.c.attempt == bindparam("attempt"))
"""The same in a cluster, whose nodes number the processes of a worker apart."""
ADD_CRASHES = JOB_CRASH.insert()
_HAS_NOT_BEGUN = or_(is_in(JobState.PENDING), is_in(JobState.WAITING))
RETRY: Update = (
    update(JOB)
    .where(JOB.c.id == bindparam("job"))
    .values(
        state=case((JOB.c.waits_for > 0, JobState.WAITING.value), else_=JobState.PENDING.value),
        failed_by=None,
        crash_count=0,
        lost_count=0,
        error_count=0,
        error=None,
        toxic_since_wall_ms=None,
        finished_at_wall_ms=None,
        not_before_wall_ms=bindparam("at"),
        expires_at_wall_ms=None,
        cancel_requested_at_wall_ms=None,
        progress=None,
    )
)
CANCEL: Update = (
    update(JOB)
    .where(JOB.c.id == bindparam("job"))
    .values(
        cancel_requested_at_wall_ms=func.coalesce(JOB.c.cancel_requested_at_wall_ms, bindparam("at")),
        state=case((_HAS_NOT_BEGUN, JobState.CANCELLED.value), else_=JOB.c.state),
        finished_at_wall_ms=case((_HAS_NOT_BEGUN, bindparam("at")), else_=JOB.c.finished_at_wall_ms),
    )
)
"""A pending job is cancelled, a running one is asked to end."""

_MAY_EXPIRE = (_HAS_NOT_BEGUN, JOB.c.expires_at_wall_ms.is_not(None), JOB.c.attempts == 0)
NEXT_EXPIRY: Select[*tuple[Any, ...]] = select(func.min(JOB.c.expires_at_wall_ms)).where(*_MAY_EXPIRE)
_EXPIRED = (
    select(JOB.c.id)
    .where(*_MAY_EXPIRE, JOB.c.expires_at_wall_ms <= bindparam("now"))
    .order_by(JOB.c.expires_at_wall_ms)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
EXPIRE: Update = (
    update(JOB)
    .where(JOB.c.id.in_(_EXPIRED))
    .values(state=JobState.EXPIRED.value, finished_at_wall_ms=bindparam("now"))
    .returning(JOB.c.id)
)
DROP: Delete = delete(JOB).where(JOB.c.id == bindparam("job"))
DROP_CRASHES: Delete = delete(JOB_CRASH).where(JOB_CRASH.c.job_id == bindparam("job"))


def _shortened(longest: int | None) -> tuple[Any, ...]:
    """The columns of a job; with `longest`, of a longer payload or result one character more."""
    if longest is None:
        return tuple(JOB.c)
    limits = {"payload": longest + 1, "result": longest + 1, "error": LONGEST_ERROR, "checkpoint": longest}
    return tuple(
        func.substr(column, 1, limits[column.name]).label(column.name) if column.name in limits else column
        for column in JOB.c
    )


def limited() -> Select[*tuple[Any, ...]]:
    """The running jobs that are cancelled, have a time limit, or show their progress."""
    is_limited = or_(
        JOB.c.timeout_ms.is_not(None),
        JOB.c.cancel_requested_at_wall_ms.is_not(None),
        JOB.c.progress.is_not(None),
    )
    return select(*_shortened(0)).where(is_in(JobState.RUNNING), is_limited).order_by(JOB.c.id)


def named(job_ids: Collection[int], longest: int | None = None) -> Select[*tuple[Any, ...]]:
    """Some jobs, by number."""
    return select(*_shortened(longest)).where(JOB.c.id.in_(job_ids)).order_by(JOB.c.id)


def traced(ended_after_wall_ms: int, after_id: int, limit: int) -> Select[*tuple[Any, ...]]:
    """The jobs of traces that ended after this time and number, in the order of their ends."""
    later = tuple_(JOB.c.finished_at_wall_ms, JOB.c.id) > (ended_after_wall_ms, after_id)
    # The planner knows the partial index by its condition, and its range by the time alone.
    return (
        select(*_shortened(1))
        .where(JOB.c.traceparent.is_not(None), JOB.c.finished_at_wall_ms >= ended_after_wall_ms, later)
        .order_by(JOB.c.finished_at_wall_ms, JOB.c.id)
        .limit(limit)
    )


def states(job_ids: Sequence[int]) -> Select[*tuple[Any, ...]]:
    """The states of some jobs, locked until the transaction ends."""
    return select(JOB.c.id, JOB.c.state).where(JOB.c.id.in_(job_ids)).with_for_update()


def found(
    queue: str | None, state: str | None, limit: int, longest: int | None = None
) -> Select[*tuple[Any, ...]]:
    """Jobs, newest first."""
    statement = select(*_shortened(longest)).order_by(JOB.c.id.desc()).limit(max(limit, 0))
    if queue is not None:
        statement = statement.where(JOB.c.queue == queue)
    if state in tuple(JobState):
        statement = statement.where(is_in(JobState(state)))
    return statement


MOST_LOOKED_AT = 20_000
"""How many of the latest jobs are searched for those of one worker: an index would slow every claim."""


def taken_by(
    component_id: str, since_wall_ms: int, limit: int, longest: int | None = None
) -> Select[*tuple[Any, ...]]:
    """Jobs that this worker was the last to claim, latest first."""
    taken = (
        select(JOB.c.id, JOB.c.claimed_by, JOB.c.started_at_wall_ms)
        .where(JOB.c.started_at_wall_ms.is_not(None))
        .order_by(JOB.c.id.desc())
    )
    latest = taken.limit(MOST_LOOKED_AT).subquery()
    of_worker = (latest.c.claimed_by == component_id, latest.c.started_at_wall_ms >= since_wall_ms)
    newest_first = (JOB.c.started_at_wall_ms.desc(), JOB.c.id.desc())
    jobs = select(*_shortened(longest)).join(latest, JOB.c.id == latest.c.id)
    return jobs.where(*of_worker).order_by(*newest_first).limit(max(limit, 0))


MOST_CRASHES = 1000
"""How much evidence against some jobs is read at a time: a job may be retried without a limit."""


def crashes(job_ids: Sequence[int]) -> Select[*tuple[Any, ...]]:
    """The latest evidence against jobs."""
    of_jobs = select(JOB_CRASH).where(JOB_CRASH.c.job_id.in_(job_ids))
    return of_jobs.order_by(JOB_CRASH.c.id.desc()).limit(MOST_CRASHES)


def _stats() -> CompoundSelect[*tuple[Any, ...]]:
    """How many jobs there are: open ones by their small indexes, the others by their tallies."""
    # `claimed_by` is there for the planner: it is the first column of the index of running jobs.
    indexed = (
        (JobState.PENDING, JOB.c.queue >= ""),
        (JobState.RUNNING, JOB.c.claimed_by >= ""),
    )
    counted = [
        select(
            JOB.c.queue,
            literal(state.value).label("state"),
            func.count().label("many"),
            literal(0).label("busy_ms"),
        )
        .where(is_in(state), in_index)
        .group_by(JOB.c.queue)
        for state, in_index in indexed
    ]
    tallies = (
        select(
            JOB_TALLY.c.queue,
            JOB_TALLY.c.state,
            func.sum(JOB_TALLY.c.many).label("many"),
            func.sum(JOB_TALLY.c.busy_ms).label("busy_ms"),
        )
        .group_by(JOB_TALLY.c.queue, JOB_TALLY.c.state)
        .having(func.sum(JOB_TALLY.c.many) > 0)
    )
    return union_all(*counted, tallies).order_by("queue")


STATS: CompoundSelect[*tuple[Any, ...]] = _stats()


def prune(finished_before_wall_ms: int) -> tuple[Delete, Delete]:
    """Delete the jobs that were done before this time, after the evidence against them."""
    old = and_(is_in(JobState.DONE), JOB.c.finished_at_wall_ms < finished_before_wall_ms)
    return (
        delete(JOB_CRASH).where(JOB_CRASH.c.job_id.in_(select(JOB.c.id).where(old))),
        delete(JOB).where(old),
    )
