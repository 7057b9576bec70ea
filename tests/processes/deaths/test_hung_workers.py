"""A worker that hangs tells where, before it is ended step by step."""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import ATTENTIVE, PATIENT, QUICK, SHORT, python, shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    AlivePolicy,
    Cause,
    Finding,
    ReadyPolicy,
    Status,
    System,
    WorkerDied,
    command,
)
from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.messages import StopStepTaken
from rekindle.actors.spec.probe import CommandProbe

ONCE = replace(QUICK, enabled=False)
IMPATIENT = replace(PATIENT, heartbeat_interval_s=0.1, progress_timeout_s=1.0)


def ended_bundle(system: System, id_: str) -> Bundle:
    """The bundle, once it tells how the process ended."""
    assert eventually(lambda: any(found.signal is not None for found in system.bundles(id_)))
    return system.bundle(id_, 1)


@pytest.mark.usefixtures("both_ways")
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


@pytest.mark.usefixtures("both_ways")
def test_a_loop_that_holds_the_gil_is_silent_and_still_shows_its_stack(run: Run) -> None:
    system = run(python("hold_the_gil", health=ATTENTIVE, stop=SHORT, restart=ONCE))
    bundle = ended_bundle(system, "hold_the_gil")
    assert (bundle.finding, bundle.cause) == (Finding.HUNG, Cause.HEARTBEAT_LOST)
    assert "process running" in bundle.detail
    assert "in spin_in_c" in bundle.last_words


@pytest.mark.usefixtures("both_ways")
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


@pytest.mark.usefixtures("both_ways")
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


@pytest.mark.usefixtures("both_ways")
def test_a_worker_that_says_that_it_is_busy_is_left_alone(run: Run) -> None:
    system = run(python("be_busy_then_rest", health=IMPATIENT, restart=ONCE))
    system.wait_until("be_busy_then_rest", lambda w: w.current_job == "rested", PATIENCE_S)
    assert system.deaths("be_busy_then_rest") == ()


@pytest.mark.parametrize("seconds", [0, -1, 1e9, float("nan")])
def test_busy_for_zero_or_infinite_time_is_refused(seconds: float) -> None:
    from rekindle.worker import Worker

    with pytest.raises(ValueError, match="a worker can be busy for up to"):
        Worker().busy(for_s=seconds)


HANGS = """
import threading, time, sys
print(sys.modules["sitecustomize"].__file__, sys.path, flush=True)
def waits_for_ever():
    threading.Event().wait()
waits_for_ever()
"""


def test_a_plain_python_program_shows_its_stacks_before_it_is_ended(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the one of the program', flush=True)")
    spec = worker(
        "plain",
        command(sys.executable, "-c", HANGS, stacks=True),
        env={"PYTHONPATH": str(tmp_path)},
        ready=ReadyPolicy(after_s=0),
        alive=AlivePolicy(command=CommandProbe(("false",)), every_s=0.5, failures=3),
        stop=SHORT,
        restart=ONCE,
    )
    system = run(spec)
    assert eventually(lambda: len(system.output("plain")) == 2)
    assert system.output("plain")[0] == "the one of the program"
    assert str(tmp_path / "sitecustomize.py") in system.output("plain")[1]
    assert "stacks" not in system.output("plain")[1]
    bundle = ended_bundle(system, "plain")
    assert bundle.cause is Cause.PROBE_FAILED
    assert "in waits_for_ever" in bundle.last_words


LOOP = "trap 'echo asked' TERM; while :; do sleep 0.05; done"
BECOMES = f"import os; os.execvp('bash', ['bash', '-c', {LOOP!r}])"


@pytest.mark.parametrize("argv", [("bash", "-c", LOOP), (sys.executable, "-c", BECOMES)])
def test_a_program_that_is_not_python_never_gets_the_signal_for_stacks(
    run: Run, argv: tuple[str, ...]
) -> None:
    spec = worker(
        "shell",
        command(*argv, stacks=True),
        ready=ReadyPolicy(after_s=0),
        alive=AlivePolicy(command=CommandProbe(("false",)), every_s=0.5, failures=3),
        stop=SHORT,
        restart=ONCE,
    )
    system = run(spec)
    bundle = ended_bundle(system, "shell")
    assert (bundle.signal, bundle.last_words) == (signal.SIGKILL, "")
    assert "asked" in [text for _, text in bundle.output]
