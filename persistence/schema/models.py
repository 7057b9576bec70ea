"""The tables as ORM models, for tools and hosts: the attributes of a model are the columns of its table."""

from __future__ import annotations

from . import cluster_models as cluster_models
from . import tables
from .row_base import Model as Model


class RestartPolicyRow(Model):
    """How often a worker was restarted, and whether it is marked as failed."""

    __table__ = tables.POLICY


class DeathRow(Model):
    """One death, with the decision on it."""

    __table__ = tables.DEATH


class BundleRow(Model):
    """The evidence of one death; `details` is the whole bundle as a JSON object."""

    __table__ = tables.BUNDLE


class HealthRow(Model):
    """A copy of a worker's health for people; no decision uses it."""

    __table__ = tables.HEALTH


class GenerationRow(Model):
    """The numbers of a worker's processes: the mark, the latest one started, the latest one stopped."""

    __table__ = tables.GENERATION


class MetaRow(Model):
    """A named setting, such as `worker_enabled`."""

    __table__ = tables.META


class JobRow(Model):
    """A job: its payload, its claimant, and how often a worker died while executing it.

    `attempts` counts the claims; a result is accepted only with the current claimant and attempt.
    `claimed_run` identifies the supervisor's run. `alone` is 1 while a suspect job is executed by a
    worker that does nothing else. `errors` and `progress` are JSON.
    """

    __table__ = tables.JOB


class JobAfterRow(Model):
    """A job that comes after another one."""

    __table__ = tables.JOB_AFTER


class BatchRow(Model):
    """A batch: how many of its jobs ended, and the job that runs when all have."""

    __table__ = tables.BATCH


class JobTallyRow(Model):
    """How many jobs of a queue are in a state, as far as one connection counted them."""

    __table__ = tables.JOB_TALLY


class QueueRow(Model):
    """What is set for a queue: its pause and its limits; `bucket_full_us` is the state of its rate."""

    __table__ = tables.QUEUE


class QueueKeyRow(Model):
    """The state of the rate of one key of a queue."""

    __table__ = tables.QUEUE_KEY


class PeriodicRow(Model):
    """A periodic job: up to which due time its jobs were enqueued or missed."""

    __table__ = tables.PERIODIC


class UsageRow(Model):
    """One sample of a worker's usage; each worker has a limited number of samples."""

    __table__ = tables.USAGE


class RunRow(Model):
    """One run of a scheduled worker, or several missed ones in a row."""

    __table__ = tables.RUN


class JobCrashRow(Model):
    """One death of a worker while it executed a job: the evidence against the job."""

    __table__ = tables.JOB_CRASH


class EventRow(Model):
    """An event, written in the transaction that caused it; ids only grow.

    The payload is a JSON object of the other fields, made by `rekindle.actors.messages.event_json`.
    """

    __table__ = tables.EVENT


class AlertRow(Model):
    """One alert; `body` is a JSON object of the fields without a column."""

    __table__ = tables.ALERT


class AuditRow(Model):
    """One order of an operator, and its result."""

    __table__ = tables.AUDIT
