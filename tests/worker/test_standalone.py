"""A worker's code run by hand, outside of Rekindle."""

from __future__ import annotations

import os
import threading

import pytest

from rekindle.worker import Worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    for name in [name for name in os.environ if name.startswith("REKINDLE_")]:
        monkeypatch.delenv(name)
    return Worker()


def test_a_worker_outside_of_rekindle_starts_no_thread_and_has_no_name(worker: Worker) -> None:
    # Threads of an executor of another test may be about to end.
    before = set(threading.enumerate())
    Worker()
    assert set(threading.enumerate()) <= before
    assert (worker.component_id, worker.generation) == ("", 0)


def test_a_worker_outside_of_rekindle_may_call_everything(worker: Worker) -> None:
    worker.healthy()
    worker.unhealthy("tired")
    worker.progress()
    with worker.recovering(), worker.job(42):
        assert worker.current_job == 42
    assert worker.current_job is None


def test_a_worker_runs_until_it_is_stopped(worker: Worker) -> None:
    assert (worker.running, worker.paused, worker.wait(0)) == (True, False, False)
    worker.wait_while_paused()
    worker.stop()
    assert (worker.running, worker.wait()) == (False, True)


@pytest.mark.parametrize("fd", ["", "x", "-1", "0x1", "999999"])
def test_an_invalid_channel_makes_a_worker_outside_of_rekindle(
    monkeypatch: pytest.MonkeyPatch, fd: str
) -> None:
    monkeypatch.setenv("REKINDLE_FD", fd)
    Worker().healthy()
    assert "REKINDLE_FD" not in os.environ


def test_a_descriptor_that_is_not_a_socket_is_not_taken_for_a_channel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    with open(os.path.join(tmp_path, "file"), "wb") as file:
        monkeypatch.setenv("REKINDLE_FD", str(file.fileno()))
        Worker().healthy()
        assert file.tell() == 0


@pytest.mark.parametrize(
    ("job", "error"),
    [(3.5, TypeError), (True, TypeError), (b"42", TypeError), (2**63, ValueError), ("x" * 1025, ValueError)],
)
def test_a_job_that_no_frame_can_carry_is_refused_by_hand_already(
    worker: Worker, job: int | str, error: type[Exception]
) -> None:
    with pytest.raises(error, match="a job must"):
        worker.current_job = job
    with pytest.raises(error, match="a mark of progress must"):
        worker.progress(job)
    assert worker.current_job is None
