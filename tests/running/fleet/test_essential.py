"""An essential worker or group ends `rekindle run`, with the worker's exit code."""

from __future__ import annotations

import signal

import pytest
from tests.running.conftest import Run, Running

QUICK = "{ initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0, max_in_window = 1 }"


def worker(name: str, script: str, **settings: str) -> str:
    """The table of a worker that runs a shell script."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f'[worker.{name}]\ncommand = ["sh", "-c", """{script}"""]\n{lines}\n'


OTHERS = worker("db", "exec sleep 1000") + worker("web", "exec sleep 1000", after='["db"]')


def stopped(running: Running) -> list[str]:
    """The workers that were stopped, in order."""
    return [line.split()[2] for line in running.text().splitlines() if " stopped: " in line]


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_a_run_ends_with_the_code_of_an_essential_worker_that_is_given_up(
    run: Run, script: str, code: int
) -> None:
    running = run(OTHERS + worker("api", script, after='["web"]', essential="true", restart=QUICK))
    assert running.end() == code
    assert f"is essential and has ended: everything stops with exit code {code}" in running.text()
    assert stopped(running) == ["worker:web:0", "worker:db:0"]


def test_a_run_goes_on_when_an_essential_worker_ends_well_and_is_not_restarted(run: Run) -> None:
    essential = worker("api", "exit 0", essential="true", restart='{ restart_on = "on_failure" }')
    running = run(OTHERS + essential)
    running.wait_for("worker:api:0", shown="stopped", why="finished: exited with code 0")
    running.wait_for("worker:web:0", shown="healthy")
    assert running.stop() == 0


def test_a_run_ends_with_0_when_a_worker_ends_well_that_is_essential_on_end(run: Run) -> None:
    running = run(OTHERS + worker("job", "sleep 0.2", essential='"on_end"', temporary="true"))
    assert running.end() == 0
    assert stopped(running) == ["worker:web:0", "worker:db:0"]


def test_a_run_ends_with_the_code_of_the_member_for_which_an_essential_group_is_given_up(run: Run) -> None:
    group = '[group.back]\nmembers = ["db", "api"]\nstrategy = "one_for_all"\nessential = true\n'
    running = run(OTHERS + worker("api", "exit 3", restart=QUICK) + group)
    assert running.end() == 3
    assert "worker:api:0 ended the essential group back" in running.text()


def test_a_run_ends_when_the_budget_of_a_group_that_escalates_is_spent(run: Run) -> None:
    """No group is around it, so the supervisor itself is given up, as in OTP."""
    group = '[group.back]\nmembers = ["db", "api"]\nmax_in_window = 2\non_exhausted = "escalate"\n'
    quick = "{ initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0 }"
    running = run(OTHERS + worker("api", "exit 4", restart=quick) + group)
    assert running.end() == 4
    assert running.text().count("worker:api:0 started") == 3


def test_the_next_run_tries_an_essential_worker_again_that_ended_the_former_one(run: Run) -> None:
    """As in a container that is restarted: a failure of the former supervisor does not hold it back."""
    text = OTHERS + worker("api", "exit 7", essential="true", restart=QUICK)
    assert run(text).end() == 7
    again = run(text)
    assert again.end() == 7
    assert again.text().count("worker:api:0 started") == 4


def test_a_signal_that_comes_first_ends_a_run_with_0(run: Run) -> None:
    running = run(
        OTHERS + worker("api", "trap 'exit 9' TERM; while :; do sleep 0.05; done", essential="true")
    )
    running.wait_for("worker:api:0", shown="healthy")
    assert running.stop() == 0
