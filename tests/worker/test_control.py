"""What a worker receives: stop, pause, resume, SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.worker.conftest import Start


def test_a_stop_line_wakes_a_waiting_worker_which_ends_with_0(start: Start) -> None:
    worker = start("wait", heartbeat_s=1000)
    worker.frame(status="healthy")
    worker.say("stop")
    assert worker.exit_code() == 0


def test_a_stop_line_ends_the_loop_of_a_running_worker(start: Start) -> None:
    worker = start("loop_while_running")
    worker.frame(status="healthy")
    worker.say("stop")
    worker.frame(current_job="left the loop")
    assert worker.exit_code() == 0


def test_sigterm_means_stop(start: Start) -> None:
    worker = start("loop_while_running")
    worker.frame(status="healthy")
    worker.process.terminate()
    worker.frame(current_job="left the loop")
    assert worker.exit_code() == 0


def test_many_sigterms_neither_lock_a_worker_up_in_its_own_event_nor_spoil_its_exit(start: Start) -> None:
    """Signals that come while it waits, and signals that come while the interpreter shuts down."""
    worker = start("loop_while_running")
    worker.frame(status="healthy")
    for _ in range(200):
        worker.process.terminate()
    assert worker.exit_code() == 0


def test_a_paused_worker_beats_without_a_job_and_works_again_when_resumed(start: Start) -> None:
    worker = start("follow_pauses")
    worker.frame(current_job="work")
    worker.say("pause")
    assert [worker.frame(current_job=None)["status"] for _ in range(3)] == ["healthy"] * 3
    worker.say("resume")
    worker.frame(current_job="work")
    worker.say("stop")
    assert worker.exit_code() == 0


def test_a_paused_worker_can_be_stopped(start: Start) -> None:
    worker = start("follow_pauses")
    worker.frame(current_job="work")
    worker.say("pause")
    worker.frame(current_job=None)
    # At once: after the stop it may be gone before another message arrives.
    worker.channel.sendall(b'{"do": "stop"}\n{"do": "pause"}\n')
    assert worker.exit_code() == 0


@pytest.mark.parametrize(
    "line", [b'{"do": "dance"}', b'{"do": 3}', b"{}", b"[]", b"null", b"not json", b"\xff", b"[" * 100_000]
)
def test_a_line_that_a_worker_does_not_know_is_ignored(start: Start, line: bytes) -> None:
    worker = start("wait")
    worker.frame(status="healthy")
    worker.channel.sendall(line + b"\n")
    worker.say("stop")
    assert worker.exit_code() == 0


def test_a_stop_line_that_arrives_in_pieces_is_understood(start: Start) -> None:
    worker = start("wait")
    worker.frame(status="healthy")
    worker.channel.sendall(b'{"do": ')
    worker.frame(status="healthy")
    worker.channel.sendall(b'"stop"}\n')
    assert worker.exit_code() == 0
