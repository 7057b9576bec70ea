"""Existing task queues as supervised commands."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from redis import Redis
from rq import Queue
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import RestartPolicy, System, WorkerSpec
from rekindle.actors.facts.jobs import JobView
from rekindle.cli.config import load, parse
from rekindle.persistence import MemoryStore, open_store

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "scripts" / "adapters"
STARTS_WITHIN_S = 3 * PATIENCE_S


@pytest.mark.parametrize("file", sorted(ADAPTERS.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_is_a_configuration_without_problems(file: Path) -> None:
    config = parse(file.read_text(), file)
    assert config.warnings == ()
    assert config.specs()


def test_a_celery_worker_that_is_killed_in_the_middle_of_a_task_comes_back_and_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("celery_app.py", "celery.toml"):
        shutil.copy(ADAPTERS / name, tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts" / "import_root"))
    specs = load(tmp_path / "celery.toml").specs()
    lines = tmp_path / "lines"
    task_id = _submitted(tmp_path, lines)
    # An application finds Rekindle where it is installed; here it is not.
    specs = tuple(_finding_rekindle(spec) for spec in specs)
    with System(specs, store=MemoryStore()) as system:
        worker = system.wait_until("worker:celery:0", lambda w: w.current_job == task_id, STARTS_WITHIN_S)
        assert worker.pid is not None
        assert eventually(lambda: _said(lines) == [("begun", worker.pid)])
        os.kill(worker.pid, signal.SIGKILL)
        assert eventually(lambda: ("done",) in [said[:1] for said in _said(lines)], STARTS_WITHIN_S)
        [death] = system.deaths("worker:celery:0")
        [result] = system.stop()
    began, again, done = _said(lines)
    assert (began, again[0], done) == (("begun", worker.pid), "begun", ("done", again[1]))
    assert again[1] != worker.pid
    assert (death.signal, death.job) == (signal.SIGKILL, task_id)
    assert result.forced is None, "asked to stop, Celery ends by itself"


def _finding_rekindle(spec: WorkerSpec) -> WorkerSpec:
    return replace(spec, inherit_env=(*spec.inherit_env, "PYTHONPATH"))


def _submitted(folder: Path, lines: Path) -> str:
    send = f"from celery_app import report; print(report.delay({str(lines)!r}, 2.0).id)"
    ran = subprocess.run(
        [sys.executable, "-c", send], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return ran.stdout.strip()


def _said(lines: Path) -> list[tuple[str, int]]:
    text = lines.read_text() if lines.exists() else ""
    return [(word, int(pid)) for word, pid in re.findall(r"(begun|done) by (\d+)\n", text)]


# ── tasks that crash their workers ───────────────────────────────────────────────────────

SOON = RestartPolicy(
    initial_delay_s=0.0, max_delay_s=0.0, min_delay_s=0.0, max_in_window=None, max_lifetime=None
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the examples are, beside what they need."""
    for file in (*ADAPTERS.glob("*.py"), *ADAPTERS.glob("*.toml")):
        shutil.copy(file, tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'scripts' / 'import_root'}:{tmp_path}")
    return tmp_path


def running(folder: Path, name: str) -> System:
    """The workers of an example, with a store that has queues."""
    specs = load(folder / f"{name}.toml").specs()
    specs = tuple(replace(_finding_rekindle(spec), restart=SOON) for spec in specs)
    return System(specs, store=open_store(folder / "rekindle.db"))


def convicted(system: System, key: str) -> JobView:
    """The job beside a task, once it was set aside."""

    def found() -> list[JobView]:
        return [job for job in system.jobs.find(state="toxic") if job.unique_key == key]

    assert eventually(found, STARTS_WITHIN_S), system.jobs.find()
    [job] = found()
    return job


def check_the_evidence(system: System, key: str, worker: str) -> None:
    job = convicted(system, key)
    crashes = system.jobs.crashes([job.id])
    assert (job.crash_count, job.attempts, len(crashes)) == (3, 3, 3)
    assert {(crash.component_id, crash.signal) for crash in crashes} == {(worker, signal.SIGKILL)}
    assert [death.job for death in system.deaths(worker)] == [key] * 3


def test_a_celery_task_that_crashes_its_worker_is_set_aside_and_refused(folder: Path) -> None:
    with running(folder, "celery") as system:
        task = _called(folder, "from celery_app import crash; print(crash.delay().id)")
        check_the_evidence(system, task, "worker:celery:0")
        result = f"app.AsyncResult({task!r}).get(timeout=60, propagate=False)"
        refused = _called(folder, f"from celery_app import app; print(type({result}).__name__)")
        assert refused == "JobRefusedError"
        lines = folder / "lines"
        _called(folder, f"from celery_app import report; report.delay({str(lines)!r}, 0.0)")
        assert eventually(lambda: lines.exists() and "done" in lines.read_text(), STARTS_WITHIN_S)
        assert eventually(lambda: [job.state for job in system.jobs.find()] == ["done", "toxic"])


def test_an_rq_job_that_crashes_its_worker_is_set_aside_and_refused(
    folder: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    queue = Queue("default", connection=Redis.from_url(redis_url))
    with running(folder, "rq") as system:
        for number in (1, 2, 3):
            # RQ gives the job of a dead worker back minutes later; here it is delivered again at once.
            queue.enqueue("rq_jobs.crash", job_id="crash")
            assert eventually(partial(_has_died, system, "worker:rq:0", number), STARTS_WITHIN_S)
        check_the_evidence(system, "crash", "worker:rq:0")
        again, good = queue.enqueue("rq_jobs.crash", job_id="crash"), queue.enqueue("rq_jobs.report", "lines")
        assert eventually(lambda: good.get_status(refresh=True) == "finished", STARTS_WITHIN_S)
        assert again.get_status(refresh=True) == "failed"
        result = again.latest_result()
        assert result is not None
        refused = "JobRefusedError: crash is toxic: `rekindle jobs list --in-state toxic` shows why"
        assert refused in str(result.exc_string)
        assert len(system.deaths("worker:rq:0")) == 3


def test_a_dramatiq_message_that_crashes_its_worker_is_set_aside_and_refused(
    folder: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    with running(folder, "dramatiq") as system:
        message = _called(folder, "from dramatiq_app import crash; print(crash.send().message_id)")
        check_the_evidence(system, message, "worker:dramatiq:0")
        lines = folder / "lines"
        _called(folder, f"from dramatiq_app import report; report.send({str(lines)!r})")
        assert eventually(lambda: lines.exists() and "done" in lines.read_text(), STARTS_WITHIN_S)
        dead = Redis.from_url(redis_url)
        assert eventually(lambda: dead.zcard("dramatiq:default.XQ") == 1, STARTS_WITHIN_S)
        assert len(system.deaths("worker:dramatiq:0")) == 3


def _has_died(system: System, worker: str, times: int) -> bool:
    return len(system.deaths(worker)) == times


def _called(folder: Path, code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=90, check=True
    )
    return ran.stdout.strip()
