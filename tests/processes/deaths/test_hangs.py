"""A worker lives and does not answer: it hangs, it never finishes its start, it ignores every signal."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import ATTENTIVE, LONG, QUICK, SHORT, python, shell, sleeper
from tests.processes.waiting import PATIENCE_S, Held, ended, eventually

from rekindle.actors import Cause, Status, System, WorkerDied, WorkerStatus


@pytest.mark.usefixtures("both_ways")
def test_f5_a_stopped_worker_is_taken_for_hung_killed_and_replaced(run: Run, rows: Rows) -> None:
    system = run(python("wait", health=ATTENTIVE, stop=SHORT))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with system.events() as events, Held([pid]) as held:
        os.kill(pid, signal.SIGSTOP)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
        assert isinstance(died, WorkerDied)
        assert died.death.cause is Cause.HEARTBEAT_LOST
        assert "process stopped" in str(died.death)
        assert held.all_end()
    system.wait_until("wait", lambda w: w.generation == 2 and w.status is Status.HEALTHY, PATIENCE_S)
    # A stopped process does not get SIGTERM: it took SIGKILL, which is written down afterwards.
    assert eventually(lambda: rows.deaths("wait") == [(1, "heartbeat_lost", None, 9, "restart")])


@pytest.mark.usefixtures("both_ways")
def test_f5_a_stopped_command_that_reports_nothing_is_left_alone(run: Run) -> None:
    system = run(sleeper(stop=SHORT), python("wait"))
    pid = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert system.status("sleeper").pid == pid


@pytest.mark.parametrize(
    "spec",
    [
        python("ignore_everything", "w", stop=SHORT),
        shell("w", "trap '' TERM; echo deaf; while :; do sleep 1000; done", stop=SHORT),
    ],
    ids=["python", "command"],
)
def test_f6_sd_05_who_ignores_sigterm_is_killed_after_its_grace(run: Run, spec: object) -> None:
    system = run(spec)  # type: ignore[arg-type]
    deaf = ("deaf",)
    assert eventually(lambda: system.status("w").current_job == "deaf" or system.output("w") == deaf)
    began = time.monotonic()
    result = system.stop_worker("w")
    took = time.monotonic() - began
    assert result.killed
    assert result.exit is not None
    assert result.exit.signal == signal.SIGKILL
    assert took >= SHORT.ask_s
    assert took < PATIENCE_S
    assert system.status("w").shown == "stopped"


@pytest.mark.usefixtures("both_ways")
def test_sd_05_a_worker_that_ignores_the_request_gets_sigterm(run: Run) -> None:
    system = run(python("listen_to_sigterm_only", stop=replace(LONG, ask_s=0.3)))
    id_ = "listen_to_sigterm_only"
    system.wait_until(id_, lambda w: w.current_job == "deaf", PATIENCE_S)
    result = system.stop_worker(id_)
    assert (result.forced, result.killed) == (signal.SIGTERM, False)
    assert result.exit is not None
    assert result.exit.signal == signal.SIGTERM


@pytest.mark.usefixtures("both_ways")
def test_f18_status_and_stop_answer_at_once_while_a_worker_starts(run: Run) -> None:
    system = run(python("never_ready"))
    worker = system.wait_until("never_ready", lambda w: w.pid is not None, PATIENCE_S)
    assert (worker.shown, worker.status) == ("starting", Status.PENDING)
    result = system.stop_worker("never_ready")
    assert result.gone


@pytest.mark.usefixtures("both_ways")
def test_f18_a_start_that_takes_too_long_is_ended_and_counted(run: Run, rows: Rows) -> None:
    impatient = replace(ATTENTIVE, startup_timeout_s=0.5)
    system = run(python("never_ready", health=impatient, stop=SHORT))
    first = system.wait_until("never_ready", lambda w: w.pid is not None, PATIENCE_S).pid
    assert first is not None
    system.wait_until("never_ready", lambda w: w.generation == 2, PATIENCE_S)
    assert ended(first)
    assert rows.deaths("never_ready")[0][1] == "startup_timeout"


@pytest.mark.usefixtures("both_ways")
def test_a_start_that_was_stopped_makes_room_for_the_next_one(run: Run) -> None:
    """It held its place among the concurrent starts without end, and no other worker was started."""
    system = run(python("never_ready"), sleeper(), max_concurrent_starts=1)
    system.wait_until("never_ready", lambda w: w.pid is not None, PATIENCE_S)
    assert system.status("sleeper").pid is None
    system.stop_worker("never_ready")
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)


def healthy(system: System, generation: int) -> WorkerStatus:
    """The worker in this life or a later one, once it is healthy."""
    return system.wait_until(
        "w", lambda w: w.status is Status.HEALTHY and w.generation >= generation, PATIENCE_S
    )


@pytest.mark.usefixtures("both_ways")
def test_sc_11_a_hung_worker_is_gone_before_its_successor_starts(run: Run, tmp_path: Path) -> None:
    env = {"LOCK": str(tmp_path / "lock"), "OVERLAP": str(tmp_path / "overlap")}
    deaf = python("hold_the_lock_and_ignore_sigterm", "w", health=ATTENTIVE, stop=SHORT, env=env)
    system = run(deaf)
    for generation in (1, 2, 3):
        pid = healthy(system, generation).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
    healthy(system, 4)
    assert not (tmp_path / "overlap").exists()


@pytest.mark.usefixtures("both_ways")
def test_sc_11_restarts_by_hand_at_every_moment_never_make_two(run: Run, tmp_path: Path) -> None:
    env = {"LOCK": str(tmp_path / "lock"), "OVERLAP": str(tmp_path / "overlap")}
    system = run(python("hold_the_lock", "w", env=env, restart=replace(QUICK, initial_delay_s=0.0)))
    for _ in range(10):
        system.restart("w")
        pid = system.status("w").pid
        if pid is not None and not ended(pid):
            os.kill(pid, signal.SIGKILL)
        system.restart("w")
    system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert not (tmp_path / "overlap").exists()
