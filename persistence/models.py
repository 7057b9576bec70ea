"""The tables, as typed models; every name starts with `rekindle_`, so a host may share its database.

Times are integer wall-clock milliseconds. Text that was JSON goes back to JSON: `job` and
`current_job` may be a number or a word, and 42 must not come back as "42".
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Index,
    Integer,
    MetaData,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

TABLE_PREFIX = "rekindle_"

# SQLite counts rows up by itself only in a column that is exactly INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")


class Model(DeclarativeBase):
    """The root of the models; constraints have names, so that a migration can find them again."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class RestartPolicyRow(Model):
    """How often a worker was restarted, and whether it was given up."""

    __tablename__ = "rekindle_worker_restart_policy"
    __table_args__ = (
        CheckConstraint("restart_count >= 0", name="restart_count"),
        CheckConstraint("streak_count >= 0", name="streak_count"),
    )

    component_id: Mapped[str] = mapped_column(Text, primary_key=True)
    restart_count: Mapped[int] = mapped_column(Integer)
    streak_count: Mapped[int] = mapped_column(Integer)
    last_restart_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    failed_at_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    failure_reason: Mapped[str | None] = mapped_column(Text)
    updated_at_wall_ms: Mapped[int] = mapped_column(BigInteger)


class DeathRow(Model):
    """One death, with the decision on it."""

    __tablename__ = "rekindle_death"
    __table_args__ = (
        UniqueConstraint("component_id", "generation"),
        Index(None, "signal"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    component_id: Mapped[str] = mapped_column(Text)
    generation: Mapped[int] = mapped_column(BigInteger)
    died_at_wall_ms: Mapped[int] = mapped_column(BigInteger)
    cause: Mapped[str] = mapped_column(Text)
    exit_code: Mapped[int | None] = mapped_column(Integer)
    signal: Mapped[int | None] = mapped_column(Integer)
    uptime_ms: Mapped[int] = mapped_column(BigInteger)
    job: Mapped[str | None] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    delay_ms: Mapped[int] = mapped_column(BigInteger)


class HealthRow(Model):
    """The mirror of a worker's health, for people. Nothing is decided from it."""

    __tablename__ = "rekindle_health"

    component_id: Mapped[str] = mapped_column(Text, primary_key=True)
    generation: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(Text)
    pid: Mapped[int | None] = mapped_column(Integer)
    current_job: Mapped[str | None] = mapped_column(Text)
    last_heartbeat_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    updated_at_wall_ms: Mapped[int] = mapped_column(BigInteger)


class MetaRow(Model):
    """A named setting, `worker_enabled` and its kin."""

    __tablename__ = "rekindle_meta"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class JobRow(Model):
    """A job: what is to be done, who holds it, and how often a worker died on it."""

    __tablename__ = "rekindle_job"
    __table_args__ = (
        Index(None, "queue", "state", "priority", "not_before_wall_ms"),
        Index(None, "claimed_by", "claimed_generation"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    queue: Mapped[str] = mapped_column(Text)
    payload: Mapped[str] = mapped_column(Text)
    priority: Mapped[int] = mapped_column(Integer)
    not_before_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(Text)
    attempts: Mapped[int] = mapped_column(Integer)
    crash_count: Mapped[int] = mapped_column(Integer)
    claimed_by: Mapped[str | None] = mapped_column(Text)
    claimed_generation: Mapped[int | None] = mapped_column(BigInteger)
    created_at_wall_ms: Mapped[int] = mapped_column(BigInteger)
    started_at_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    finished_at_wall_ms: Mapped[int | None] = mapped_column(BigInteger)
    result: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    toxic_since_wall_ms: Mapped[int | None] = mapped_column(BigInteger)


class EventRow(Model):
    """An event, written in the transaction that caused it; ids only ever grow.

    The payloads, as JSON objects:

    - `worker_died`: generation, cause, exit_code, signal, uptime_ms, job, action, reason, delay_ms
    - `worker_failed`: generation, reason
    """

    __tablename__ = "rekindle_event"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    schema_version: Mapped[int] = mapped_column(Integer)
    at_wall_ms: Mapped[int] = mapped_column(BigInteger)
    type: Mapped[str] = mapped_column(Text)
    component_id: Mapped[str | None] = mapped_column(Text)
    payload: Mapped[str] = mapped_column(Text)
