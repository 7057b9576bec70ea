"""Rules by exit code and signal on real processes."""

from __future__ import annotations

import os
import signal

from tests.processes.conftest import Rows, Run
from tests.processes.waiting import eventually

from rekindle.actors import Status, WorkerSpec
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.program import Command

W = "worker:w:0"
QUICK = {"initial_delay_s": 0.01, "max_delay_s": 0.01, "min_delay_s": 0.0}


def spec(script: str, **restart: object) -> WorkerSpec:
    ready = ReadyPolicy(output="^up$")
    return WorkerSpec.from_preset(W, Command(("sh", "-c", script)), restart={**QUICK, **restart}, ready=ready)


def test_an_uncounted_exit_restarts_at_once_and_the_stored_counter_stays(run: Run, rows: Rows) -> None:
    script = 'echo up; [ "$REKINDLE_GENERATION" -lt 3 ] && sleep 1.1 && exit 75; exec sleep 1000'
    system = run(spec(script, uncounted_exit_codes=(75,), max_in_window=1, max_lifetime=1))
    system.wait_until(W, lambda w: w.generation == 3 and w.status is Status.HEALTHY, timeout_s=20)
    assert system.status(W).restart_count == 0
    assert eventually(lambda: len(rows.deaths(W)) == 2)
    assert [row[2:] for row in rows.deaths(W)] == [(75, None, "restart_uncounted")] * 2
    assert rows.restart_count(W) in (None, 0)


def test_a_signal_from_outside_ends_a_worker_for_good_if_its_policy_says_so(run: Run) -> None:
    system = run(spec("echo up; exec sleep 1000", no_restart_signals=("SIGTERM",)))
    pid = system.wait_for(W, Status.HEALTHY, timeout_s=20).pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    system.wait_until(W, lambda w: w.shown == "crashed" and w.pid is None, timeout_s=20)
    assert "SIGTERM is in no_restart_signals" in system.explain(W)


def test_a_program_that_never_gets_ready_is_given_up_by_its_own_budget(run: Run) -> None:
    system = run(spec("exit 1", max_boot_failures=2, max_in_window=1))
    failed = system.wait_for(W, Status.FAILED, timeout_s=20)
    assert (failed.generation, failed.restart_count) == (3, 0)
    assert failed.failure_reason is not None
    assert failed.failure_reason.startswith("2 restarts in a row before it was ready (limit 2)")
    assert not system.bundles(W)[0].was_ready
