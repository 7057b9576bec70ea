"""A worker that hangs tells where, before it is ended step by step."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import ATTENTIVE, PATIENT, QUICK, SHORT, python, shell
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Cause, Finding, Status, System, WorkerDied
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.messages import StopStepTaken

ONCE = replace(QUICK, enabled=False)
IMPATIENT = replace(PATIENT, heartbeat_interval_s=0.1, progress_timeout_s=1.0)


def ended_bundle(system: System, id_: str) -> Bundle:
    """The bundle, once it tells how the process ended."""
    assert eventually(lambda: any(found.signal is not None for found in system.bundles(id_)))
    return system.bundle(id_, 1)


def test_a_deadlock_is_reported_with_the_line_that_waits(run: Run) -> None:
    system = run(python("deadlock", health=IMPATIENT, stop=SHORT, restart=ONCE))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
        steps = [events.until(lambda event: isinstance(event, StopStepTaken), PATIENCE_S) for _ in range(3)]
    assert isinstance(died, WorkerDied)
    assert died.death.cause is Cause.NO_PROGRESS
    assert [getattr(step, "step", None) for step in steps] == ["stacks", "SIGTERM", "SIGKILL"]
    bundle = ended_bundle(system, "deadlock")
    assert (bundle.finding, bundle.signal) == (Finding.HUNG, signal.SIGKILL)
    assert "in deadlock" in bundle.last_words
    assert (bundle.job, bundle.progress) == ("deadlocked", "took the lock")
    assert "no progress of job 'deadlocked' since mark 'took the lock'" in bundle.sentence


def test_a_loop_that_holds_the_gil_is_silent_and_still_shows_its_stack(run: Run) -> None:
    system = run(python("hold_the_gil", health=ATTENTIVE, stop=SHORT, restart=ONCE))
    bundle = ended_bundle(system, "hold_the_gil")
    assert (bundle.finding, bundle.cause) == (Finding.HUNG, Cause.HEARTBEAT_LOST)
    assert "process running" in bundle.detail
    assert "in spin_in_c" in bundle.last_words


def test_a_worker_that_reports_a_problem_is_ended_for_it_and_not_told_as_silent(run: Run) -> None:
    system = run(python("report_a_full_disk", health=ATTENTIVE, stop=SHORT, restart=ONCE))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.death.cause is Cause.UNHEALTHY
    assert re.fullmatch(r"unhealthy \(for [\d.]+ s: disk nearly full\)", str(died.death))
    assert eventually(lambda: system.bundles("report_a_full_disk"))
    (bundle,) = system.bundles("report_a_full_disk")
    assert bundle.finding is Finding.UNHEALTHY
    assert bundle.sentence.startswith("unhealthy by its own report: for ")
    assert "disk nearly full" in bundle.sentence


def test_a_stopped_process_has_no_stack_to_show_and_is_reported_as_stopped(run: Run) -> None:
    system = run(python("wait", health=ATTENTIVE, stop=SHORT, restart=ONCE))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    bundle = ended_bundle(system, "wait")
    assert (bundle.finding, bundle.signal, bundle.last_words) == (Finding.HUNG, signal.SIGKILL, "")
    assert "process stopped" in bundle.sentence


def test_a_foreign_program_that_hangs_is_never_sent_a_signal_that_it_may_not_know(run: Run) -> None:
    """SIGTERM is the first that it gets: a real-time signal would have ended it."""
    beat = """trap 'echo terminated; exit 4' TERM; echo '{"status": "healthy"}' >&$REKINDLE_FD; """
    spec = shell("w", beat + "while :; do sleep 0.1; done", health=ATTENTIVE, stop=SHORT, restart=ONCE)
    from rekindle.actors import Command

    assert isinstance(spec.run, Command)
    system = run(replace(spec, run=replace(spec.run, reports_health=True)))
    assert eventually(lambda: any(found.exit_code == 4 for found in system.bundles("w")))
    bundle = system.bundle("w", 1)
    assert (bundle.finding, bundle.sent) == (Finding.HUNG, signal.SIGTERM)
    assert ("out", "terminated") in bundle.output


def test_a_worker_that_says_that_it_is_busy_is_left_alone(run: Run) -> None:
    system = run(python("be_busy_then_rest", health=IMPATIENT, restart=ONCE))
    system.wait_until("be_busy_then_rest", lambda w: w.current_job == "rested", PATIENCE_S)
    assert system.deaths("be_busy_then_rest") == ()


@pytest.mark.parametrize("seconds", [0, -1, 1e9, float("nan")])
def test_busy_for_zero_or_infinite_time_is_refused(seconds: float) -> None:
    from rekindle.worker import Worker

    with pytest.raises(ValueError, match="a worker can be busy for up to"):
        Worker().busy(for_s=seconds)
