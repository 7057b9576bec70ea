"""Jobs on several nodes: the workers that process them, and what the database says of each claim and end."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cluster.nodes import Nodes

from rekindle.persistence import open_queue
from rekindle.persistence.jobs.job_queue import JobQueue
from rekindle.worker.jobs import Job, JobWorker

TRACES = "TRACES"
"""The variable with the folder of the traces."""

AUDIT = """
CREATE TABLE test_step (job bigint, state text, is_assigned boolean);
CREATE FUNCTION test_note_step() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO test_step VALUES (NEW.id, NEW.state, EXISTS (
        SELECT 1 FROM rekindle_assignment AS a JOIN rekindle_node AS n ON n.id = a.node_id
        WHERE a.component_id = NEW.claimed_by AND a.epoch = NEW.claimed_epoch AND n.run = NEW.claimed_run
            AND n.name = NEW.claimed_node));
    RETURN NEW;
END $$;
CREATE TRIGGER test_steps AFTER UPDATE OF state ON rekindle_job FOR EACH ROW
    WHEN (NEW.state IN ('running', 'done')) EXECUTE FUNCTION test_note_step();
"""
"""Writes down every claim and every recorded end, and whether its worker was assigned to its node then."""


class Tally(JobWorker):
    """Takes the time that a job says, and dies on it if it says so, the first time."""

    def process(self, job: Job) -> object:
        """Leave a sign of life before and after."""
        self._note()
        time.sleep(job.payload["takes_s"])
        if job.payload.get("dies") and job.attempt == 1:
            os.abort()
        self._note()
        return {"node": self.worker.node, "token": self.worker.token}

    def _note(self) -> None:
        line = f"{time.time()} {self.worker.node} {os.getpid()} {self.worker.token}\n"
        with (Path(os.environ[TRACES]) / f"{self.worker.component_id}.trace").open("a") as trace:
            trace.write(line)


def declare(nodes: Nodes, *, count: int, more: str = "") -> None:
    """Declare workers that serve the queue `tally`; call it before nodes join."""
    nodes.declare(
        f"""
[worker.tally]
python = "tests.cluster.fleet_jobs:Tally.main"
count = {count}
env = {{ {TRACES} = "{nodes.folder}", PYTHONPATH = "{os.pathsep.join(sys.path)}" }}
jobs = {{ queues = ["tally"], concurrency = 2, crash_retries = 9 }}
place = {{ per_node = 2 }}
[worker.tally.restart]
initial_delay_s = 0.1
min_delay_s = 0
max_delay_s = 0.2
max_in_window = "none"
max_lifetime = "none"
{more}
"""
    )


def opened(nodes: Nodes) -> closing[JobQueue]:
    """The queues of the cluster, as any program opens them."""
    return closing(open_queue(nodes.database))


def audit(nodes: Nodes) -> None:
    """Begin to write down every claim and every end."""
    _sql(nodes, AUDIT)


def ends(nodes: Nodes) -> Counter[int]:
    """How often the end of each job was recorded."""
    return Counter(job for (job,) in _sql(nodes, "SELECT job FROM test_step WHERE state = 'done'"))


def claims_of_zombies(nodes: Nodes) -> list[Any]:
    """The claims and ends of workers that were not assigned to their node."""
    return _sql(nodes, "SELECT job, state FROM test_step WHERE NOT is_assigned")


def _sql(nodes: Nodes, statement: str) -> list[Any]:
    import psycopg

    with psycopg.connect(nodes.database, autocommit=True) as connection:
        found = connection.execute(statement.encode())
        return found.fetchall() if found.description is not None else []
