"""`kind = "once"` in `rekindle run`: done, retried, waited for, and the exit code of the run."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.running.conftest import Run

QUICK = "{ initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0, max_in_window = 2 }"


def task(name: str, script: str, **settings: str) -> str:
    """The table of a task that runs a shell script."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f'[worker.{name}]\nkind = "once"\ncommand = ["sh", "-c", """{script}"""]\n{lines}\n'


def test_a_run_of_only_tasks_ends_with_0_when_all_are_done(run: Run) -> None:
    running = run(task("one", "exit 0") + task("two", "exit 0"))
    assert running.end() == 0
    assert "all tasks have ended" in running.text()


def test_a_task_that_fails_is_retried_by_its_policy_until_it_is_done(run: Run, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    script = f'echo x >> {marks}; test "$(wc -l < {marks})" -ge 3'
    assert run(task("retried", script, restart=QUICK)).end() == 0
    assert marks.read_text() == "x\nx\nx\n"


def test_a_task_that_is_given_up_ends_the_run_with_its_exit_code(run: Run) -> None:
    assert run(task("good", "exit 0") + task("bad", "exit 7", restart=QUICK)).end() == 7


def test_a_task_that_a_signal_ended_and_that_is_not_retried_ends_the_run_with_128_and_the_signal(
    run: Run,
) -> None:
    running = run(task("bad", "kill -TERM $$", restart='{ restart_on = "never" }'))
    assert running.end() == 128 + signal.SIGTERM


def test_a_task_that_was_given_up_runs_again_with_the_next_supervisor(run: Run, tmp_path: Path) -> None:
    """As in a container that is restarted: a failure of the former supervisor does not hold it back."""
    done = tmp_path / "may-pass"
    text = task("migrate", f"test -e {done}", restart=QUICK)
    assert run(text).end() == 1
    done.touch()
    assert run(text).end() == 0


def test_a_worker_after_a_task_starts_when_the_task_is_done(run: Run, tmp_path: Path) -> None:
    migrated = tmp_path / "migrated"
    serve = f"test -e {migrated} && exec sleep 1000"
    web = f'[worker.web]\ncommand = ["sh", "-c", "{serve}"]\nafter = ["migrate"]\n'
    running = run(task("migrate", f"sleep 0.3; touch {migrated}") + web)
    running.wait_for("worker:web:0", status="healthy", restart_count=0)
    migrate = running.worker("worker:migrate:0")
    assert (migrate["shown"], migrate["kind"], migrate["why"]) == (
        "done",
        "once",
        "finished: exited with code 0",
    )
    assert running.stop() == 0


def test_a_task_that_is_done_can_be_run_again_and_explains_itself(run: Run) -> None:
    running = run(task("one", "exit 0") + '[worker.service]\ncommand = ["sleep", "1000"]\n')
    running.wait_for("worker:one:0", shown="done", generation=1)
    text = running.client.get("/workers/worker:one:0/explain")["text"]
    assert "worker:one:0 is done: it finished: exited with code 0." in text
    assert "To run it again: rekindle start worker:one:0." in text
    running.order("workers", "worker:one:0", "start")
    running.wait_for("worker:one:0", shown="done", generation=2)
