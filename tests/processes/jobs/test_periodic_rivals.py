"""Several processes enqueue the same periodic job: each due time has one job."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from tests.processes.supervisors import python_process
from tests.processes.waiting import PATIENCE_S, eventually
from tests.services import postgres_service, postgres_url

from rekindle.persistence import open_queue, open_store

__all__ = ["postgres_service", "postgres_url"]

DUES = 4
RIVALS = 3


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_each_due_time_has_one_job_although_several_processes_enqueue(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    where = str(tmp_path / "rekindle.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    open_store(where).close()
    rivals = [python_process("-m", "tests.processes.jobs.periodic_rival", where) for _ in range(RIVALS)]
    with closing(open_queue(where)) as queue:
        enough = eventually(lambda: len(queue.find()) >= DUES)
        for rival in rivals:
            rival.communicate(timeout=PATIENCE_S)
        assert enough
        assert [rival.returncode for rival in rivals] == [0] * RIVALS
        (known,) = queue.periodic()
        keys = sorted(job.unique_key or "" for job in queue.find())
    dues = [datetime.fromisoformat(key.removeprefix("periodic:report:")) for key in keys]
    seconds = [round(due.timestamp()) for due in dues]
    # No due time twice; one that is not there is counted as missed, since a busy machine was late.
    assert len(set(seconds)) == len(seconds)
    assert seconds[-1] - seconds[0] + 1 == len(seconds) + known.missed
