"""What a worker says: heartbeats, status, job, progress."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.worker.conftest import Start


def test_a_worker_is_pending_until_it_is_called_and_healthy_then(start: Start) -> None:
    worker = start("wait")
    assert next(worker.frames()) == {"status": "pending"}
    assert worker.frame(status="healthy") == {"status": "healthy"}


def test_a_job_of_thirty_intervals_goes_with_at_least_twentyfive_frames(start: Start) -> None:
    """PP-08, scaled down."""
    worker = start("hold_a_job_for_thirty_intervals", heartbeat_s=0.05)
    worker.frame(current_job=42)
    before = worker.received
    assert worker.frame(current_job=None)["status"] == "healthy"
    assert 25 <= worker.received - before <= 32


def test_a_job_appears_in_frames_and_a_frame_without_it_follows_its_end(start: Start) -> None:
    """PP-11."""
    worker = start("hold_a_job_for_thirty_intervals", heartbeat_s=0.01)
    assert "current_job" not in next(worker.frames())
    assert worker.frame(current_job=42) == {"status": "healthy", "current_job": 42}
    assert worker.frame(current_job=None) == {"status": "healthy"}


def test_a_change_is_sent_at_once_and_not_at_the_next_heartbeat(start: Start) -> None:
    worker = start("hold_a_job_for_thirty_intervals", heartbeat_s=1000)
    assert worker.frame(current_job=42) == {"status": "healthy", "current_job": 42}


def test_very_short_jobs_are_reported_now_and_then_and_the_last_one_soon(start: Start) -> None:
    """Each in a frame of its own they would be a flood, which ends a worker."""
    worker = start("hold_a_thousand_jobs", heartbeat_s=1000)
    assert worker.frame(current_job="the last") == {"status": "healthy", "current_job": "the last"}
    assert worker.received < 100


def test_a_job_that_raises_is_let_go_of(start: Start) -> None:
    worker = start("lose_a_job_by_an_exception")
    worker.frame(current_job="album-7")
    assert worker.frame(detail="survived") == {"status": "unhealthy", "detail": "survived"}


def test_the_end_of_a_job_does_not_clear_the_job_that_came_after_it(start: Start) -> None:
    assert start("take_the_next_job_inside_a_job").frame(detail="after the first")["current_job"] == 2


def test_progress_counts_by_itself_or_carries_a_mark_of_the_author(start: Start) -> None:
    worker = start("make_progress")
    assert worker.frame(progress=2)["status"] == "healthy"
    assert worker.frame(progress="chapter 3")["status"] == "healthy"


def test_a_recovery_asks_for_the_time_that_is_left_until_it_is_over(start: Start) -> None:
    worker = start("recover_by_hand")
    asked = [frame["recover_for_s"] for _ in range(3) for frame in [worker.frame(status="recovering")]]
    # Two that follow each other at once may ask for the same, to a millisecond.
    assert 20 >= asked[0] >= asked[1] >= asked[2] > 19
    assert asked[0] > asked[2]
    assert worker.frame(status="healthy") == {"status": "healthy"}


def test_a_recovery_block_ends_healthy(start: Start) -> None:
    worker = start("recover_in_a_block")
    assert worker.frame(current_job="repair")["status"] == "recovering"
    assert worker.frame(status="healthy")["current_job"] == "repair"


def test_a_recovery_that_raises_ends_unhealthy(start: Start) -> None:
    worker = start("fail_to_recover")
    worker.frame(status="recovering")
    assert worker.frame(status="unhealthy")["detail"] == "recovery failed: OSError('disk full')"


def test_a_recovery_that_outlasts_what_it_asked_for_becomes_unhealthy(start: Start) -> None:
    worker = start("recover_too_slowly")
    worker.frame(status="recovering")
    assert worker.frame(status="unhealthy")["detail"] == "not recovered in the time it asked for"


def test_a_slow_start_stays_pending_until_it_says_healthy(start: Start) -> None:
    worker = start("start_slowly")
    statuses = {frame["status"] for _ in range(3) for frame in [worker.frame(current_job="loading")]}
    assert statuses == {"pending"}
    worker.frame(status="healthy")


def test_a_full_buffer_drops_frames_and_never_blocks_the_job_or_spoils_a_line(start: Start) -> None:
    worker = start("flood")
    assert worker.exit_code() == 0
    jobs = []
    while (line := worker.line()) is not None:
        jobs.append(json.loads(line).get("current_job"))
    assert 10 < len(jobs) < 3000


def test_a_worker_knows_its_id_and_generation(start: Start) -> None:
    start("say_who_it_is").frame(current_job="worker:tag:0 #7")


def test_a_line_of_bash_is_a_worker_too(start: Start) -> None:
    hello = """printf '{"status":"healthy"}\\n' >&$REKINDLE_FD; read -r line <&$REKINDLE_FD; echo "$line" """
    worker = start(["bash", "-c", hello])
    assert worker.frame() == {"status": "healthy"}
    worker.say("stop")
    assert worker.exit_code() == 0
    assert worker.stdout() == '{"do": "stop"}\n'
