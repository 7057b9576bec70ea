"""Workers that serve queues, supervised: a dead one takes no job along."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import ATTENTIVE, worker
from tests.processes.waiting import PATIENCE_S, eventually, later_news

from rekindle.actors import (
    JobConvicted,
    JobPolicy,
    JobRequeued,
    PauseMode,
    PayloadError,
    PythonCall,
    RestartPolicy,
    Status,
    StopPolicy,
    System,
    UnknownQueueError,
    WorkerSpec,
)
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.messages import StateChanged
from rekindle.persistence import open_queue, open_store


def job_worker(
    id_: str = "worker:tag:0",
    target: str = "Obedient.main",
    *,
    jobs: dict[str, Any] | None = None,
    **more: Any,
) -> WorkerSpec:
    """A worker that serves the queue `tag`."""
    policy = JobPolicy(**{"queues": ("tag",), **(jobs or {})})
    return worker(id_, PythonCall(f"tests.processes.job_workers:{target}"), jobs=policy, **more)


def ends(system: System, job: int, state: str = "done") -> Any:
    """The job once it has come to that state."""
    assert eventually(lambda: system.jobs.get(job).state == state), system.jobs.get(job)
    return system.jobs.get(job)


def pid_of(system: System, id_: str, job: int) -> int:
    """The process that executes the job."""
    pid = system.wait_until(id_, lambda w: w.current_job == job, PATIENCE_S).pid
    assert pid is not None
    return pid


def later_generation(system: System, than: int) -> None:
    """Wait until the worker has another process."""
    system.wait_until("worker:tag:0", lambda w: w.generation > than, PATIENCE_S)


def test_a_job_is_done_and_its_result_is_stored(run: Run) -> None:
    system = run(job_worker())
    done = ends(system, system.enqueue("tag", {"path": "song.mp3"}))
    assert json.loads(done.result)["attempt"] == 1
    assert (done.attempts, done.crash_count, done.claimed_by) == (1, 0, "worker:tag:0")


@pytest.mark.parametrize("target", ["as_a_function", "asynchronous"])
def test_a_function_and_a_coroutine_serve_a_queue_as_well(run: Run, target: str) -> None:
    system = run(job_worker(target=target))
    assert ends(system, system.enqueue("tag", {})).result is not None


def test_a_system_adds_a_batch_and_its_last_job_knows_how_the_others_ended(run: Run) -> None:
    system = run(job_worker())
    batch = system.batch("tag", [{"do": "a little"}, {"do": "raise"}], then={"last": True})
    assert batch.callback_id is not None
    ends(system, batch.callback_id)
    (shown,) = system.jobs.batches(batch.id)
    assert (shown.total, shown.done, shown.failed) == (2, 1, 1)
    with pytest.raises(UnknownQueueError):
        system.batch("tag", [{}], then_queue="nowhere")
    with pytest.raises(PayloadError, match="job"):
        system.batch("tag", [])


def test_jr_02_pp_11_the_job_of_a_killed_worker_is_run_by_another_within_a_second(
    run: Run, tmp_path: Path
) -> None:
    """The best of three: this machine may be busy, and the promise is about ours."""
    slow = RestartPolicy(initial_delay_s=60.0)
    system = run(*(job_worker(f"worker:tag:{number}", restart=slow) for number in range(4)))
    for number in range(4):
        system.wait_for(f"worker:tag:{number}", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert any(_taken_over_s(system, tmp_path / f"go{number}") < 1.0 for number in range(3))


def _taken_over_s(system: System, go: Path) -> float:
    """Kill the worker that executes a job; how long it takes until another one does."""
    job = system.enqueue("tag", {"do": "wait for", "file": str(go)})
    assert eventually(lambda: system.jobs.get(job).claimed_by)
    first = system.jobs.get(job).claimed_by
    assert first is not None
    pid = pid_of(system, first, job)
    assert eventually(Path(f"{go}.begun").exists)  # a job that was claimed and not begun is not blamed
    with system.events() as events:
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: system.jobs.get(job).attempts == 2)
        taken_over_s = time.monotonic() - killed
        requeued = events.until(lambda event: isinstance(event, JobRequeued), PATIENCE_S)
    assert isinstance(requeued, JobRequeued)
    assert (requeued.job_id, requeued.component_id, requeued.crash_count) == (job, first, 1)
    assert system.deaths(first)[0].job == job
    go.touch()
    done = ends(system, job)
    assert (done.attempts, done.crash_count) == (2, 0)
    assert done.claimed_by != first
    return taken_over_s


def test_a_subscriber_to_jobs_is_notified_of_each_from_its_beginning_to_its_end(
    run: Run, tmp_path: Path
) -> None:
    """Topics queue:jobs and queue:tag:status, without a look at the queue in between."""
    system = run(job_worker())
    system.wait_for("worker:tag:0", Status.HEALTHY, timeout_s=PATIENCE_S)
    heard: list[Any] = []
    system.subscribe(Ear(heard), "queue:jobs", "queue:tag:status")
    job = system.enqueue("tag", {"do": "wait for", "file": str(tmp_path / "go"), "path": "song.mp3"})
    assert eventually(lambda: (job, "running") in _states(heard))
    (tmp_path / "go").touch()
    assert eventually(lambda: (job, "done") in _states(heard))
    assert eventually(lambda: any(getattr(each.state, "completed", 0) for each in heard))
    assert {each.state.path for each in heard if each.topic == "queue:jobs"} == {"song.mp3"}


class Ear:
    """Collects the states that it receives."""

    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    def tell(self, message: Any) -> None:
        """Keep it."""
        if isinstance(message, StateChanged):
            self._heard.append(message)


def _states(heard: list[Any]) -> list[tuple[int, str]]:
    return [(each.state.id, each.state.status) for each in heard if each.topic == "queue:jobs"]


def test_jr_03_jr_06_jr_09_a_job_that_kills_every_worker_ends_toxic_with_its_evidence(run: Run) -> None:
    """The worker is given up at its second death; its job is judged all the same."""
    few = RestartPolicy(initial_delay_s=0.0, min_delay_s=0.0, max_in_window=1, max_lifetime=None)
    system = run(*(job_worker(f"worker:tag:{number}", restart=few) for number in range(2)))
    job = system.enqueue("tag", {"do": "die"})
    with system.events() as events:
        convicted = events.until(lambda event: isinstance(event, JobConvicted), PATIENCE_S)
    assert isinstance(convicted, JobConvicted)
    assert (convicted.job_id, convicted.queue, convicted.crash_count) == (job, "tag", 3)
    toxic = system.jobs.get(job)
    assert (toxic.state, toxic.error) == ("toxic", "failed after 3 worker crashes")
    crashes = system.jobs.crashes([job])
    assert [(crash.signal, crash.attempt) for crash in crashes] == [(9, 1), (9, 2), (9, 3)]
    assert all(crash.output[-1] == "about to die" for crash in crashes)


def test_jr_05_a_job_that_raises_is_an_error_and_costs_its_worker_nothing(run: Run, rows: Rows) -> None:
    system = run(job_worker())
    job = system.enqueue("tag", {"do": "raise", "why": "bad file"})
    failed = ends(system, job, "error")
    assert failed.error.startswith("ValueError: bad file\n")
    assert (failed.crash_count, failed.error_count) == (0, 1)
    ends(system, system.enqueue("tag", {}))
    assert rows.deaths("worker:tag:0") == []
    assert ends(system, system.enqueue("tag", {"do": "not json"}), "error").error.startswith("TypeError")


def test_errors_have_retries_of_their_own(run: Run) -> None:
    system = run(job_worker(jobs={"error_retries": 2, "retry_delay_s": 0.01}))
    job = system.enqueue("tag", {"do": "raise"})
    own = system.enqueue("tag", {"do": "raise"}, max_retries=0)
    assert (ends(system, job, "error").error_count, ends(system, own, "error").error_count) == (3, 1)
    assert (system.jobs.get(job).attempts, system.jobs.get(job).crash_count) == (3, 0)


def test_jr_14_ten_errors_in_a_row_end_the_worker_and_a_success_resets_the_count(
    run: Run, rows: Rows
) -> None:
    system = run(job_worker())
    for payload in ({"do": "raise"}, {}, {"do": "raise"}):
        for _ in range(1 if payload == {} else 9):
            system.enqueue("tag", payload)
    last = system.enqueue("tag", {})
    ends(system, last)
    assert rows.deaths("worker:tag:0") == []
    jobs = [system.enqueue("tag", {"do": "raise"}) for _ in range(10)]
    assert eventually(lambda: rows.deaths("worker:tag:0") == [(1, "exited", 70, None, "restart")])
    assert {system.jobs.get(job).state for job in jobs} == {"error"}
    ends(system, system.enqueue("tag", {}))


def test_a_job_that_ends_its_worker_by_exiting_is_a_crash(run: Run) -> None:
    system = run(job_worker(jobs={"crash_retries": 0}))
    toxic = ends(system, system.enqueue("tag", {"do": "exit", "code": 0}), "toxic")
    assert toxic.error == "failed after 1 worker crash"


def test_a_job_that_hangs_its_worker_is_released_when_the_process_is_gone(run: Run) -> None:
    system = run(job_worker(health=ATTENTIVE, jobs={"crash_retries": 0}))
    job = system.enqueue("tag", {"do": "hang"})
    ends(system, job, "toxic")
    (crash,) = system.jobs.crashes([job])
    assert crash.signal == signal.SIGKILL
    assert crash.cause.startswith("heartbeat lost (process stopped")


def test_a_job_under_way_is_finished_when_its_worker_is_stopped(run: Run) -> None:
    """SD-11: within the ladder's time."""
    system = run(job_worker())
    job = system.enqueue("tag", {"do": "finish although asked to stop"})
    later = system.enqueue("tag", {})
    pid_of(system, "worker:tag:0", job)
    assert system.stop_worker("worker:tag:0").forced is None
    assert (system.jobs.get(job).state, system.jobs.get(later).state) == ("done", "pending")


def test_a_job_that_outlasts_the_ladder_is_released_and_not_counted(run: Run, tmp_path: Path) -> None:
    short = StopPolicy(ask_s=0.1, term_s=0.1)
    system = run(job_worker(stop=short))
    job = system.enqueue("tag", {"do": "wait for", "file": str(tmp_path / "never")})
    pid_of(system, "worker:tag:0", job)
    assert system.stop_worker("worker:tag:0").killed
    released = ends(system, job, "pending")
    assert (released.crash_count, released.attempts, system.jobs.crashes([job])) == (0, 1, ())


def test_sd_12_a_paused_worker_takes_no_job(run: Run) -> None:
    system = run(job_worker(pause_mode=PauseMode.IDLE))
    ends(system, system.enqueue("tag", {}))
    pid = system.status("worker:tag:0").pid
    system.pause()
    with system.events() as events:
        job = system.enqueue("tag", {})
        said = later_news(events, 1.0)
    assert said == []
    assert system.jobs.get(job).state == "pending"
    system.resume()
    ends(system, job)
    assert system.status("worker:tag:0").pid == pid


def test_jr_13_every_job_in_hand_is_released(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    system = run(job_worker(jobs={"concurrency": 3}))
    jobs = [system.enqueue("tag", {"do": "wait for", "file": str(go)}) for _ in range(3)]
    assert eventually(lambda: [system.jobs.get(job).state for job in jobs] == ["running"] * 3)
    pid = system.status("worker:tag:0").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    go.touch()
    for job in jobs:
        assert ends(system, job).attempts == 2


def test_a_suspect_runs_alone_and_is_convicted_while_the_innocent_are_cleared(
    run: Run, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    system = run(job_worker(jobs={"concurrency": 4}, env={"NOTES": str(notes)}))
    toxic = system.enqueue("tag", {"do": "die"})
    innocent = [system.enqueue("tag", {}) for _ in range(20)]
    convicted = ends(system, toxic, "toxic")
    assert convicted.error == "failed after 3 worker crashes, the last one while it ran alone"
    for job in innocent:
        assert ends(system, job).crash_count == 0
    lines = [line.split() for line in notes.read_text().splitlines()]
    for alone in ("2", "3"):
        (process,) = (
            pid for word, job, attempt, pid in lines if (word, job, attempt) == ("began", str(toxic), alone)
        )
        there = [(word, job) for word, job, _, pid in lines if pid == process]
        assert there.pop() == ("began", str(toxic))
        began, ended = ({job for what, job in there if what == word} for word in ("began", "ended"))
        assert began == ended


def test_a_result_that_is_too_long_is_the_job_s_error(run: Run, rows: Rows) -> None:
    system = run(job_worker())
    assert len(ends(system, system.enqueue("tag", {"do": "return", "bytes": 900_000})).result) == 900_002
    failed = ends(system, system.enqueue("tag", {"do": "return", "bytes": 1_000_000}), "error")
    assert failed.error.startswith("ValueError: the result is too long: 1000002 bytes, the limit is 1000000;")
    assert (failed.result, rows.deaths("worker:tag:0")) == (None, [])


def test_a_job_that_was_claimed_and_not_begun_is_not_blamed(run: Run, rows: Rows) -> None:
    """Without a commit of its own: the worker notes what it begins in memory that outlives it."""
    system = run(job_worker(target="KilledAfterTheClaim.main"))
    job = system.enqueue("tag", {})
    assert (ends(system, job).result, len(rows.deaths("worker:tag:0"))) == ("4", 3)
    assert system.jobs.crashes([job]) == ()


def test_a_job_continues_at_its_checkpoint_after_its_worker_was_killed(run: Run) -> None:
    system = run(job_worker(target="Resumed.main"))
    job = system.enqueue("tag", {}, crash_retries=5)
    assert ends(system, job).result == '{"begun_at":8,"attempt":3}'
    assert system.jobs.get(job).checkpoint is None


def test_a_worker_may_serve_the_queues_of_another_database(run: Run, tmp_path: Path) -> None:
    other = open_store(tmp_path / "other.db")
    (job,) = other.jobs.add("tag", [NewJob(payload="{}")])
    run(job_worker(target="elsewhere", env={"ELSEWHERE": str(tmp_path / "other.db")}))
    assert eventually(lambda: other.jobs.get(job).state == "done")
    other.close()


def test_the_address_of_the_queues_is_in_no_environment(run: Run, database: Path) -> None:
    system = run(job_worker(target="show_environment"))
    shown = ends(system, system.enqueue("tag", {})).result
    assert str(database) not in shown
    assert "REKINDLE_JOBS" in shown


def test_bad_input_is_refused_before_it_is_queued(run: Run, database: Path) -> None:
    system = run(job_worker())
    with pytest.raises(UnknownQueueError, match=r"serves the queue 'tga'; queues that are served: tag$"):
        system.enqueue("tga", {})
    for payload in (object(), float("nan"), {"set": {1}}, "x" * 2_000_000):
        with pytest.raises(PayloadError):
            system.enqueue("tag", payload)
    settings: list[dict[str, Any]] = [{"priority": 2**40}, {"max_retries": -1}, {"delay_s": float("inf")}]
    for setting in settings:
        with pytest.raises(PayloadError):
            system.enqueue("tag", {}, **setting)
    assert system.jobs.find() == ()


def test_another_program_enqueues_without_being_a_supervisor(run: Run, database: Path) -> None:
    system = run(job_worker())
    queue = open_queue(database)
    with pytest.raises(UnknownQueueError):
        queue.enqueue("tga", {})
    ends(system, queue.enqueue("tag", {"from": "outside"}))
    queue.close()


def test_a_job_is_not_blamed_for_a_signal_that_an_operator_sends_to_its_worker(
    run: Run, tmp_path: Path
) -> None:
    """Three of them made an innocent job toxic."""
    system = run(job_worker(jobs={"crash_retries": 0}))
    job = system.enqueue("tag", {"do": "wait for", "file": str(tmp_path / "go")})
    for attempt, signum in ((1, "SIGKILL"), (2, "SIGABRT")):
        pid_of(system, "worker:tag:0", job)
        assert system.status("worker:tag:0").generation == attempt
        system.signal("worker:tag:0", signum)
        later_generation(system, attempt)
    (tmp_path / "go").touch()
    done = ends(system, job)
    assert (done.attempts, done.crash_count) == (3, 0)
    assert system.jobs.crashes([job]) == ()
    assert [death.signal for death in system.deaths("worker:tag:0")] == [signal.SIGABRT, signal.SIGKILL]
