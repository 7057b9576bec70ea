"""Running jobs that have to end, on real processes: asked first, then ended with their process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.processes.conftest import Run
from tests.processes.jobs.test_jobs import ends, job_worker
from tests.processes.policies import SHORT
from tests.processes.waiting import eventually

from rekindle.actors import System, WorkerSpec
from rekindle.persistence import open_queue

SOON: dict[str, Any] = {"cancel_grace_s": 0.2}


def deaf(**jobs: Any) -> WorkerSpec:
    """A worker that is given little time to end a job."""
    return job_worker(jobs={**SOON, **jobs}, stop=SHORT)


def begun(system: System, payload: dict[str, Any], **settings: Any) -> int:
    """A job that runs."""
    job = system.enqueue("tag", payload, **settings)
    ends(system, job, "running")
    return job


def is_unblamed(system: System, *jobs: int) -> bool:
    """Whether nothing was counted, against the worker or against jobs."""
    status = system.status("worker:tag:0")
    return not system.jobs.crashes(jobs) and not status.restart_count and not system.deaths("worker:tag:0")


def test_a_job_that_looks_ends_when_it_is_cancelled_and_its_process_goes_on(run: Run) -> None:
    system = run(job_worker())
    job = begun(system, {"do": "until cancelled"})
    assert system.jobs.cancel([job]) == ("running",)
    assert ends(system, job, "cancelled").result is None
    assert system.status("worker:tag:0").generation == 1


def test_a_coroutine_is_cancelled_and_cleans_up(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    system = run(job_worker(target="patient_worker", env={"NOTES": str(notes)}))
    job = begun(system, {})
    assert eventually(lambda: notes.exists() and "began" in notes.read_text())
    system.jobs.cancel([job])
    ends(system, job, "cancelled")
    assert f"cleaned up {job}" in notes.read_text()


def test_a_job_that_ignores_the_request_is_ended_with_its_process_and_nothing_counts(run: Run) -> None:
    system = run(deaf())
    job = begun(system, {"do": "ignore everything"})
    system.jobs.cancel([job])
    ends(system, job, "cancelled")
    after = system.enqueue("tag", {})
    ends(system, after)
    assert system.status("worker:tag:0").generation == 2
    assert is_unblamed(system, job, after)


def test_a_job_that_hangs_in_c_times_out_and_is_retried_and_nothing_counts(run: Run) -> None:
    """It holds the interpreter, so that no thread of its process can run, nor a signal handler."""
    system = run(deaf())
    job = system.enqueue(
        "tag", {"do": "hold the interpreter"}, timeout_s=0.3, error_retries=1, retry_delay_s=0.05
    )
    failed = ends(system, job, "error")
    assert failed.error == "timed out after 0.3 s; its process was ended"
    assert [(error.attempt, error.error) for error in failed.errors] == [
        (attempt, "timed out after 0.3 s; its process was ended") for attempt in (1, 2)
    ]
    assert is_unblamed(system, job)


def test_a_job_that_looks_times_out_without_costing_a_process(run: Run) -> None:
    system = run(job_worker())
    job = system.enqueue("tag", {"do": "show progress"}, timeout_s=0.2)
    assert ends(system, job, "error").error == "timed out after 0.2 s"
    assert system.status("worker:tag:0").generation == 1


def test_the_neighbours_of_a_cancelled_job_finish_first(run: Run, tmp_path: Path) -> None:
    system = run(job_worker(jobs={**SOON, "concurrency": 2}))
    done = tmp_path / "done"
    job = begun(system, {"do": "ignore everything"})
    neighbour = begun(system, {"do": "wait for", "file": str(done)})
    system.jobs.cancel([job])
    assert eventually(lambda: system.status("worker:tag:0").shown == "stopping")
    done.touch()
    finished = ends(system, neighbour)
    ends(system, job, "cancelled")
    assert (finished.attempts, finished.crash_count) == (1, 0)
    assert is_unblamed(system, job, neighbour)


def test_a_job_is_cancelled_by_another_program(run: Run, database: Path) -> None:
    system = run(job_worker())
    job = begun(system, {"do": "until cancelled"})
    queue = open_queue(database)
    queue.cancel([job])
    queue.close()
    ends(system, job, "cancelled")


def test_progress_is_seen_while_the_job_runs(run: Run) -> None:
    system = run(job_worker())
    job = begun(system, {"do": "show progress"})
    assert eventually(lambda: system.jobs.get(job).progress is not None)
    progress = system.jobs.get(job).progress
    assert progress is not None
    assert (progress.total, progress.note) == (1_000_000, "working")
    system.jobs.cancel([job])
    ends(system, job, "cancelled")
