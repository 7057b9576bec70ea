"""Workers that run by the clock: one run after the other, their failures, and what holds them back."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock, rows, states
from tests.virtual.simulated_system import W, lives, worker

from rekindle.actors.deaths.death import Cause
from rekindle.actors.messages import (
    AddWorker,
    ChangeWorkers,
    Done,
    PauseWorkers,
    Refused,
    RemoveWorker,
    RestartWorker,
    ResumeWorkers,
    RunFailed,
    RunNow,
    RunStarted,
    RunSucceeded,
    StartWorkers,
    StopWorkers,
    WorkerFailed,
)
from rekindle.actors.simulation import Behaviour, exits, hangs, ignores_term, runs

SHORT = lives(exits(after_s=5))
LONG = lives(exits(after_s=250))


def test_a_run_starts_at_every_due_time_and_rests_between(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(50)
    assert (system.starts(), system.status().shown) == ([], "scheduled")
    system.run_to(350)
    assert system.starts() == [100, 200, 300]
    assert states(system) == ["succeeded"] * 3
    assert [event.run for _, event in system.events(RunSucceeded)] == [1, 2, 3]


def test_the_status_has_the_next_and_the_last_run(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(130)
    schedule = system.status().schedule
    assert schedule is not None
    assert schedule.last is not None
    assert (schedule.plan, schedule.next_in_s) == ("every 1m40s", 70)
    assert (schedule.last.number, schedule.last.state, schedule.last.duration_ms) == (1, "succeeded", 5000)
    assert schedule.succeeded_at_wall_ms == schedule.last.ended_at_wall_ms


def test_a_failing_run_is_retried_by_the_policy_and_the_next_one_has_the_whole_budget(
    new_system: SystemFactory,
) -> None:
    system = new_system(
        by_clock(restart={"max_in_window": 2, "initial_delay_s": 1}), scripts=lives(exits(3, after_s=1))
    ).start()
    system.run_to(250)
    assert system.starts() == [100, 102, 105, 200, 202, 205]
    assert states(system) == ["failed", "failed"]
    assert [(run.attempts, run.exit_code) for run in rows(system)] == [(3, 3), (3, 3)]
    assert (system.status().shown, system.events(WorkerFailed)) == ("scheduled", [])
    assert system.stored().failed_at_wall_ms is None


def test_a_run_that_succeeds_after_a_retry_has_succeeded(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=lives(exits(1, after_s=1), exits(after_s=1))).start()
    system.run_to(190)
    [run] = rows(system)
    assert (run.state, run.attempts, run.exit_code) == ("succeeded", 2, 0)


@pytest.mark.parametrize(
    ("overlap", "starts", "found"),
    [
        ("skip", [100, 400], ["succeeded", "skipped:overlap", "running"]),
        ("queue", [100, 350], ["succeeded", "running", "skipped:overlap", "waiting"]),
        ("replace", [100, 200, 300, 400], ["stopped:replaced"] * 3 + ["running"]),
    ],
)
def test_a_run_that_is_due_while_another_is_running(
    new_system: SystemFactory, overlap: str, starts: list[float], found: list[str]
) -> None:
    system = new_system(by_clock(overlap=overlap), scripts=LONG).start()
    system.run_to(410)
    assert (system.starts(), states(system)) == (starts, found)
    if overlap == "skip":
        assert rows(system)[1].times == 2


@pytest.mark.parametrize("order", [StartWorkers((W,)), RestartWorker(W)])
def test_an_order_while_a_run_is_being_replaced_begins_the_next_one(
    new_system: SystemFactory, order: StartWorkers | RestartWorker
) -> None:
    """Found by chaos: the run that was to end went on in a new process, and the next one waited for it."""
    system = new_system(by_clock(overlap="replace"), scripts=lives(Behaviour(stops_after=2))).start()
    system.run_to(201)
    system.tell(order)
    system.run_to(210)
    assert (system.starts(), states(system)) == ([100, 202], ["stopped:replaced", "running"])


def test_a_start_in_the_middle_of_a_stop_has_the_schedule_count_again(new_system: SystemFactory) -> None:
    """As it does after the stop: the run has ended, and the next one comes when it is due."""
    system = new_system(by_clock(), scripts=lives(Behaviour(stops_after=2))).start()
    system.run_to(150)
    system.tell(StopWorkers((W,)))
    system.run_to(151)
    system.tell(StartWorkers((W,)))
    system.run_to(210)
    assert (system.starts(), states(system)) == ([100, 200], ["stopped:stopped", "running"])


def test_no_two_runs_overlap_while_one_is_retried(new_system: SystemFactory) -> None:
    system = new_system(by_clock(restart={"initial_delay_s": 60}), scripts=lives(exits(1, after_s=1))).start()
    system.run_to(310)
    assert "skipped:overlap" in states(system)
    assert len(system.events(RunStarted)) == 1


def test_a_run_that_takes_too_long_is_ended_by_the_stop_ladder_and_has_failed(
    new_system: SystemFactory,
) -> None:
    system = new_system(by_clock(timeout_s=30), scripts=lives(runs())).start()
    system.run_to(190)
    [run] = rows(system)
    assert (run.state, run.reason, run.detail) == ("failed", "timeout", "the run took longer than 30 s")
    [death] = system.deaths()
    assert (death.death.cause, death.action) == (Cause.TIMEOUT, "none")
    assert system.ends() == [130]


def test_a_run_that_ignores_the_request_to_end_is_killed(new_system: SystemFactory) -> None:
    system = new_system(by_clock(timeout_s=30), scripts=lives(ignores_term())).start()
    system.run_to(190)
    [run] = rows(system)
    assert (run.state, run.reason, run.signal) == ("failed", "timeout", 9)


def test_the_time_limit_holds_for_the_retries_of_a_run_as_well(new_system: SystemFactory) -> None:
    retried = by_clock(timeout_s=30, restart={"initial_delay_s": 20})
    system = new_system(retried, scripts=lives(exits(1, after_s=1))).start()
    system.run_to(190)
    assert (system.starts(), states(system)) == ([100, 121], ["failed:timeout"])


@pytest.mark.parametrize(("ends", "comes_back"), [(PauseWorkers, ResumeWorkers), (StopWorkers, StartWorkers)])
def test_a_run_whose_time_is_over_while_its_process_ends_has_no_further_process(
    new_system: SystemFactory,
    ends: type[PauseWorkers | StopWorkers],
    comes_back: type[ResumeWorkers | StartWorkers],
) -> None:
    """Found by chaos: a resume or a start in that moment gave the run a new process, without a limit."""
    system = new_system(by_clock(timeout_s=30), scripts=lives(Behaviour(stops_after=5))).start()
    system.run_to(128)
    system.tell(ends((W,)))
    system.run_to(131)
    system.tell(comes_back((W,)))
    system.run_to(240)
    assert system.starts() == [100, 200]
    assert [(run.state, run.reason) for run in rows(system)[:1]] == [("failed", "timeout")]


def test_jitter_delays_the_start_and_not_the_due_time(new_system: SystemFactory) -> None:
    system = new_system(by_clock(jitter_s=50), scripts=SHORT).start()
    system.run_to(199)
    [start], [run] = system.starts(), rows(system)
    assert 100 < start < 150
    assert run.due_wall_ms % 100_000 == 0


def test_a_worker_waits_with_each_run_for_those_that_it_comes_after(new_system: SystemFactory) -> None:
    late = worker("db")
    system = new_system(
        late, by_clock("job", others={"after": ("db",)}), scripts={"job": SHORT, "db": lives(runs())}
    )
    system.start("job")
    system.run_to(120)
    assert system.starts("job") == []
    system.start("db")
    system.run_to(130)
    assert len(system.starts("job")) == 1


# ── orders ───────────────────────────────────────────────────────────────────────────────


def test_run_now_begins_a_run_at_once_and_the_schedule_goes_on(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(50)
    assert system.ask(lambda reply: RunNow(W, reply)) == Done()
    system.run_to(150)
    assert system.starts() == [50, 100]
    assert [run.trigger for run in rows(system)] == ["operator", "clock"]


def test_run_now_is_refused_with_the_reason(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), worker("service"), scripts={W: LONG}).start()
    system.run_to(120)

    def refusal(id_: str) -> str:
        answer = system.ask(lambda reply: RunNow(id_, reply))
        assert isinstance(answer, Refused)
        return answer.reason

    assert refusal(W) == f'run 1 of {W} is running, and overlap is "skip"'
    assert refusal("service") == "service has no schedule (every or cron); use start or restart"
    assert refusal("unknown") == "no worker is called 'unknown'"
    system.stop(W)
    assert "is stopped; start it first" in refusal(W)


def test_a_pause_ends_the_run_and_what_is_due_meanwhile_is_missed(new_system: SystemFactory) -> None:
    system = new_system(by_clock(missed="skip"), scripts=LONG).start()
    system.run_to(120)
    system.tell(PauseWorkers((W,)))
    system.run_to(420)
    assert states(system) == ["stopped:paused", "missed:paused"]
    assert rows(system)[1].times == 3
    system.tell(ResumeWorkers((W,)))
    system.run_to(520)
    assert states(system)[2:] == ["running"]


def test_after_a_pause_one_run_makes_up_for_those_that_were_missed(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.tell(PauseWorkers((W,)))
    system.run_to(250)
    system.tell(ResumeWorkers((W,)))
    system.run_to(290)
    assert (system.starts(), states(system)) == ([250], ["missed:paused", "succeeded"])
    assert rows(system)[1].trigger == "catch_up"


def test_a_stopped_worker_misses_its_runs_until_it_is_started(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.stop(W)
    system.run_to(250)
    assert (system.status().shown, states(system)) == ("stopped", ["missed:stopped"])
    system.tell(StartWorkers((W,)))
    assert system.status().shown == "scheduled"
    system.run_to(350)
    assert system.starts() == [300]


def test_a_stop_in_the_middle_of_a_run_ends_the_run(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=LONG).start()
    system.run_to(120)
    system.stop(W)
    assert states(system) == ["stopped:stopped"]


def test_a_changed_schedule_counts_from_the_reload_on(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(150)
    system.tell(ChangeWorkers((by_clock(every="1000s"),)))
    system.run_to(1010)
    assert system.starts() == [100, 1000]


def test_a_service_becomes_scheduled_and_a_service_again(new_system: SystemFactory) -> None:
    system = new_system(worker(), scripts=lives(runs(), exits(after_s=5), runs())).start()
    system.run_to(50)
    system.tell(ChangeWorkers((by_clock(),)))
    system.run_to(60)
    assert system.status().shown == "scheduled"
    system.run_to(150)
    assert system.starts() == [0, 100]
    system.tell(ChangeWorkers((worker(),)))
    system.run_to(350)
    assert system.starts() == [0, 100, 150]
    assert (system.status().shown, system.status().schedule) == ("healthy", None)


def test_a_worker_that_is_removed_and_added_again_continues_its_numbers(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), worker("other"), scripts={W: SHORT}).start()
    system.run_to(150)
    system.tell(RemoveWorker(W))
    system.run_to(350)
    system.tell(AddWorker(by_clock()))
    system.run_to(450)
    assert [(run.number, run.state) for run in rows(system)] == [(1, "succeeded"), (2, "succeeded")]


def test_a_run_that_hangs_is_a_death_like_any_other(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=lives(hangs(after_s=1), exits(after_s=1))).start()
    system.run_to(190)
    [run] = rows(system)
    assert (run.state, run.attempts) == ("succeeded", 2)


def test_a_failed_run_says_why(new_system: SystemFactory) -> None:
    never = by_clock(restart={"restart_on": "never"})
    system = new_system(never, scripts=lives(exits(3, after_s=1))).start()
    system.run_to(150)
    [(_, failed)] = system.events(RunFailed)
    assert "exited with code 3" in failed.reason
