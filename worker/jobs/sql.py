"""The worker's SQL statements, as text with `:named` values.

Text instead of SQLAlchemy expressions, because a worker should start in milliseconds: it loads only the
database driver. The tables are described in `rekindle.persistence.schema.tables`; the statements of the
supervisor and of producers are in `rekindle.persistence.jobs`.
"""

from __future__ import annotations

import re

COLUMNS = (
    "id", "queue", "payload", "attempts", "crash_count", "error_count", "max_retries", "alone", "checkpoint",
    "state", "timeout_ms", "retry_delay_ms", "max_retry_delay_ms", "errors", "batch_counts",
    "traceparent",
)  # fmt: skip

NEVER = 2**62
"""A time that does not come."""

_CLAIMANT = "claimed_by = :worker AND claimed_generation = :generation AND claimed_run = :run"

# Only the claim in force can be ended. A worker that was considered dead and wakes up finds another
# number of attempts, or another claimant.
_FENCE = f"id = :id AND state = 'running' AND attempts = :attempt AND {_CLAIMANT}"

# A job that was cancelled meanwhile is cancelled, whatever its execution came to.
_IS_CANCELLED = "cancel_requested_at_wall_ms IS NOT NULL"


def _unless_cancelled(state: str) -> str:
    ended = f"CASE WHEN {_IS_CANCELLED} THEN :now ELSE finished_at_wall_ms END"
    finished = "" if state in ("done", "error") else f", finished_at_wall_ms = {ended}"
    return f"state = CASE WHEN {_IS_CANCELLED} THEN 'cancelled' ELSE '{state}' END, alone = 0{finished}"


_ENDED = f"WHERE {_FENCE} RETURNING state"
"""The state tells whether the ending was accepted."""

FINISH = f"""
UPDATE rekindle_job
SET {_unless_cancelled("done")}, result = CASE WHEN {_IS_CANCELLED} THEN NULL ELSE :result END,
    error = NULL, finished_at_wall_ms = :now, crash_count = 0, checkpoint = NULL
{_ENDED}"""

RETRY = f"""
UPDATE rekindle_job
SET {_unless_cancelled("pending")}, error = :error, errors = :errors, error_count = error_count + 1,
    not_before_wall_ms = :not_before
{_ENDED}"""

FAIL = f"""
UPDATE rekindle_job
SET {_unless_cancelled("error")}, error = :error, errors = :errors, error_count = error_count + 1,
    finished_at_wall_ms = :now
{_ENDED}"""

GIVE_BACK = f"UPDATE rekindle_job SET {_unless_cancelled('pending')} {_ENDED}"

CHECKPOINT = f"UPDATE rekindle_job SET checkpoint = :checkpoint WHERE {_FENCE} AND NOT {_IS_CANCELLED}"

PROGRESS = f"UPDATE rekindle_job SET progress = :progress WHERE {_FENCE} AND NOT {_IS_CANCELLED}"

# The worker of a supervisor claims only while its supervisor's run is the current one: a process that
# outlived its supervisor takes nothing more once the next one has begun.
_IS_CURRENT = """
(NOT :supervised OR EXISTS (SELECT 1 FROM rekindle_meta WHERE key = 'system_mark' AND value = :run))"""

# The worker of a node claims, and ends what it claimed, only while it is assigned to the node under its
# epoch, and its supervisor is the one that joined last for that node.
_IS_ASSIGNED = """
EXISTS (SELECT 1 FROM rekindle_assignment AS own JOIN rekindle_node AS home ON home.id = own.node_id
    WHERE own.component_id = :worker AND own.epoch = :epoch AND home.run = :run)"""


def on_node(statement: str) -> str:
    """The statement for the worker of a node in a cluster, fenced by its assignment."""
    return statement.replace(_IS_CURRENT, _IS_ASSIGNED).replace(_FENCE, f"{_FENCE} AND {_IS_ASSIGNED}")


# The settings of a queue have at most one row.
_PAUSE = """
FROM rekindle_queue AS setting WHERE setting.name = :queue AND setting.paused_at_wall_ms IS NOT NULL
    AND (setting.paused_until_wall_ms IS NULL OR setting.paused_until_wall_ms > :now)"""

IS_OPEN = f"{_IS_CURRENT} AND NOT EXISTS (SELECT 1 {_PAUSE})"

# Jobs of a queue with limits are claimed in another way (`limits/`).
IS_LIMITED = """
SELECT 1 FROM rekindle_queue AS limited WHERE limited.name = :queue
    AND coalesce(limited.concurrency, limited.rate, limited.key_concurrency, limited.key_rate) IS NOT NULL"""

# When the next job is due, or was: one step in an index, whatever the planner knows of the values.
_EARLIEST = "(SELECT min(not_before_wall_ms) FROM rekindle_job WHERE queue = :queue AND state = 'pending')"

# With the end of the queue's pause, before which no job of it is started.
NEXT_DUE = f"""
SELECT {_EARLIEST}, (SELECT coalesce(setting.paused_until_wall_ms, {NEVER}) {_PAUSE}) WHERE {_IS_CURRENT}"""

# The priorities of the waiting jobs in ascending order, each found by one step in an index, and none if no
# job is due: jobs that wait for their time, of which there may be many, are not looked at one by one.


def levels(condition: str) -> str:
    """The priorities of the waiting jobs, as a recursive table; none unless the condition holds."""
    return f"""
level(priority) AS (
    SELECT (SELECT priority FROM rekindle_job WHERE queue = :queue AND state = 'pending'
            ORDER BY priority LIMIT 1)
    WHERE {_EARLIEST} <= :now AND {IS_OPEN} {condition}
    UNION ALL
    SELECT (SELECT job.priority FROM rekindle_job AS job
            WHERE job.queue = :queue AND job.state = 'pending' AND job.priority > level.priority
            ORDER BY job.priority LIMIT 1)
    FROM level WHERE level.priority IS NOT NULL
)"""


_LEVELS = levels(f"AND NOT EXISTS ({IS_LIMITED})")

# The first due job of one priority; FIFO.
_FIRST = """
SELECT job.id FROM rekindle_job AS job
WHERE job.queue = :queue AND job.state = 'pending' AND job.priority = level.priority
    AND job.not_before_wall_ms <= :now
ORDER BY job.not_before_wall_ms, job.id LIMIT 1"""

# A job on which a worker died, or that was on two nodes when they were lost, runs alone.
_IS_SUSPECT = "(crash_count > 0 OR lost_count > 1)"

# A job that has not begun in time expires instead; only its first execution has to begin in time.
_HAS_EXPIRED = "attempts = 0 AND expires_at_wall_ms <= :now"
TAKE_VALUES = f"""
SET state = CASE WHEN {_HAS_EXPIRED} THEN 'expired' ELSE 'running' END,
    attempts = attempts + CASE WHEN {_HAS_EXPIRED} THEN 0 ELSE 1 END,
    started_at_wall_ms = CASE WHEN {_HAS_EXPIRED} THEN NULL ELSE :now END,
    finished_at_wall_ms = CASE WHEN {_HAS_EXPIRED} THEN :now ELSE NULL END, progress = NULL,
    claimed_by = :worker, claimed_generation = :generation, claimed_run = :run, claimed_node = :node,
    claimed_epoch = :epoch, alone = CASE WHEN :isolate AND {_IS_SUSPECT} THEN 1 ELSE 0 END"""
# A suspect waits for a free worker, and the jobs behind it wait too: otherwise a worker that always
# holds a job would never take it.
MAY_TAKE = f"(:free OR NOT (:isolate AND {_IS_SUSPECT}))"

_FIRST_DUE = f"""(
    WITH RECURSIVE {_LEVELS}
    SELECT found.id FROM (SELECT ({_FIRST}) AS id FROM level) AS found WHERE found.id IS NOT NULL LIMIT 1
)"""

SQLITE_CLAIM = f"""
UPDATE rekindle_job {TAKE_VALUES}
WHERE id = {_FIRST_DUE} AND {MAY_TAKE}
RETURNING {", ".join(COLUMNS)}"""

SUSPECT_WAITS = f"SELECT 1 FROM rekindle_job WHERE id = {_FIRST_DUE} AND {_IS_SUSPECT}"

# For a job that another queue delivers: the job that was made for it before, a new one, and its claim.
FIND_DELIVERED = """
SELECT id, state FROM rekindle_job WHERE queue = :queue AND unique_key = :key ORDER BY id DESC LIMIT 1"""

ADD_DELIVERED = """
INSERT INTO rekindle_job (
    queue, payload, priority, not_before_wall_ms, state, attempts, crash_count, error_count, unique_key,
    alone, created_at_wall_ms
) VALUES (:queue, :payload, 0, :now, 'pending', 0, 0, 0, :key, 0, :now) RETURNING id, state"""

TAKE_DELIVERED = f"""
UPDATE rekindle_job
SET state = 'running', attempts = attempts + 1, started_at_wall_ms = :now, finished_at_wall_ms = NULL,
    claimed_by = :worker, claimed_generation = :generation, claimed_run = :run, claimed_node = :node,
    claimed_epoch = :epoch, alone = 0
WHERE id = :id AND state IN ('pending', 'done', 'error') AND {_IS_CURRENT}
RETURNING {", ".join(COLUMNS)}"""

MINE = f"""
SELECT {", ".join(COLUMNS)} FROM rekindle_job WHERE state = 'running' AND {_CLAIMANT}"""

WAS_ENDED = f"""
SELECT 1 FROM rekindle_job WHERE id = :id AND attempts = :attempt AND state <> 'running' AND {_CLAIMANT}
    AND state = :state"""


def postgres_exchange(ending: str | None) -> str:
    """One statement, hence one transaction and one round trip: end a job, and claim the next one.

    It returns one row: whether the end was accepted, whether the queue has limits, then the columns of the
    claim, or nulls.
    """
    ended = "SELECT '' AS state WHERE false" if ending is None else ending
    accepted = "0" if ending is None else "(SELECT count(*) FROM ended WHERE state = :state)"
    claimed = ", ".join(f"job.{column}" for column in COLUMNS)
    shown = ", ".join(f"claimed.{column}" for column in COLUMNS)
    return f"""
    WITH RECURSIVE ended AS ({ended}),
    {_LEVELS},
    next AS MATERIALIZED (
        SELECT first.id FROM level, LATERAL ({_FIRST} FOR UPDATE SKIP LOCKED) AS first LIMIT 1
    ),
    claimed AS (
        UPDATE rekindle_job AS job {TAKE_VALUES}
        FROM next WHERE job.id = next.id AND {MAY_TAKE}
        RETURNING {claimed}
    )
    SELECT {accepted}, ({IS_LIMITED}), {shown} FROM (SELECT 1) AS one LEFT JOIN claimed ON true"""


def for_psycopg(statement: str) -> bytes:
    """The statement with psycopg's placeholders."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()
