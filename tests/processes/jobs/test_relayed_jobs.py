"""Job workers that do not know the database: they exchange through their supervisor."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes.jobs.test_jobs import ends, job_worker
from tests.processes.policies import worker

from rekindle.actors import JobPolicy, System, command
from rekindle.persistence import open_store

WORKER = Path(__file__).parents[3] / "worker"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "rekindle.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


def test_a_worker_without_the_address_does_its_jobs_and_takes_none_along(
    database: str, no_traces: None
) -> None:
    via = {"via": "supervisor", "error_retries": 1, "retry_delay_s": 0.0}
    specs = [job_worker(f"worker:tag:{number}", jobs=via) for number in range(2)]
    counting = job_worker("worker:count:0", "Resumed.main", jobs={**via, "queues": ("count",)})
    many = job_worker("worker:many:0", jobs={**via, "queues": ("many",), "concurrency": 4})
    with System([*specs, counting, many], store=open_store(database)) as system:
        assert ends(system, system.enqueue("tag", {})).attempts == 1
        assert ends(system, system.enqueue("tag", {"do": "die until", "attempt": 3})).attempts == 3
        assert ends(system, system.enqueue("tag", {"do": "die"}), "toxic").crash_count == 3
        assert ends(system, system.enqueue("tag", {"do": "raise"}), "error").error_count == 2
        resumed = json.loads(ends(system, system.enqueue("count", {})).result)
        assert resumed == {"begun_at": 8, "attempt": 3}
        jobs = [system.enqueue("many", {}) for _ in range(40)]
        assert all(ends(system, job).attempts == 1 for job in jobs)


def test_a_job_adds_jobs_through_the_supervisor(database: str, no_traces: None) -> None:
    jobs = {"via": "supervisor", "enqueues": ("index",), "concurrency": 3}
    indexing = job_worker("worker:index:0", jobs={"queues": ("index",)})
    specs = [job_worker("worker:tag:0", "Adding.main", jobs=jobs), indexing]
    with System(specs, store=open_store(database)) as system:
        adding = [system.enqueue("tag", {"adds": ["index", number]}) for number in range(6)]
        added = [json.loads(ends(system, job).result) for job in adding]
        for first, then in added:
            assert ends(system, first).queue == "index"
            assert ends(system, then).waits_for == 0
        refused = ends(system, system.enqueue("tag", {"adds": ["other", 1]}), "error")
        assert "may not put jobs into the queue 'other', only into index, tag" in refused.error
        direct = job_worker("worker:direct:0", "Adding.main", jobs={"queues": ("direct",)})
        system.add(direct)
        failed = ends(system, system.enqueue("direct", {"adds": ["index", 1]}), "error")
        assert "open its queues with rekindle.persistence.open_queue" in failed.error


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every user can read, with the package of the workers and nothing else."""
    folder = Path("/tmp") / f"rekindle-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    shutil.copytree(WORKER, folder / "rekindle" / "worker", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "rekindle" / "__init__.py").touch()
    shutil.copy(Path(__file__).with_name("relayed_workers.py"), folder)
    for each in folder.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no interpreter that all users can run")
def test_a_worker_of_another_user_does_jobs_and_cannot_learn_where_they_are(
    database: str, program: Path, tmp_path: Path, no_traces: None
) -> None:
    run = command("/usr/bin/python3", str(program / "relayed_workers.py"), reports_health=True)
    spec = worker(
        "worker:tag:0",
        run,
        user="nobody",
        env={"PYTHONPATH": str(program)},
        jobs=JobPolicy(queues=("tag",), via="supervisor"),
    )
    with System([spec], store=open_store(database)) as system:
        files = [f"/proc/{os.getpid()}/environ", database]
        done = ends(system, system.enqueue("tag", {"files": files}))
    learnt = json.loads(done.result)
    assert learnt["uid"] != 0
    assert learnt["readable"] == []
    assert learnt["address"].startswith("rekindle-claims:///")
    assert database not in json.dumps(learnt["environment"])
    assert not any("postgres" in value for value in learnt["environment"].values())
