"""The statements of claims on limited queues, as text with `:named` values, as in `worker.jobs.sql`."""

from __future__ import annotations

from ..sql import COLUMNS, IS_OPEN, MAY_TAKE, TAKE_VALUES, levels

LIMITS = """
SELECT concurrency, rate, rate_period_ms, key_concurrency, key_rate, key_rate_period_ms, bucket_full_us
FROM rekindle_queue WHERE name = :queue
    AND coalesce(concurrency, rate, key_concurrency, key_rate) IS NOT NULL"""

# `claimed_by` is there for the planner: it is the first column of the index of running jobs.
RUNNING = """
SELECT count(*) FROM rekindle_job WHERE state = 'running' AND claimed_by >= '' AND queue = :queue"""

NEAR = 200
"""How many jobs of a priority are tried in their order before the keys are tried one by one."""

# Keys with as many running jobs as are allowed, and keys whose bucket has no token.
_BUSY = """
SELECT busy.key FROM rekindle_job AS busy WHERE busy.state = 'running' AND busy.claimed_by >= ''
    AND busy.queue = :queue AND busy.key IS NOT NULL GROUP BY busy.key HAVING count(*) >= :key_concurrency"""
_SPENT = """
SELECT spent.key FROM rekindle_queue_key AS spent
WHERE spent.queue = :queue AND spent.bucket_full_us > :spent AND spent.bucket_full_us <= :latest"""

_DUE = "job.queue = :queue AND job.state = 'pending' AND job.not_before_wall_ms <= :now"

FIRST_NEAR = f"""
WITH RECURSIVE {levels("")}
SELECT found.id FROM (
    SELECT (
        SELECT near.id FROM (
            SELECT job.id, job.key, job.not_before_wall_ms FROM rekindle_job AS job
            WHERE {_DUE} AND job.priority = level.priority
            ORDER BY job.not_before_wall_ms, job.id LIMIT {NEAR}
        ) AS near
        WHERE near.key IS NULL OR (near.key NOT IN ({_BUSY}) AND near.key NOT IN ({_SPENT}))
        ORDER BY near.not_before_wall_ms, near.id LIMIT 1
    ) AS id FROM level
) AS found WHERE found.id IS NOT NULL LIMIT 1"""

FIRST_OF_KEYS = f"""
WITH RECURSIVE name(key) AS (
    SELECT (SELECT job.key FROM rekindle_job AS job
            WHERE job.queue = :queue AND job.state = 'pending' AND job.key IS NOT NULL
            ORDER BY job.key LIMIT 1)
    WHERE {IS_OPEN}
    UNION ALL
    SELECT (SELECT job.key FROM rekindle_job AS job
            WHERE job.queue = :queue AND job.state = 'pending' AND job.key IS NOT NULL AND job.key > name.key
            ORDER BY job.key LIMIT 1)
    FROM name WHERE name.key IS NOT NULL
)
SELECT first.id FROM (
    SELECT (SELECT job.id FROM rekindle_job AS job WHERE {_DUE} AND job.key = name.key
            ORDER BY job.priority, job.not_before_wall_ms, job.id LIMIT 1) AS id
    FROM name
    WHERE name.key IS NOT NULL AND name.key NOT IN ({_BUSY}) AND name.key NOT IN ({_SPENT})
) AS first JOIN rekindle_job AS job ON job.id = first.id
ORDER BY job.priority, job.not_before_wall_ms, job.id LIMIT 1"""

FIRST_WITHOUT_KEY = f"""
SELECT job.id FROM rekindle_job AS job WHERE {_DUE} AND job.key IS NULL AND {IS_OPEN}
ORDER BY job.priority, job.not_before_wall_ms, job.id LIMIT 1"""

TAKE = f"""
UPDATE rekindle_job {TAKE_VALUES} WHERE id = :job AND state = 'pending' AND {MAY_TAKE}
RETURNING {", ".join(COLUMNS)}, key"""

LATER = """
SELECT (SELECT min(not_before_wall_ms) FROM rekindle_job
        WHERE queue = :queue AND state = 'pending' AND not_before_wall_ms > :now),
    (SELECT min(bucket_full_us) FROM rekindle_queue_key
        WHERE queue = :queue AND bucket_full_us > :spent AND bucket_full_us <= :latest)"""

SET_BUCKET = "UPDATE rekindle_queue SET bucket_full_us = :full WHERE name = :queue"

KEY_BUCKET = "SELECT bucket_full_us FROM rekindle_queue_key WHERE queue = :queue AND key = :key"

SET_KEY_BUCKET = """
INSERT INTO rekindle_queue_key (queue, key, bucket_full_us) VALUES (:queue, :key, :full)
ON CONFLICT (queue, key) DO UPDATE SET bucket_full_us = :full"""

FORGET_FULL = "DELETE FROM rekindle_queue_key WHERE queue = :queue AND bucket_full_us <= :now_us"
