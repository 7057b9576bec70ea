"""The claims of former and other supervisors: only the workers of the current run take jobs."""

from __future__ import annotations

import signal
import subprocess
import time
import uuid

from tests.contract.jobs.test_claims import TAG
from tests.contract.queues import TAG as WORKER
from tests.contract.queues import Queues

from rekindle.actors.facts.jobs import CURRENT_RUN
from rekindle.actors.facts.records import MetaSet
from rekindle.worker.handle import Interruption
from rekindle.worker.jobs.claims import (
    Claimant,
)
from rekindle.worker.jobs.queue_address import open_claims


def test_only_the_workers_of_the_current_run_claim_jobs(sql_queues: Queues) -> None:
    """A process that outlived its supervisor would hold a job that the next one never releases."""
    address = sql_queues.store.address
    assert address is not None
    job = sql_queues.add()
    old = open_claims(address, Claimant(WORKER, 1, "former", supervised=True))
    current = open_claims(address, Claimant(WORKER, 2, "current", supervised=True))
    sql_queues.store.commit([MetaSet(CURRENT_RUN, "current")])
    began = time.monotonic()
    old.idle(("tag",), 0.2, Interruption().fileno())
    assert time.monotonic() - began >= 0.19, "there was work for it"
    assert old.exchange(None, TAG).claim is None
    claim = current.exchange(None, TAG).claim
    assert claim is not None
    assert claim.id == job
    for claims in (old, current):
        claims.close()


def test_the_claims_of_a_former_run_are_released_when_no_process_of_it_is_left(sql_queues: Queues) -> None:
    """Otherwise the job would be executed by two processes at a time."""
    job, run = sql_queues.add(), uuid.uuid4().hex
    with subprocess.Popen(["sleep", "1000"], env={"REKINDLE_SYSTEM": run}) as stray:
        sql_queues.claim(run=run)
        (settled,) = sql_queues.start_next_run()
        assert settled.job_id == job
        assert stray.wait(0) == -signal.SIGKILL
