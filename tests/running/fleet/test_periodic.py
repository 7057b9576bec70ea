"""Periodic jobs under `rekindle run`, whose supervisor is killed."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Any

from tests.cli.conftest import client_of
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.persistence import open_queue

CONFIG = """
[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
jobs = { queues = ["tag"] }

[periodic.beat]
queue = "tag"
payload = { path = "song.mp3" }
every = "1s"
"""


def test_each_due_time_has_one_job_or_is_counted_as_missed_also_across_kills(run: Any) -> None:
    for _ in range(3):
        running = run(CONFIG)
        running.wait_for("worker:tag:0", status="healthy")
        enough = len(jobs(running)) + 2
        assert eventually(partial(has_jobs, running, enough), PATIENCE_S)
        running.kill()
    client = client_of(running)
    (beat,) = client("queues", "periodic", "--json").document["periodic"]
    assert "every 1s" in client("queues", "periodic").out
    dues = [due_s(job.unique_key) for job in jobs(running)]
    assert len(set(dues)) == len(dues)
    span_s = beat["last_due_wall_ms"] // 1000 - dues[0] + 1
    assert len(dues) + beat["missed"] == span_s


def has_jobs(running: Any, enough: int) -> bool:
    return len(jobs(running)) >= enough


def jobs(running: Any) -> list[Any]:
    with closing(open_queue(client_of(running).state / "rekindle.db")) as queue:
        return list(reversed(queue.find(limit=1000)))


def due_s(key: str | None) -> int:
    assert key is not None
    return round(datetime.fromisoformat(key.removeprefix("periodic:beat:")).timestamp())
