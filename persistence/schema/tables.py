"""The tables; every name starts with `rekindle_`, so a host may share its database.

Times are integer wall-clock milliseconds. `job` and `current_job` are JSON: a job is a number or a
string, and 42 must not come back as "42".

The store uses these tables. `models` has the same as typed classes, in a module of its own because the
ORM takes 6 MB, which a supervisor does not need.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

TABLE_PREFIX = "rekindle_"

# SQLite generates ids only in a column that is exactly INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")

# Constraints have names, so that a migration can refer to them.
METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

POLICY = Table(
    "rekindle_worker_restart_policy",
    METADATA,
    Column("component_id", Text, primary_key=True),
    Column("restart_count", Integer, nullable=False),
    Column("streak_count", Integer, nullable=False),
    Column("last_restart_wall_ms", BigInteger, nullable=True),
    Column("failed_at_wall_ms", BigInteger, nullable=True),
    Column("failure_reason", Text, nullable=True),
    Column("updated_at_wall_ms", BigInteger, nullable=False),
    Column("reset_at_wall_ms", BigInteger, nullable=True),
    Column("failed_fingerprint", Text, nullable=True),
    # Restarts in the history that resets took off the counter: both together are all of them.
    Column("restarts_before_reset", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("restart_count >= 0", name="restart_count"),
    CheckConstraint("streak_count >= 0", name="streak_count"),
)
DEATH = Table(
    "rekindle_death",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("component_id", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("died_at_wall_ms", BigInteger, nullable=False),
    Column("cause", Text, nullable=False),
    Column("exit_code", Integer, nullable=True),
    Column("signal", Integer, nullable=True),
    Column("uptime_ms", BigInteger, nullable=False),
    Column("job", Text, nullable=True),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("delay_ms", BigInteger, nullable=False),
    Column("work_item", Text, nullable=True),
    Column("released", Text, nullable=True),
    UniqueConstraint("component_id", "generation"),
    Index(None, "signal"),
    sqlite_autoincrement=True,
)
BUNDLE = Table(
    "rekindle_bundle",
    METADATA,
    Column("component_id", Text, primary_key=True),
    Column("generation", BigInteger, primary_key=True, autoincrement=False),
    Column("at_wall_ms", BigInteger, nullable=False),
    Column("finding", Text, nullable=False),
    Column("crash", Text, nullable=False),
    Column("details", Text, nullable=False),
    # One tree instead of two: a death syncs fewer pages.
    sqlite_with_rowid=False,
)
USAGE = Table(
    "rekindle_usage",
    METADATA,
    Column("component_id", Text, primary_key=True),
    Column("at_wall_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
    Column("memory_mb", Float, nullable=False),
    Column("peak_memory_mb", Float, nullable=False),
    Column("cpu_percent", Float, nullable=True),
    Column("threads", Integer, nullable=False),
    Column("descriptors", Integer, nullable=True),
    # The samples of a worker are stored together: they are written and read only by worker and time.
    sqlite_with_rowid=False,
)
RUN = Table(
    "rekindle_run",
    METADATA,
    Column("component_id", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("due_wall_ms", BigInteger, nullable=False),
    Column("last_due_wall_ms", BigInteger, nullable=True),
    Column("times", BigInteger, nullable=False),
    Column("started_at_wall_ms", BigInteger, nullable=True),
    Column("ended_at_wall_ms", BigInteger, nullable=True),
    Column("attempts", Integer, nullable=False),
    Column("exit_code", Integer, nullable=True),
    Column("signal", Integer, nullable=True),
    Column("reason", Text, nullable=True),
    Column("detail", Text, nullable=False),
    # The runs of a worker are stored together: they are written and read only by worker and number.
    sqlite_with_rowid=False,
)
HEALTH = Table(
    "rekindle_health",
    METADATA,
    Column("component_id", Text, primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("pid", Integer, nullable=True),
    Column("current_job", Text, nullable=True),
    Column("last_heartbeat_wall_ms", BigInteger, nullable=True),
    Column("updated_at_wall_ms", BigInteger, nullable=False),
)
GENERATION = Table(
    "rekindle_generation",
    METADATA,
    # Empty: every worker without a row of its own.
    Column("component_id", Text, primary_key=True),
    Column("reserved", BigInteger, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("started_at_wall_ms", BigInteger, nullable=False),
    Column("ended", BigInteger, nullable=False),
)
META = Table(
    "rekindle_meta",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
JOB = Table(
    "rekindle_job",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("queue", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("not_before_wall_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("crash_count", Integer, nullable=False),
    Column("error_count", Integer, nullable=False),
    Column("max_retries", Integer, nullable=True),
    Column("crash_retries", Integer, nullable=True),
    Column("unique_key", Text, nullable=True),
    Column("checkpoint", Text, nullable=True),
    Column("alone", Integer, nullable=False),
    Column("claimed_by", Text, nullable=True),
    Column("claimed_generation", BigInteger, nullable=True),
    Column("claimed_run", Text, nullable=True),
    Column("created_at_wall_ms", BigInteger, nullable=False),
    Column("started_at_wall_ms", BigInteger, nullable=True),
    Column("finished_at_wall_ms", BigInteger, nullable=True),
    Column("result", Text, nullable=True),
    Column("error", Text, nullable=True),
    Column("toxic_since_wall_ms", BigInteger, nullable=True),
    Column("timeout_ms", BigInteger, nullable=True),
    Column("retry_delay_ms", BigInteger, nullable=True),
    Column("max_retry_delay_ms", BigInteger, nullable=True),
    Column("expires_at_wall_ms", BigInteger, nullable=True),
    Column("cancel_requested_at_wall_ms", BigInteger, nullable=True),
    Column("errors", Text, nullable=True),
    Column("progress", Text, nullable=True),
    Column("key", Text, nullable=True),
    # Migration 0017 has the triggers that use these.
    Column("waits_for", Integer, nullable=True),
    Column("followed", Integer, nullable=False, server_default="0"),
    Column("failed_by", BigInteger, nullable=True),
    Column("batch_id", BigInteger, nullable=True),
    Column("batch_counts", Text, nullable=True),
    Column("traceparent", Text, nullable=True),
    # Of a claim by a worker in a cluster; and on how many nodes the job was when they were lost.
    Column("claimed_node", Text, nullable=True),
    Column("claimed_epoch", BigInteger, nullable=True),
    Column("lost_count", Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)
JOB_AFTER = Table(
    "rekindle_job_after",
    METADATA,
    Column("after_id", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "job_id"),
)
BATCH = Table(
    "rekindle_batch",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("total", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("callback_id", BigInteger, nullable=True),
    Column("created_at_wall_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
# How many jobs are in each state but pending and running, counted by triggers (migration 0018).
JOB_TALLY = Table(
    "rekindle_job_tally",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("state", Text, primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("many", BigInteger, nullable=False),
    Column("busy_ms", BigInteger, nullable=False),
)
# A row for each queue that is, or was, paused or limited.
QUEUE = Table(
    "rekindle_queue",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("paused_at_wall_ms", BigInteger, nullable=True),
    Column("paused_until_wall_ms", BigInteger, nullable=True),
    Column("pause_reason", Text, nullable=True),
    Column("concurrency", Integer, nullable=True),
    Column("rate", Integer, nullable=True),
    Column("rate_period_ms", BigInteger, nullable=True),
    Column("key_concurrency", Integer, nullable=True),
    Column("key_rate", Integer, nullable=True),
    Column("key_rate_period_ms", BigInteger, nullable=True),
    # When the bucket of tokens is full again, in microseconds since 1970.
    Column("bucket_full_us", BigInteger, nullable=False, server_default="0"),
)
QUEUE_KEY = Table(
    "rekindle_queue_key",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("bucket_full_us", BigInteger, nullable=False),
)
PERIODIC = Table(
    "rekindle_periodic",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("last_due_wall_ms", BigInteger, nullable=False),
    Column("next_due_wall_ms", BigInteger, nullable=True),
    Column("last_job_id", BigInteger, nullable=True),
    Column("missed", BigInteger, nullable=False),
)
JOB_CRASH = Table(
    "rekindle_job_crash",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("job_id", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at_wall_ms", BigInteger, nullable=False),
    Column("component_id", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("cause", Text, nullable=False),
    Column("exit_code", Integer, nullable=True),
    Column("signal", Integer, nullable=True),
    Column("output", Text, nullable=False),
    Column("began_at_wall_ms", BigInteger, nullable=True),
    Index(None, "job_id"),
    sqlite_autoincrement=True,
)
EVENT = Table(
    "rekindle_event",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("schema_version", Integer, nullable=False),
    Column("at_wall_ms", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("component_id", Text, nullable=True),
    Column("payload", Text, nullable=False),
    # For the timeline of one worker, newest first.
    Index(None, "component_id", "id"),
    sqlite_autoincrement=True,
)
ALERT = Table(
    "rekindle_alert",
    METADATA,
    # The supervisor assigns the numbers: an alert is written again whenever it changes.
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("component_id", Text, nullable=True),
    Column("kind", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("opened_at_wall_ms", BigInteger, nullable=False),
    Column("resolved_at_wall_ms", BigInteger, nullable=True),
    Column("body", Text, nullable=False),
)
AUDIT = Table(
    "rekindle_audit",
    METADATA,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("at_wall_ms", BigInteger, nullable=False),
    Column("gateway", Text, nullable=False),
    Column("uid", BigInteger, nullable=True),
    Column("pid", BigInteger, nullable=True),
    Column("claimed_user", Text, nullable=True),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text, nullable=False),
    sqlite_autoincrement=True,
)
