"""The tables as typed models, for tools and hosts that work with the ORM."""

from __future__ import annotations

from sqlalchemy.orm import Mapped

from . import cluster_models as cluster_models
from . import tables
from .row_base import Model as Model


class RestartPolicyRow(Model):
    """How often a worker was restarted, and whether it is marked as failed."""

    __table__ = tables.POLICY

    component_id: Mapped[str]
    restart_count: Mapped[int]
    streak_count: Mapped[int]
    last_restart_wall_ms: Mapped[int | None]
    failed_at_wall_ms: Mapped[int | None]
    failure_reason: Mapped[str | None]
    updated_at_wall_ms: Mapped[int]
    reset_at_wall_ms: Mapped[int | None]
    failed_fingerprint: Mapped[str | None]
    restarts_before_reset: Mapped[int]


class DeathRow(Model):
    """One death, with the decision on it."""

    __table__ = tables.DEATH

    id: Mapped[int]
    component_id: Mapped[str]
    generation: Mapped[int]
    died_at_wall_ms: Mapped[int]
    cause: Mapped[str]
    exit_code: Mapped[int | None]
    signal: Mapped[int | None]
    uptime_ms: Mapped[int]
    job: Mapped[str | None]
    action: Mapped[str]
    reason: Mapped[str]
    delay_ms: Mapped[int]
    work_item: Mapped[str | None]
    released: Mapped[str | None]


class BundleRow(Model):
    """The evidence of one death; `details` is the whole bundle as a JSON object."""

    __table__ = tables.BUNDLE

    component_id: Mapped[str]
    generation: Mapped[int]
    at_wall_ms: Mapped[int]
    finding: Mapped[str]
    crash: Mapped[str]
    details: Mapped[str]


class HealthRow(Model):
    """A copy of a worker's health for people; no decision uses it."""

    __table__ = tables.HEALTH

    component_id: Mapped[str]
    generation: Mapped[int]
    status: Mapped[str]
    pid: Mapped[int | None]
    current_job: Mapped[str | None]
    last_heartbeat_wall_ms: Mapped[int | None]
    updated_at_wall_ms: Mapped[int]


class GenerationRow(Model):
    """The numbers of a worker's processes: the mark, the latest one started, the latest one stopped."""

    __table__ = tables.GENERATION

    component_id: Mapped[str]
    reserved: Mapped[int]
    started: Mapped[int]
    started_at_wall_ms: Mapped[int]
    ended: Mapped[int]


class MetaRow(Model):
    """A named setting, such as `worker_enabled`."""

    __table__ = tables.META

    key: Mapped[str]
    value: Mapped[str]


class JobRow(Model):
    """A job: its payload, its claimant, and how often a worker died while executing it.

    `attempts` counts the claims; a result is accepted only with the current claimant and attempt.
    `claimed_run` identifies the supervisor's run. `alone` is 1 while a suspect job is executed by a
    worker that does nothing else. `errors` and `progress` are JSON.
    """

    __table__ = tables.JOB

    id: Mapped[int]
    queue: Mapped[str]
    payload: Mapped[str]
    priority: Mapped[int]
    not_before_wall_ms: Mapped[int]
    state: Mapped[str]
    attempts: Mapped[int]
    crash_count: Mapped[int]
    error_count: Mapped[int]
    max_retries: Mapped[int | None]
    crash_retries: Mapped[int | None]
    unique_key: Mapped[str | None]
    checkpoint: Mapped[str | None]
    alone: Mapped[int]
    claimed_by: Mapped[str | None]
    claimed_generation: Mapped[int | None]
    claimed_run: Mapped[str | None]
    created_at_wall_ms: Mapped[int]
    started_at_wall_ms: Mapped[int | None]
    finished_at_wall_ms: Mapped[int | None]
    result: Mapped[str | None]
    error: Mapped[str | None]
    toxic_since_wall_ms: Mapped[int | None]
    timeout_ms: Mapped[int | None]
    retry_delay_ms: Mapped[int | None]
    max_retry_delay_ms: Mapped[int | None]
    expires_at_wall_ms: Mapped[int | None]
    cancel_requested_at_wall_ms: Mapped[int | None]
    errors: Mapped[str | None]
    progress: Mapped[str | None]
    key: Mapped[str | None]
    waits_for: Mapped[int | None]
    followed: Mapped[int]
    failed_by: Mapped[int | None]
    batch_id: Mapped[int | None]
    batch_counts: Mapped[str | None]
    traceparent: Mapped[str | None]
    claimed_node: Mapped[str | None]
    claimed_epoch: Mapped[int | None]
    lost_count: Mapped[int]


class JobAfterRow(Model):
    """A job that comes after another one."""

    __table__ = tables.JOB_AFTER

    after_id: Mapped[int]
    job_id: Mapped[int]


class BatchRow(Model):
    """A batch: how many of its jobs ended, and the job that runs when all have."""

    __table__ = tables.BATCH

    id: Mapped[int]
    total: Mapped[int]
    done: Mapped[int]
    failed: Mapped[int]
    callback_id: Mapped[int | None]
    created_at_wall_ms: Mapped[int]


class JobTallyRow(Model):
    """How many jobs of a queue are in a state, as far as one connection counted them."""

    __table__ = tables.JOB_TALLY

    queue: Mapped[str]
    state: Mapped[str]
    part: Mapped[int]
    many: Mapped[int]
    busy_ms: Mapped[int]


class QueueRow(Model):
    """What is set for a queue: its pause and its limits; `bucket_full_us` is the state of its rate."""

    __table__ = tables.QUEUE

    name: Mapped[str]
    paused_at_wall_ms: Mapped[int | None]
    paused_until_wall_ms: Mapped[int | None]
    pause_reason: Mapped[str | None]
    concurrency: Mapped[int | None]
    rate: Mapped[int | None]
    rate_period_ms: Mapped[int | None]
    key_concurrency: Mapped[int | None]
    key_rate: Mapped[int | None]
    key_rate_period_ms: Mapped[int | None]
    bucket_full_us: Mapped[int]


class QueueKeyRow(Model):
    """The state of the rate of one key of a queue."""

    __table__ = tables.QUEUE_KEY

    queue: Mapped[str]
    key: Mapped[str]
    bucket_full_us: Mapped[int]


class PeriodicRow(Model):
    """A periodic job: up to which due time its jobs were enqueued or missed."""

    __table__ = tables.PERIODIC

    name: Mapped[str]
    queue: Mapped[str]
    schedule: Mapped[str]
    last_due_wall_ms: Mapped[int]
    next_due_wall_ms: Mapped[int | None]
    last_job_id: Mapped[int | None]
    missed: Mapped[int]


class UsageRow(Model):
    """One sample of a worker's usage; each worker has a limited number of samples."""

    __table__ = tables.USAGE

    component_id: Mapped[str]
    at_wall_ms: Mapped[int]
    generation: Mapped[int]
    memory_mb: Mapped[float]
    peak_memory_mb: Mapped[float]
    cpu_percent: Mapped[float | None]
    threads: Mapped[int]
    descriptors: Mapped[int | None]


class RunRow(Model):
    """One run of a scheduled worker, or several missed ones in a row."""

    __table__ = tables.RUN

    component_id: Mapped[str]
    number: Mapped[int]
    state: Mapped[str]
    trigger: Mapped[str]
    due_wall_ms: Mapped[int]
    last_due_wall_ms: Mapped[int | None]
    times: Mapped[int]
    started_at_wall_ms: Mapped[int | None]
    ended_at_wall_ms: Mapped[int | None]
    attempts: Mapped[int]
    exit_code: Mapped[int | None]
    signal: Mapped[int | None]
    reason: Mapped[str | None]
    detail: Mapped[str]


class JobCrashRow(Model):
    """One death of a worker while it executed a job: the evidence against the job."""

    __table__ = tables.JOB_CRASH

    id: Mapped[int]
    job_id: Mapped[int]
    attempt: Mapped[int]
    at_wall_ms: Mapped[int]
    component_id: Mapped[str]
    generation: Mapped[int]
    cause: Mapped[str]
    exit_code: Mapped[int | None]
    signal: Mapped[int | None]
    output: Mapped[str]
    began_at_wall_ms: Mapped[int | None]


class EventRow(Model):
    """An event, written in the transaction that caused it; ids only grow.

    The payload is a JSON object of the other fields, made by `rekindle.actors.messages.event_json`.
    """

    __table__ = tables.EVENT

    id: Mapped[int]
    schema_version: Mapped[int]
    at_wall_ms: Mapped[int]
    type: Mapped[str]
    component_id: Mapped[str | None]
    payload: Mapped[str]


class AlertRow(Model):
    """One alert; `body` is a JSON object of the fields without a column."""

    __table__ = tables.ALERT

    id: Mapped[int]
    component_id: Mapped[str | None]
    kind: Mapped[str]
    severity: Mapped[str]
    opened_at_wall_ms: Mapped[int]
    resolved_at_wall_ms: Mapped[int | None]
    body: Mapped[str]


class AuditRow(Model):
    """One order of an operator, and its result."""

    __table__ = tables.AUDIT

    id: Mapped[int]
    at_wall_ms: Mapped[int]
    gateway: Mapped[str]
    uid: Mapped[int | None]
    pid: Mapped[int | None]
    claimed_user: Mapped[str | None]
    action: Mapped[str]
    target: Mapped[str]
    detail: Mapped[str]
    result: Mapped[str]
    reason: Mapped[str]
