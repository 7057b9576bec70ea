"""How a worker ends when its supervisor does, and what its children have to do with it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.worker.conftest import Peer, Start

Gone = Callable[[int], bool]

SPAWN_AND_WAIT = """
import os, subprocess, sys
env = dict(os.environ, REKINDLE_SUPERVISOR_PID=str(os.getpid()))
child = subprocess.Popen(sys.argv[1:], env=env, pass_fds=[int(env["REKINDLE_FD"])], start_new_session=True)
os.close(int(env["REKINDLE_FD"]))
child.wait()
"""


def test_a_broken_channel_harms_no_job_that_ends_in_its_grace(start: Start, tmp_path: Path) -> None:
    """PP-07."""
    worker = start("speak_without_supervisor_and_finish", FINISHED=str(tmp_path / "finished"))
    worker.frame(status="healthy")
    worker.channel.close()
    assert worker.exit_code() == 0
    assert worker.stderr() == ""
    assert (tmp_path / "finished").exists()


def test_a_worker_that_goes_on_is_killed_half_a_second_after_its_supervisor(start: Start, gone: Gone) -> None:
    """PP-07, F10: the group goes with it."""
    worker = start("ignore_the_stop")
    grandchild = _job(worker)
    began = time.monotonic()
    worker.channel.close()
    assert worker.exit_code() == -signal.SIGKILL
    assert 0.4 < time.monotonic() - began < 10
    assert gone(grandchild)


def test_unread_frames_do_not_hide_the_end_of_the_supervisor(start: Start, gone: Gone) -> None:
    worker = start("ignore_the_stop", heartbeat_s=0.005)
    grandchild = _job(worker)
    worker.process.send_signal(signal.SIGSTOP)
    worker.channel.sendall(b'{"do": "dance"}\n' * 10)
    worker.channel.close()
    worker.process.send_signal(signal.SIGCONT)
    assert worker.exit_code() == -signal.SIGKILL
    assert gone(grandchild)


def test_an_orphan_that_ends_in_time_still_ends_its_children(start: Start, gone: Gone) -> None:
    worker = start("stop_but_leave_a_child")
    grandchild = _job(worker)
    worker.channel.close()
    assert worker.exit_code() == 0
    assert gone(grandchild)


def test_an_orphan_that_leads_no_group_ends_itself_alone(start: Start) -> None:
    keep = [sys.executable, "-c", SPAWN_AND_WAIT.replace("start_new_session=True", "start_new_session=False")]
    worker = start([*keep, sys.executable, "-m", "rekindle.worker.run", "workers:ignore_the_stop"])
    grandchild = _job(worker)
    worker.channel.close()
    assert worker.exit_code() == 0
    os.kill(grandchild, signal.SIGKILL)


def test_a_worker_stops_when_its_parent_is_killed_although_the_channel_is_open(start: Start) -> None:
    """P4: the second way, PR_SET_PDEATHSIG."""
    runner = [sys.executable, "-m", "rekindle.worker.run", "workers:loop_while_running"]
    parent = start([sys.executable, "-c", SPAWN_AND_WAIT, *runner])
    parent.frame(status="healthy")
    parent.process.kill()
    parent.frame(current_job="left the loop")
    assert list(parent.frames()) == []


def test_a_worker_stops_when_the_thread_that_spawned_it_ends(start: Start) -> None:
    """P1: why a supervisor spawns from a thread that lives as long as itself."""
    workers: list[Peer] = []
    healthy, leave = threading.Event(), threading.Event()

    def spawn() -> None:
        workers.append(start("loop_while_running"))
        workers[0].frame(status="healthy")
        healthy.set()
        leave.wait()

    thread = threading.Thread(target=spawn)
    thread.start()
    assert healthy.wait(20)
    leave.set()
    thread.join()
    workers[0].frame(current_job="left the loop")
    assert workers[0].exit_code() == 0


def test_a_runner_whose_supervisor_went_before_it_started_calls_nothing(start: Start) -> None:
    """P2."""
    worker = start("takes_nothing", REKINDLE_SUPERVISOR_PID="1")
    assert worker.exit_code() == 3
    assert worker.stdout() == ""


def test_a_forked_child_says_nothing(start: Start) -> None:
    worker = start("fork_a_child_that_speaks", heartbeat_s=1000)
    jobs = [frame["current_job"] for frame in worker.frames() if "current_job" in frame]
    assert jobs == ["parent"]
    assert worker.exit_code() == 0


def test_a_forked_child_that_outlives_its_worker_does_not_hold_the_channel_open(start: Start) -> None:
    """T24, P5."""
    worker = start("fork_a_child_that_stays")
    child = _job(worker)
    worker.say("stop")
    assert worker.exit_code() == 0
    for _ in worker.frames():
        pass
    os.kill(child, signal.SIGKILL)


def test_a_forked_child_can_be_terminated(start: Start) -> None:
    """Else `terminate` of multiprocessing would only ask the child's copy of the worker to stop."""
    start("terminate_a_forked_child").frame(current_job=-signal.SIGTERM)


def test_a_program_that_a_worker_starts_inherits_no_channel(start: Start) -> None:
    """F9: stdio, and the descriptor that lists the directory."""
    start("show_what_a_child_inherits").frame(current_job="0 1 2 3 None")


def test_a_killed_worker_closes_the_channel_at_once(start: Start) -> None:
    """PP-09."""
    worker = start("wait", heartbeat_s=1000)
    worker.frame(status="healthy")
    worker.process.kill()
    began = time.monotonic()
    assert list(worker.frames()) == []
    assert time.monotonic() - began < 10.0


def test_the_end_of_one_worker_is_seen_although_another_lives(start: Start) -> None:
    """PP-10."""
    first, second = start("wait"), start("wait")
    first.frame(status="healthy")
    second.frame(status="healthy")
    first.process.kill()
    assert all(frame["status"] == "healthy" for frame in first.frames())
    assert second.process.poll() is None


def _job(worker: Peer) -> int:
    return int(next(frame["current_job"] for frame in worker.frames() if "current_job" in frame))
