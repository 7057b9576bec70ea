"""A worker that dies again and again: when it is given up, and how durable that is."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import ATTENTIVE, python, shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually, later_news

from rekindle.actors import (
    EventStream,
    RequestRefusedError,
    RestartPolicy,
    Status,
    System,
    WorkerDied,
    WorkerFailed,
    WorkerSpec,
    WorkerStarted,
    WorkerStatus,
    command,
)
from rekindle.actors.runtime.thread_runtime import RealClock

STEADY = RestartPolicy(initial_delay_s=0.02, min_delay_s=0.02, max_delay_s=1.2)
"""The preset `steady`, fifty times as fast."""

YEAR_MS = 365 * 24 * 3600 * 1000


def test_f14_a_crash_loop_ends_exactly_at_the_death_that_the_policy_names(run: Run, rows: Rows) -> None:
    """RD-09: five restarts, the sixth death is final."""
    system = run(shell("w", "sleep 0.1; exit 1", restart=STEADY))
    with system.events() as events:
        seen = until_failed(events)
        assert [event for event in events.within(1.5) if isinstance(event, WorkerStarted)] == []
    deaths = [event for event in seen if isinstance(event, WorkerDied)]
    assert [round(died.delay_s, 3) for died in deaths] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.0]
    assert [died.action for died in deaths] == ["restart"] * 5 + ["mark_failed"]
    assert len([event for event in seen if isinstance(event, WorkerStarted) and event.generation > 1]) == 5
    assert [row[-1] for row in rows.deaths("w")] == ["restart"] * 5 + ["mark_failed"]
    [(failed_at, reason)] = rows(
        "SELECT failed_at_wall_ms, failure_reason FROM rekindle_worker_restart_policy"
    )
    assert failed_at is not None
    assert "5 restarts in 5 minutes" in str(reason)


def until_failed(events: EventStream) -> list[object]:
    """All events up to the one that gives the worker up."""
    seen: list[object] = []
    while not seen or not isinstance(seen[-1], WorkerFailed):
        seen.append(events.next(PATIENCE_S))
    return seen


def test_ps_10_a_failed_worker_stays_failed_in_the_next_run_until_it_is_reset(run: Run, rows: Rows) -> None:
    crash = shell("w", "exit 1", restart=replace(STEADY, max_in_window=2))
    first = run(crash, sleeper())
    first.wait_for("w", Status.FAILED, timeout_s=PATIENCE_S)
    first.stop()
    assert len(rows.deaths("w")) == 3

    second = run(shell("w", "exec sleep 1000", restart=STEADY), sleeper())
    second.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    failed = second.status("w")
    assert (failed.shown, failed.pid, failed.restart_count) == ("failed", None, 2)
    assert "2 restarts in 5 minutes" in (failed.failure_reason or "")
    with pytest.raises(RequestRefusedError, match="starting it does not lift that: restart clears that"):
        second.start_worker("w")
    second.reset("w")
    assert (second.status("w").pid, second.status("w").restart_count) == (None, 0)
    second.start_worker("w")
    revived = second.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert revived.generation == 4
    assert eventually(lambda: rows.restart_count("w") == 0)


def life(system: System, generation: int) -> WorkerStatus:
    """The sleeper in this life, once it has a process."""
    return system.wait_until(
        "sleeper", lambda w: w.generation == generation and w.pid is not None, PATIENCE_S
    )


def test_ps_08_the_next_run_goes_on_where_the_last_one_stopped(run: Run) -> None:
    policy = RestartPolicy(initial_delay_s=0.05, min_delay_s=0.0, max_delay_s=60.0)
    first = run(sleeper(restart=policy))
    for generation in (1, 2, 3):
        pid = life(first, generation).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    life(first, 4)
    first.stop()
    second = run(sleeper(restart=policy))
    pid = second.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    with second.events() as events:
        os.kill(pid, signal.SIGKILL)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert (died.delay_s, died.restart_count) == (0.4, 4)


def test_rd_19_the_plugin_preset_restarts_at_once_at_first(run: Run) -> None:
    system = run(WorkerSpec.from_preset("w", command("sleep", "1000"), "plugin"))
    pid = system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert system.wait_until("w", lambda w: w.generation == 2, PATIENCE_S).restart_count == 1


class JumpingClock(RealClock):
    """The real clocks, with a wall clock that a test sets."""

    offset_ms = 0

    def wall_ms(self) -> int:
        """The wall clock as it was set."""
        return super().wall_ms() + self.offset_ms


@pytest.mark.parametrize("jump_ms", [YEAR_MS, -YEAR_MS], ids=["forward", "back"])
def test_f16_a_wall_clock_that_jumps_a_year_changes_nothing(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    monkeypatch.setattr("rekindle.actors.runtime.thread_runtime.RealClock", JumpingClock)
    monkeypatch.setattr(JumpingClock, "offset_ms", 0)
    system = run(python("wait", health=ATTENTIVE, restart=replace(STEADY, initial_delay_s=0.3)))
    before = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    with system.events() as events:
        monkeypatch.setattr(JumpingClock, "offset_ms", jump_ms)
        assert later_news(events, 1.5) == []
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
        assert isinstance(died, WorkerDied)
        assert died.delay_s == 0.3
        events.until(lambda event: isinstance(event, WorkerStarted), PATIENCE_S)
    [(stamp,)] = rows("SELECT died_at_wall_ms FROM rekindle_death")
    assert isinstance(stamp, int)
    assert abs(stamp - RealClock().wall_ms() - jump_ms) < 60_000


@pytest.mark.parametrize("jump_ms", [YEAR_MS, -YEAR_MS], ids=["forward", "back"])
def test_f16_a_wall_clock_that_jumped_between_two_runs_delays_no_worker(
    run: Run, monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    monkeypatch.setattr("rekindle.actors.runtime.thread_runtime.RealClock", JumpingClock)
    monkeypatch.setattr(JumpingClock, "offset_ms", 0)
    policy = replace(STEADY, max_delay_s=0.5)
    first = run(sleeper(restart=policy))
    pid = first.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    first.wait_until("sleeper", lambda w: w.restart_count == 1, PATIENCE_S)
    first.stop()
    monkeypatch.setattr(JumpingClock, "offset_ms", jump_ms)
    second = run(sleeper(restart=policy))
    assert eventually(lambda: second.status("sleeper").pid is not None)
