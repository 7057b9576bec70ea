"""Every check of the nemesis is silent on a sound run, and finds a violation that is planted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from scripts.nemesis.aftermath import tracebacks
from scripts.nemesis.checks import CHECKS, name_of, violations
from scripts.nemesis.evidence import (
    Cancelled,
    CrashRow,
    DeathRow,
    Enqueued,
    EventRow,
    Evidence,
    Execution,
    JobRow,
    Life,
    Outage,
    Signal,
    SupervisorRun,
)
from scripts.nemesis.fleet.witness import FOLDER
from scripts.nemesis.plan import drawn
from scripts.nemesis.processes import left_over
from scripts.nemesis.truth import executions_of, lives_of, noted

WORKER = "worker:clerk:0"
EPOCH_MS = 1_000_000


def life(generation: int, began: float, last: float, **more: Any) -> Life:
    fields: dict[str, Any] = {"worker": WORKER, "pid": 100 + generation, "supervisor": 10, **more}
    return Life(
        generation=generation,
        began=began,
        began_wall_ms=EPOCH_MS + round(began * 1000),
        last=last,
        last_wall_ms=EPOCH_MS + round(last * 1000),
        **fields,
    )


def death(generation: int, at: float, **more: Any) -> DeathRow:
    fields: dict[str, Any] = {
        "cause": "signalled",
        "exit_code": None,
        "signal": 9,
        "action": "restart",
        **more,
    }
    return DeathRow(
        worker=WORKER, generation=generation, died_at_wall_ms=EPOCH_MS + round(at * 1000), **fields
    )


def event(number: int, type_: str, generation: int | None = None, **more: Any) -> EventRow:
    return EventRow(id=number, type=type_, worker=WORKER, generation=generation, **more)


SOUND = Evidence(
    lives=(life(1, 0.0, 4.0), life(2, 5.0, 9.0, exit=3, ended=9.0), life(3, 10.0, 20.0, asked=True)),
    executions=(
        Execution(
            job=1, attempt=1, worker=WORKER, generation=1, pid=101, began=3.0, saved="1:0", unsure=("1:1",)
        ),
        Execution(
            job=1,
            attempt=2,
            worker=WORKER,
            generation=2,
            pid=102,
            began=5.0,
            done=6.0,
            how="done",
            resumed="1:1",
        ),
    ),
    signals=(Signal(at=4.0, worker=WORKER, generation=1, pid=101, number=SIGKILL),),
    supervisors=(SupervisorRun(pid=10, began=0.0, ended=21.0, end="stopped", code=0, stop_ordered=20.0),),
    enqueued=(Enqueued(key="job-1", do="work", id=1), Enqueued(key="job-2", do="work", id=None)),
    deaths=(death(1, 4.1), death(2, 9.1, cause="exited", exit_code=3, signal=None)),
    events=(
        event(1, "worker_started", 1),
        event(2, "worker_died", 1, action="restart", restart_count=1),
        event(3, "worker_started", 2),
        event(4, "worker_died", 2, action="restart", restart_count=2),
        event(5, "worker_started", 3),
        event(6, "worker_stopped", 3),
    ),
    counters={WORKER: 2},
    jobs=(JobRow(id=1, key="job-1", do="work", state="done", attempts=2, crash_count=0),),
    crashes=(CrashRow(job=1, worker=WORKER, generation=1, cause="killed by SIGKILL"),),
)

DAMAGE: dict[str, Callable[[], Evidence]] = {
    "a generation is used once": lambda: replace(SOUND, lives=(*SOUND.lives, life(1, 30.0, 31.0, pid=9))),
    "generations never go back": lambda: replace(SOUND, lives=(*SOUND.lives, life(2, 30.0, 31.0, pid=9))),
    "lives never overlap": lambda: replace(
        SOUND, lives=(*SOUND.lives, life(4, 19.0, 30.0, holder="pid 103"))
    ),
    "generations grow in the events": lambda: replace(
        SOUND, events=(*SOUND.events, event(7, "worker_started", 3))
    ),
    "no death is lost": lambda: replace(SOUND, deaths=SOUND.deaths[1:]),
    "every life has an end": lambda: replace(SOUND, events=SOUND.events[:-1]),
    "no death is invented": lambda: replace(SOUND, deaths=(*SOUND.deaths, death(7, 12.0))),
    "every death is recorded once": lambda: replace(
        SOUND, events=(*SOUND.events, event(7, "worker_died", 2))
    ),
    "every death has its cause": lambda: replace(
        SOUND, deaths=(SOUND.deaths[0], death(2, 9.1, cause="exited", exit_code=4, signal=None))
    ),
    "every death has an event": lambda: replace(
        SOUND, deaths=(*SOUND.deaths, death(3, 20.1)), events=SOUND.events
    ),
    "counters equal the history": lambda: replace(SOUND, counters={WORKER: 1}),
    "events have no gap": lambda: replace(SOUND, events=(*SOUND.events, event(9, "worker_reset"))),
    "no job is lost": lambda: replace(SOUND, jobs=()),
    "no job is enqueued twice": lambda: replace(SOUND, jobs=(*SOUND.jobs, replace(SOUND.jobs[0], id=2))),
    "every job ends": lambda: replace(SOUND, jobs=(replace(SOUND.jobs[0], state="running"),)),
    "executions follow each other": lambda: replace(
        SOUND, executions=(replace(SOUND.executions[0], done=5.6), SOUND.executions[1])
    ),
    "cancelled jobs end as cancelled": lambda: replace(
        SOUND, cancelled=(Cancelled(id=1, state="running", at=5.5),)
    ),
    "jobs begin after the jobs before them": lambda: replace(
        SOUND, enqueued=(Enqueued(key="job-1", do="work", id=1, after=[7]),)
    ),
    "batches end once with their counts": lambda: replace(
        SOUND, enqueued=(Enqueued(key="job-1", do="work", id=1, ends=3),)
    ),
    "expired jobs never begin": lambda: replace(
        SOUND, jobs=(replace(SOUND.jobs[0], state="expired"),), executions=SOUND.executions
    ),
    "limits of queues hold": lambda: replace(
        SOUND,
        jobs=tuple(replace(SOUND.jobs[0], id=n, queue="limited", limit_key="a") for n in (1, 2)),
        executions=tuple(replace(SOUND.executions[1], job=n, last=6.0) for n in (1, 2)),
    ),
    "executions continue from the last checkpoint": lambda: replace(
        SOUND, executions=(SOUND.executions[0], replace(SOUND.executions[1], resumed=None))
    ),
    "a job is blamed for recorded deaths": lambda: replace(SOUND, crashes=SOUND.crashes * 2),
    "killed supervisors convict no job": lambda: replace(
        SOUND,
        deaths=(death(1, 4.1, cause="supervisor_lost", signal=None), SOUND.deaths[1]),
    ),
    "no process is left": lambda: replace(SOUND, lives=(*SOUND.lives[:2], life(3, 10.0, 90.0))),
    "every worker returns": lambda: replace(SOUND, unreached=("worker:clerk:0 is crashed",)),
    "no supervisor ends by itself": lambda: replace(
        SOUND, supervisors=(replace(SOUND.supervisors[0], end="itself", code=1),)
    ),
    "clean stops end with 0": lambda: replace(SOUND, supervisors=(replace(SOUND.supervisors[0], code=1),)),
    "the log has no traceback": lambda: replace(SOUND, tracebacks=("Traceback (most recent call last):",)),
}


def broken(evidence: Evidence) -> set[str]:
    return {violation.check for violation in violations(evidence)}


def test_a_sound_run_breaks_no_promise() -> None:
    assert violations(SOUND) == ()


@pytest.mark.parametrize("check", [name_of(check) for check in CHECKS])
def test_each_check_finds_a_violation_that_is_planted(check: str) -> None:
    assert check in broken(DAMAGE[check]())


def test_a_process_that_still_writes_overlaps_the_next_one_without_any_lock() -> None:
    late = replace(SOUND, lives=(life(1, 0.0, 5.5), *SOUND.lives[1:]))
    assert "lives never overlap" in broken(late)


def test_an_execution_overlaps_another_one_that_holds_the_lock_of_the_job() -> None:
    begun = replace(SOUND.executions[1], holder="generation 1, pid 101")
    assert "executions follow each other" in broken(replace(SOUND, executions=(begun,)))


LOSSES = {"no death is lost", "every life has an end", "every death has its cause"}


def with_a_lost_death(ended: float, **more: Any) -> Evidence:
    """A process that lives from 0 to 10 and is killed, and its supervisor, which is killed later."""
    killed = SupervisorRun(pid=10, began=0.0, ended=ended, end="killed", code=-9)
    signal = Signal(at=10.0, worker=WORKER, generation=1, pid=101, number=SIGKILL)
    return Evidence(lives=(life(1, 0.0, 10.0),), signals=(signal,), supervisors=(killed,), **more)


def test_a_death_in_the_last_moment_of_a_supervisor_may_be_stored_without_its_cause() -> None:
    lost = death(1, 10.0, cause="supervisor_lost", signal=None)
    assert broken(with_a_lost_death(10.5)) & LOSSES == {"every life has an end"}
    assert broken(with_a_lost_death(10.5, deaths=(lost,))) & LOSSES == set()
    assert broken(with_a_lost_death(15.0, deaths=(lost,))) & LOSSES == {"every death has its cause"}


def test_a_supervisor_without_a_database_or_without_the_processor_had_no_time_to_store() -> None:
    away = (Outage(kind="locked", began=9.0, ended=16.0),)
    assert broken(with_a_lost_death(16.0)) & LOSSES == {"no death is lost", "every life has an end"}
    assert broken(with_a_lost_death(16.0, outages=away)) & LOSSES == {"every life has an end"}
    assert broken(with_a_lost_death(16.0, stalls=away)) & LOSSES == {"every life has an end"}


def test_an_orderly_stop_has_time_to_store_deaths_also_while_the_database_is_away() -> None:
    stopped = replace(SOUND, deaths=SOUND.deaths[1:], outages=(Outage(kind="locked", began=3.0, ended=21.0),))
    assert "no death is lost" in broken(stopped)


def test_a_process_that_writes_after_its_recorded_death_was_not_dead() -> None:
    early = replace(
        SOUND, deaths=(SOUND.deaths[0], replace(SOUND.deaths[1], died_at_wall_ms=EPOCH_MS + 6000))
    )
    assert "no death is invented" in broken(early)


def test_a_job_that_ended_with_a_killed_supervisor_is_not_blamed() -> None:
    killed = SupervisorRun(pid=10, began=0.0, ended=4.0, end="killed", code=-9)
    run = replace(SOUND, signals=(), supervisors=(killed,), deaths=SOUND.deaths[1:])
    assert "killed supervisors convict no job" in broken(run)


def test_a_count_that_an_event_tells_wrongly_is_found() -> None:
    events = (*SOUND.events[:3], replace(SOUND.events[3], restart_count=5), *SOUND.events[4:])
    assert "counters equal the history" in broken(replace(SOUND, events=events))


def test_a_reset_clears_the_count() -> None:
    reset = replace(SOUND, events=(*SOUND.events, event(7, "worker_reset")), counters={WORKER: 0})
    assert broken(reset) == set()


def test_a_death_that_is_told_late_counts_unless_the_worker_was_reset_after_it() -> None:
    late = event(8, "worker_died", 4, at_wall_ms=50, action="restart", restart_count=9)
    since = event(7, "store_recovered", at_wall_ms=100)
    reset = replace(since, type="worker_reset")
    deaths = (*SOUND.deaths, death(4, 20.6))
    lives = (*SOUND.lives, life(4, 20.1, 20.5))
    run = replace(SOUND, deaths=deaths, lives=lives)
    assert broken(replace(run, events=(*SOUND.events, since, late), counters={WORKER: 3})) == set()
    assert broken(replace(run, events=(*SOUND.events, reset, late), counters={WORKER: 0})) == set()


def test_events_that_are_told_as_lost_leave_no_gap() -> None:
    lost = event(9, "events_lost", first_lost=7, last_lost=8)
    assert broken(replace(SOUND, events=(*SOUND.events, lost))) == set()


def test_a_database_that_is_away_excuses_a_start_that_fails_and_a_stop_that_says_so() -> None:
    away = (Outage(kind="locked", began=0.0, ended=21.0),)
    for changed in ({"end": "itself", "code": 1}, {"code": 1}):
        run = replace(SOUND.supervisors[0], **changed)
        assert broken(replace(SOUND, supervisors=(run,), outages=away)) == set()


def test_a_supervisor_that_is_stopped_before_it_starts_a_worker_may_end_by_the_signal() -> None:
    run = SupervisorRun(pid=11, began=30.0, ended=30.1, end="stopped", code=-15, stop_ordered=30.1)
    early = replace(SOUND, supervisors=(*SOUND.supervisors, run))
    assert broken(early) == set()
    late = replace(early, lives=(*SOUND.lives, life(4, 30.0, 30.1, supervisor=11)))
    assert "clean stops end with 0" in broken(late)


def test_the_notes_of_a_worker_become_its_life_and_its_executions() -> None:
    common = {"worker": WORKER, "generation": 2, "pid": 7}
    written = [
        {"what": "start", "at": 1.0, "wall_ms": 1000, "supervisor": 10, "holder": "", **common},
        {"what": "begin", "at": 2.0, "wall_ms": 2000, "job": 5, "attempt": 1, "holder": "", **common},
        {"what": "done", "at": 3.0, "wall_ms": 3000, "job": 5, "attempt": 1, "how": "done", **common},
        {"what": "end", "at": 4.0, "wall_ms": 4000, "exit": 3, **common},
    ]
    notes = noted([*map(json.dumps, written), '{"what": "cut o'])
    (lived,), (executed,) = lives_of(notes), executions_of(notes)
    assert (lived.began, lived.last, lived.exit, lived.ended) == (1.0, 4.0, 3, 4.0)
    assert (executed.began, executed.done, executed.how) == (2.0, 3.0, "done")


def test_a_traceback_of_a_worker_is_not_one_of_the_supervisor() -> None:
    text = "Traceback (most recent call last):\n  File x\n"
    assert list(tracebacks(f"03:00 INFO worker:a:0 err | {text}")) == []
    assert list(tracebacks(f"03:00 ERROR supervisor\n{text}")) == [text]


def test_the_same_seed_draws_the_same_moves() -> None:
    assert drawn(5, 60.0, ("locked",)) == drawn(5, 60.0, ("locked",)) != drawn(6, 60.0, ("locked",))


def test_a_process_that_is_kept_warm_is_found_with_the_generation_0(tmp_path: Path) -> None:
    """It has room for a generation in its environment, and the nemesis crashed on that."""
    warm = {FOLDER: str(tmp_path), "REKINDLE_WORKER": "-" * 64, "REKINDLE_GENERATION": "-" * 20}
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **warm}) as process:
        try:
            assert [(each.pid, each.generation) for each in left_over(tmp_path)] == [(process.pid, 0)]
        finally:
            process.kill()
    assert left_over(tmp_path) == []
