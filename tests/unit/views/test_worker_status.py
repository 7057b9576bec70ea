"""A worker in words for people."""

from __future__ import annotations

import pytest
from tests.unit.builders import TAG, crash, spec

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.supervision.pauses import ActivePause
from rekindle.actors.supervision.worker import (
    Failed,
    Idle,
    Phase,
    Rest,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    World,
)
from rekindle.actors.views.sentences.reason_words import rest_words, stop_reason_words
from rekindle.actors.views.worker_status import shown, why, worker_status

NOW = World(now_ms=50_000, wall_ms=1_790_000_000_000)


def worker(phase: Phase, status: Status | None = None) -> SupervisedWorker:
    """A worker in this phase."""
    return SupervisedWorker(
        spec(), phase=phase, generation=4, lingering=4, status=status, restarts=RestartState(3, 2)
    )


def crashed() -> SupervisedWorker:
    """A worker that waits for its restart."""
    return supervision.died(worker(Up(4, 20_000, 77), Status.HEALTHY), crash(4, signal=9), NOW).worker


@pytest.mark.parametrize(
    ("phase", "status", "word", "reason"),
    [
        (Up(4, 0), Status.PENDING, "starting", ""),
        (Up(4, 0, 77), Status.HEALTHY, "healthy", ""),
        (Up(4, 0, 77), Status.UNHEALTHY, "healthy", ""),
        (Up(4, 0, 77), Status.RECOVERING, "healthy", ""),
        (Stopping(4, Rest.STOPPED), Status.HEALTHY, "stopping", "stopping"),
        (Failed("too often"), Status.FAILED, "failed", "too often"),
        (Idle(Rest.NEW), None, "stopped", "not started yet"),
        (Idle(Rest.STOPPED), None, "stopped", "stopped"),
        (Idle(Rest.PAUSED), None, "stopped", "paused"),
        (Idle(Rest.RESET), None, "stopped", "reset"),
        (Idle(Rest.LEFT, "exited with code 0"), Status.DEAD, "crashed", "exited with code 0"),
    ],
)
def test_every_phase_has_a_word_and_a_reason(
    phase: Phase, status: Status | None, word: str, reason: str
) -> None:
    assert (shown(worker(phase, status)), why(worker(phase, status))) == (word, reason)


@pytest.mark.parametrize(
    ("phase", "code"),
    [
        (Up(4, 0), None),
        (Stopping(4, Rest.STOPPED), "stopping"),
        (Failed("too often"), None),
        (Idle(Rest.NEW), "not_started"),
        (Idle(Rest.STOPPED), "stopped"),
        (Idle(Rest.STOPPED, "exited with code 0"), None),
    ],
)
def test_only_a_fixed_reason_has_a_code(phase: Phase, code: str | None) -> None:
    assert worker_status(worker(phase), 0).why_code == code


def test_every_code_has_words_and_other_text_is_shown_as_it_is() -> None:
    words = [*map(stop_reason_words, StopReason), *map(rest_words, Rest)]
    assert all(words)
    assert len(set(words)) == len(words)
    assert stop_reason_words("an operator stops it") == "an operator stops it"


def test_a_worker_that_is_being_stopped_still_has_its_pid() -> None:
    stopping = supervision.stop(worker(Up(4, 20_000, 77), Status.HEALTHY)).worker
    status = worker_status(stopping, 50_500)
    assert (status.shown, status.pid, status.uptime_s) == ("stopping", 77, None)


def test_a_worker_that_is_stopped_before_its_process_is_there_gets_its_pid() -> None:
    stopping = supervision.stop(worker(Up(4, 20_000), Status.PENDING)).worker
    started = supervision.process_started(stopping, 4, 77, NOW)
    assert (worker_status(started.worker, 50_500).pid, started.effects) == (77, ())


def test_a_worker_that_waits_is_crashed_and_says_when_it_comes_back() -> None:
    status = worker_status(crashed(), 50_500)
    assert (status.shown, status.status, status.why) == ("crashed", Status.DEAD, "Restart #4 with 4s backoff")
    assert status.next_attempt_in_s == 3.5
    assert (status.pid, status.uptime_s) == (None, None)


def test_a_wait_that_is_over_is_not_negative() -> None:
    assert worker_status(crashed(), 60_000).next_attempt_in_s == 0


def test_cf_10_a_running_worker_shows_pid_uptime_and_counts() -> None:
    status = worker_status(worker(Up(4, 20_000, 77), Status.UNHEALTHY), 50_000, pause=ActivePause())
    assert (status.component_id, status.generation, status.pid, status.uptime_s) == (TAG, 4, 77, 30)
    assert (status.restart_count, status.streak_count, status.paused) == (3, 2, True)
    assert (status.shown, status.status) == ("healthy", Status.UNHEALTHY)
    assert (status.next_attempt_in_s, status.failure_reason) == (None, None)


def test_cf_10_a_failed_worker_shows_its_reason() -> None:
    assert worker_status(worker(Failed("too often")), 0).failure_reason == "too often"


def test_a_job_is_shown_while_its_worker_lives() -> None:
    holding = supervision.job_changed(worker(Up(4, 0, 77), Status.HEALTHY), 4, "index/7").worker
    assert worker_status(holding, 0).current_job == "index/7"
    stopped = supervision.process_gone(supervision.stop(holding).worker, 4, Exit(0), None, NOW).worker
    assert worker_status(stopped, 0).current_job is None


def test_a_pause_shows_its_reason_and_its_end() -> None:
    status = worker_status(worker(Idle(Rest.PAUSED)), 0, pause=ActivePause("new disk"), pause_ends_in_s=90)
    assert (status.paused, status.pause_reason, status.pause_ends_in_s) == (True, "new disk", 90)


def test_a_start_that_waits_says_for_whom() -> None:
    status = worker_status(worker(Up(4, 0), Status.PENDING), 0, waits_for=("db", "cache"))
    assert (status.shown, status.why, status.waits_for) == (
        "starting",
        "waits for db, cache",
        ("db", "cache"),
    )


def test_the_budget_shows_what_is_used_of_each_limit() -> None:
    budget = worker_status(crashed(), 50_500).budget
    assert (budget.in_window, budget.max_in_window, budget.window_s) == (3, 5, 300)
    assert (budget.lifetime, budget.max_lifetime, budget.consecutive, budget.max_consecutive) == (
        4,
        20,
        3,
        None,
    )
    assert worker_status(crashed(), 50_000 + 300_000).budget.in_window == 0
