"""Executions of jobs in a worker: what ends them, what they show, and what surrounds them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import eventually

from rekindle.actors.facts.jobs import JobView, NewJob
from rekindle.persistence import open_store
from rekindle.persistence.store import SqlStore
from rekindle.worker import Worker
from rekindle.worker.jobs import Job, JobCancelledError, JobTimeoutError, JobWorker
from rekindle.worker.jobs.sqlite import SqliteClaims

PATIENCE_S = 20.0


class Served:
    """A queue, and a worker without a supervisor that serves it in this process."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.store = open_store(database)
        assert isinstance(self.store, SqlStore)
        self.jobs = self.store.jobs

    def run(self, process: Callable[[Job], object], *jobs: NewJob, **settings: Any) -> list[JobView]:
        """What became of the jobs, once each of them was executed once."""
        ids = self.jobs.add("tag", jobs or [NewJob(payload="{}")])
        worker = Worker()

        def last_one_stops(job: Job) -> object:
            if job.id == ids[-1]:
                worker.stop()
            return process(job)

        JobWorker(
            worker, process=last_one_stops, queues=["tag"], database=str(self.database), **settings
        ).run()
        return [self.jobs.get(job) for job in ids]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "rekindle.db")
    yield served
    served.store.close()


def until_asked(job: Job) -> None:
    """Report progress until that raises."""
    eventually(job.progress)


def unlucky(job: Job) -> None:
    raise LookupError(f"job {job.id} is unlucky")


async def unlucky_later(job: Job) -> None:
    await asyncio.sleep(0)
    unlucky(job)


@pytest.mark.parametrize("process", [unlucky, unlucky_later])
def test_the_stored_traceback_begins_in_the_job_s_own_code(
    served: Served, process: Callable[[Job], object]
) -> None:
    (job,) = served.run(process)
    assert job.error is not None
    sentence, first, *_ = job.error.splitlines()
    assert sentence == "LookupError: job 1 is unlucky"
    assert first.startswith(f'  File "{__file__}"')


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (b"abc", "TypeError: the result is not JSON: Object of type bytes is not JSON serializable"),
        (
            float("nan"),
            "ValueError: the result is not JSON: Out of range float values are not JSON compliant",
        ),
    ],
)
def test_a_result_that_is_not_json_is_named_as_the_error(served: Served, result: object, said: str) -> None:
    (job,) = served.run(lambda _: result)
    assert (job.state, (job.error or "").splitlines()[0]) == ("error", said)


def test_a_job_for_a_test_has_what_the_queue_would_give_it() -> None:
    job = Job.for_test({"pair": (1, 2)}, attempt=2, resumed=(3,), batch={"total": 4})
    assert (job.payload, job.attempt, job.resumed, job.batch) == ({"pair": [1, 2]}, 2, [3], {"total": 4})
    job.checkpoint({"at": 5})
    job.progress(1, 2, "half")
    assert (job.cancelled, job.stopping, Job.for_test().payload) == (False, False, None)


def test_a_job_for_a_test_refuses_what_the_queue_would_refuse() -> None:
    with pytest.raises(TypeError, match="the payload is not JSON"):
        Job.for_test({1, 2})
    with pytest.raises(ValueError, match="the checkpoint is too long"):
        Job.for_test().checkpoint("x" * 1_000_001)


# ── what ends them ───────────────────────────────────────────────────────────────────────


def test_a_cancelled_job_learns_of_it_at_its_next_checkpoint(served: Served) -> None:
    seen: list[object] = []

    def process(job: Job) -> object:
        served.jobs.cancel([job.id])
        try:
            job.checkpoint(1)
        except JobCancelledError:
            seen.append(job.cancelled)
            raise
        return "not reached"

    (job,) = served.run(process)
    assert (job.state, job.checkpoint, seen) == ("cancelled", None, [True])


def test_a_cancelled_job_learns_of_it_by_its_progress(served: Served) -> None:
    def process(job: Job) -> object:
        served.jobs.cancel([job.id])
        job.progress(1, 2)
        until_asked(job)
        return "not reached"

    assert served.run(process)[0].state == "cancelled"


def test_the_result_of_a_cancelled_job_is_dropped(served: Served) -> None:
    (job,) = served.run(lambda job: served.jobs.cancel([job.id]) and "late")
    assert (job.state, job.result) == ("cancelled", None)


def test_an_execution_that_takes_too_long_fails(served: Served) -> None:
    (job,) = served.run(until_asked, NewJob(payload="{}", timeout_ms=20))
    assert (job.state, job.error) == ("error", "timed out after 0.02 s")


def test_a_coroutine_that_takes_too_long_is_cancelled(served: Served) -> None:
    cleaned_up = []

    async def process(_: Job) -> None:
        try:
            await asyncio.sleep(PATIENCE_S)
        finally:
            cleaned_up.append(True)

    (job,) = served.run(process, NewJob(payload="{}", timeout_ms=20))
    assert (job.state, job.error, cleaned_up) == ("error", "timed out after 0.02 s", [True])


def test_what_a_job_raises_after_its_time_is_part_of_the_error(served: Served) -> None:
    def process(job: Job) -> None:
        try:
            until_asked(job)
        except JobTimeoutError:
            raise OSError("cannot clean up") from None

    (job,) = served.run(process, NewJob(payload="{}", timeout_ms=20))
    assert (job.error or "").startswith("timed out after 0.02 s: OSError: cannot clean up")


def test_a_job_that_completes_before_it_is_ended_is_done(served: Served) -> None:
    def process(job: Job) -> object:
        assert eventually(lambda: job.cancelled)
        return "complete"

    (job,) = served.run(process, NewJob(payload="{}", timeout_ms=20))
    assert (job.state, job.result_value) == ("done", "complete")


def test_many_jobs_that_time_out_do_not_end_their_worker(served: Served) -> None:
    """Ten that raise in a row would."""
    jobs = served.run(until_asked, *[NewJob(payload="{}", timeout_ms=1)] * 12)
    assert {job.state for job in jobs} == {"error"}


def test_a_job_that_claims_to_be_cancelled_has_failed(served: Served) -> None:
    def process(_: Job) -> object:
        raise JobCancelledError("on its own account")

    (job,) = served.run(process)
    assert job.state == "error"
    assert "without being cancelled" in (job.error or "")


def test_a_checkpoint_that_is_too_long_is_an_error_of_the_call_and_nothing_is_stuck(served: Served) -> None:
    def process(job: Job) -> object:
        job.checkpoint("fits")
        with pytest.raises(ValueError, match="the checkpoint is too long"):
            job.checkpoint("x" * 1_000_001)
        with pytest.raises(TypeError):
            job.checkpoint(object())
        return "done all the same"

    assert served.run(process)[0].state == "done"


def test_the_retries_of_a_job_have_its_own_growing_delays(served: Served) -> None:
    def process(_: Job) -> object:
        raise ValueError("again")

    settings: dict[str, Any] = {
        "max_retries": 2,
        "retry_delay_ms": 3_600_000,
        "max_retry_delay_ms": 5_000_000,
    }
    (job,) = served.run(process, NewJob(payload="{}", **settings))
    (error,) = job.errors
    assert (job.state, job.not_before_wall_ms - error.at_wall_ms) == ("pending", 3_600_000)
    assert error.error.startswith("ValueError: again")


# ── what they show ───────────────────────────────────────────────────────────────────────


def test_progress_is_stored_once_a_second_however_often_it_is_reported(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []

    def show(_self: SqliteClaims, _claim: object, text: str) -> bool:
        stored.append(text)
        return True

    monkeypatch.setattr(SqliteClaims, "show", show)

    def process(job: Job) -> object:
        began = time.monotonic()
        for step in range(10_000):
            job.progress(step, 10_000, "counting")
        return time.monotonic() - began

    (job,) = served.run(process)
    assert len(stored) <= 2 + job.result_value


def test_the_latest_progress_is_stored_although_the_job_is_silent_after_it(served: Served) -> None:
    def process(job: Job) -> object:
        for step in (1, 2, 3):
            job.progress(step, 3, f"step {step}")
        return eventually(lambda: stored(job) == (3, "step 3"))

    def stored(job: Job) -> tuple[float | None, str] | None:
        progress = served.jobs.get(job.id).progress
        return None if progress is None else (progress.done, progress.note)

    assert served.run(process)[0].result_value is True


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((True, 5), TypeError),
        ((float("nan"), 5), ValueError),
        ((1, "5"), TypeError),
        ((1, 5, object()), TypeError),
    ],
)
def test_bad_progress_is_an_error_of_the_call(
    served: Served, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    def process(job: Job) -> object:
        with pytest.raises(error):
            job.progress(*arguments)
        return None

    assert served.run(process)[0].state == "done"


# ── what surrounds them ──────────────────────────────────────────────────────────────────

current: ContextVar[int | None] = ContextVar("current", default=None)


def test_context_managers_surround_every_execution_outermost_first(served: Served) -> None:
    said: list[str] = []

    def saying(name: str) -> Callable[[Job], Any]:
        @contextmanager
        def around(job: Job) -> Iterator[None]:
            said.append(f"{name} begins {job.payload}")
            try:
                yield
            finally:
                said.append(f"{name} ends")

        return around

    def process(job: Job) -> None:
        said.append(f"job {job.payload}")

    served.run(process, NewJob(payload="1"), around=[saying("log"), saying("trace")])
    assert said == ["log begins 1", "trace begins 1", "job 1", "trace ends", "log ends"]


def test_what_surrounds_a_job_sees_its_exception_and_cannot_suppress_it(served: Served) -> None:
    seen: list[str] = []

    @contextmanager
    def around(_: Job) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(str(error))

    def process(_: Job) -> object:
        raise ValueError("the job's own")

    (job,) = served.run(process, around=[around])
    assert (job.state, seen) == ("error", ["the job's own"])


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_goes_wrong_around_a_job_is_told_and_the_job_is_done(
    served: Served, when: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def broken(_: Job) -> Iterator[None]:
        if when == "before":
            raise OSError("no collector")
        yield
        raise OSError("no collector")

    (job,) = served.run(lambda _: 1, around=[broken])
    assert (job.state, job.result_value) == ("done", 1)
    told = capsys.readouterr().err
    assert f"broken, which surrounds job {job.id}, failed" in told
    assert "OSError: no collector" in told


def test_what_surrounds_a_coroutine_is_part_of_its_context(served: Served) -> None:
    @contextmanager
    def around(job: Job) -> Iterator[None]:
        token = current.set(job.id)
        yield
        current.reset(token)

    async def process(_: Job) -> object:
        return current.get()

    (job,) = served.run(process, around=[around])
    assert job.result_value == job.id
