"""Workers and supervisors are killed while chains and batches end: what comes after them runs once."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.processes.supervisors import IMPORT_PATH
from tests.processes.waiting import PATIENCE_S
from tests.services import postgres_service, postgres_url

from rekindle.actors.facts.jobs import OPEN, SERVED_QUEUES
from rekindle.actors.facts.records import MetaSet
from rekindle.persistence import open_queue, open_store
from rekindle.persistence.jobs.job_queue import JobQueue

__all__ = ["postgres_service", "postgres_url"]

WITHIN_S = 4 * PATIENCE_S
DEATHS = [(whom, when) for whom in ("worker", "supervisor") for when in ("during", "after")]

FILE = """
state_dir = {state}
database = {database}

[worker.fatal]
python = "tests.processes.jobs.fatal_jobs:Fatal.main"
count = 2
env = {{ NOTES = {notes} }}
inherit_env = ["PYTHONPATH"]
restart = {{ initial_delay_s = 0, min_delay_s = 0, max_in_window = "none", max_lifetime = "none" }}
jobs = {{ queues = ["fatal"], crash_retries = 9 }}
"""


def payload(whom: str, when: str) -> dict[str, str]:
    return {"kills": whom, "when": when}


def run_until_all_end(file: Path, queue: JobQueue) -> int:
    """Run supervisors, one after the other, until no job is open; how many were killed."""
    command = [sys.executable, "-m", "rekindle.cli", "run", str(file)]
    deadline = time.monotonic() + WITHIN_S
    for killed in itertools.count():
        supervisor = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": IMPORT_PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while supervisor.poll() is None:
                if not any(job.state in OPEN for job in queue.find()):
                    return killed
                assert time.monotonic() < deadline, queue.find()
                time.sleep(0.05)
        finally:
            supervisor.kill()
            supervisor.wait()
    raise AssertionError


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_comes_after_a_chain_and_a_batch_runs_once_although_everything_is_killed(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    state, notes, file = tmp_path / "state", tmp_path / "notes", tmp_path / "workers.toml"
    state.mkdir(mode=0o700)
    where = str(state / "rekindle.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with closing(open_store(where)) as store:
        store.commit([MetaSet(SERVED_QUEUES, '["fatal"]')])  # as a supervisor does at its start
    texts = {"state": str(state), "database": where, "notes": str(notes)}
    file.write_text(FILE.format(**{name: json.dumps(text) for name, text in texts.items()}))
    then = payload("supervisor", "during")
    with closing(open_queue(where)) as queue:
        chain: list[int] = []
        for death in DEATHS:
            chain += queue.enqueue_many("fatal", [payload(*death)], after=chain[-1:])
        batch = queue.batch("fatal", [payload(*death) for death in DEATHS], then=then)
        killed = run_until_all_end(file, queue)
        jobs = {job.id: job for job in queue.find()}
    assert killed >= 2
    assert {job.state for job in jobs.values()} == {"done"}
    assert set(jobs) == {*chain, *batch.job_ids, batch.callback_id}
    assert batch.callback_id is not None
    last = jobs[batch.callback_id]
    assert last.result_value == {"id": batch.id, "total": 4, "done": 4, "failed": 0}
    lines = notes.read_text().splitlines()
    for before, after in [*itertools.pairwise(chain), *((job, last.id) for job in batch.job_ids)]:
        ended = next(n for n, line in enumerate(lines) if line.startswith(f"ended {before} "))
        began = next(n for n, line in enumerate(lines) if line.startswith(f"began {after} "))
        assert ended < began, (before, after, lines)
