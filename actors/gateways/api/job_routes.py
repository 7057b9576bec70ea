"""What can be asked about jobs: a part of the table of routes."""

from __future__ import annotations

from ..serving.call_pools import Lane
from ..serving.json_values import Outcome
from . import job_handlers as answers
from .request_bodies import LARGEST_ENQUEUE, EnqueueArguments, JobQuery
from .route import Served

JOB_ROUTES: tuple[Served, ...] = (
    Served(
        path="/queues",
        summary="The figures of every queue",
        answer=answers.queues,
        result=answers.Queues,
        lane=Lane.STORE,
    ),
    Served(
        path="/jobs",
        summary="Jobs, the newest first",
        answer=answers.listing,
        result=answers.JobList,
        lane=Lane.STORE,
        query=JobQuery,
    ),
    Served(
        path="/jobs/{number}",
        summary="One job, and the evidence against it",
        answer=answers.detail,
        result=answers.JobDetail,
        lane=Lane.STORE,
    ),
    Served(
        method="POST",
        path="/queues/{name}/jobs",
        action="enqueue",
        summary="Put jobs into a queue, all or none",
        answer=answers.enqueue,
        result=Outcome,
        lane=Lane.STORE,
        body=EnqueueArguments,
        largest_body=LARGEST_ENQUEUE,
    ),
    Served(
        method="POST",
        path="/jobs/{number}/retry",
        action="retry_job",
        summary="Put a toxic or failed job back, with its counts cleared",
        answer=answers.retry,
        result=Outcome,
        lane=Lane.STORE,
    ),
    Served(
        method="POST",
        path="/jobs/{number}/drop",
        action="drop_job",
        summary="Forget a job that is not running, and the evidence with it",
        answer=answers.drop,
        result=Outcome,
        lane=Lane.STORE,
    ),
)
