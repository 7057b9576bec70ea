"""Pausing, and what a worker says of its job."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import ATTENTIVE, python, sleeper
from tests.processes.waiting import PATIENCE_S, eventually, later_news

from rekindle.actors import PauseMode, Status, WorkerDied
from rekindle.actors.rules.worker_health.observed_worker import ObservedWorker


def mirrored_job(rows: Rows, id_: str) -> object:
    """The worker's job as people read it in the database."""
    found = rows("SELECT current_job FROM rekindle_health WHERE component_id = ?", id_)
    return found[0][0] if found else "no row"


@pytest.mark.usefixtures("both_ways")
def test_the_last_heartbeat_is_shown_and_mirrored_while_nothing_else_happens(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ObservedWorker.is_mirror_old, "__defaults__", (0.5,))

    def mirrored() -> int:
        ((at,),) = rows("SELECT last_heartbeat_wall_ms FROM rekindle_health") or [(0,)]
        return at if isinstance(at, int) else 0

    system = run(python("wait", health=ATTENTIVE))
    began = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(mirrored)
    first = mirrored()
    assert eventually(lambda: mirrored() >= first + 1000), "it moves, though nothing but heartbeats comes"
    now = system.status("wait")
    assert now.heartbeat_age_s is not None
    assert now.heartbeat_age_s < PATIENCE_S
    assert now.generation == began.generation
    assert system.is_healthy("wait", max_age_s=PATIENCE_S)
    assert not system.is_healthy("wait", max_age_s=0.0)


def test_a_program_without_heartbeats_has_no_last_one(run: Run) -> None:
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert system.status("sleeper").heartbeat_age_s is None


@pytest.mark.usefixtures("both_ways")
def test_pp_11_a_job_is_shown_mirrored_and_cleared(run: Run, rows: Rows, tmp_path: Path) -> None:
    let_go = tmp_path / "let_go"
    system = run(python("work_on_42_until_let_go", "w", env={"LET_GO": str(let_go)}))
    system.wait_until("w", lambda w: w.current_job == 42, PATIENCE_S)
    assert eventually(lambda: mirrored_job(rows, "w") == "42")
    let_go.touch()
    system.wait_until("w", lambda w: w.current_job is None, PATIENCE_S)
    assert eventually(lambda: mirrored_job(rows, "w") is None)


@pytest.mark.usefixtures("both_ways")
def test_pp_11_the_job_of_a_dead_worker_stands_in_its_death(run: Run, rows: Rows, tmp_path: Path) -> None:
    system = run(python("work_on_42_until_let_go", "w", env={"LET_GO": str(tmp_path / "never")}))
    pid = system.wait_until("w", lambda w: w.current_job == 42, PATIENCE_S).pid
    assert pid is not None
    with system.events() as events:
        os.kill(pid, signal.SIGKILL)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.death.job == 42
    assert eventually(lambda: rows("SELECT job FROM rekindle_death") == [("42",)])


@pytest.mark.usefixtures("both_ways")
def test_sd_12_an_idle_pause_keeps_the_process_healthy_and_without_a_job(run: Run) -> None:
    system = run(python("follow_pauses", "w", pause_mode=PauseMode.IDLE, health=ATTENTIVE))
    before = system.wait_until("w", lambda w: w.current_job == 1, PATIENCE_S)
    system.pause()
    system.wait_until("w", lambda w: w.current_job is None, PATIENCE_S)
    with system.events() as events:
        # Longer than its staleness: it stays healthy because its frames arrive, not by luck.
        assert later_news(events, 3 * (ATTENTIVE.staleness_s or 0)) == []
    paused = system.status("w")
    assert (paused.pid, paused.status, paused.current_job) == (before.pid, Status.HEALTHY, None)
    assert paused.paused
    system.resume()
    after = system.wait_until("w", lambda w: w.current_job == 2, PATIENCE_S)
    assert (after.pid, after.paused) == (before.pid, False)


@pytest.mark.usefixtures("both_ways")
def test_sd_11_sd_16_a_pause_ends_the_processes_and_a_resume_starts_them_at_once(
    run: Run, rows: Rows
) -> None:
    system = run(python("wait"), sleeper())
    for id_ in ("wait", "sleeper"):
        system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    system.pause()
    for id_ in ("wait", "sleeper"):
        system.wait_until(id_, lambda w: w.shown == "stopped", PATIENCE_S)
    assert eventually(lambda: ("worker_enabled", "false") in rows("SELECT key, value FROM rekindle_meta"))
    system.resume()
    for id_ in ("wait", "sleeper"):
        assert system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).restart_count == 0


def test_sd_10_a_pause_survives_a_restart_of_the_application(run: Run) -> None:
    first = run(sleeper())
    first.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    first.pause()
    first.stop()
    second = run(sleeper())
    assert second.report().paused
    assert second.status("sleeper").pid is None
    second.resume()
    second.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
