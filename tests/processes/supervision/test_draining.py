"""A worker takes no more work before it is asked to stop: by a program, by HTTP, over its channel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import LONG, python, shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import DrainPolicy, JobPolicy, PythonCall, Status, StopPolicy, System
from rekindle.actors.messages import StopStepTaken
from rekindle.actors.spec.probe import CommandProbe, HttpProbe


def policy(**how: object) -> StopPolicy:
    return replace(LONG, drain=DrainPolicy(**how))  # type: ignore[arg-type]


def steps(system: System, id_: str) -> list[tuple[str, str]]:
    """The steps of a stop, as events."""
    with system.events() as events:
        system.stop_worker(id_)
        return [(e.step, e.detail) for e in events.within(0.2) if isinstance(e, StopStepTaken)]


def test_a_program_drains_the_worker_and_finds_its_pid(run: Run, tmp_path: Path) -> None:
    drained = tmp_path / "drained"
    program = CommandProbe(("sh", "-c", f'echo "$REKINDLE_WORKER_PID" > {drained}'))
    system = run(shell("w", "exec sleep 1000", stop=policy(command=program)))
    system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    pid = system.status("w").pid
    assert steps(system, "w") == [("drain", ""), ("drained", ""), ("SIGTERM", "")]
    assert drained.read_text() == f"{pid}\n"


def test_a_program_that_takes_too_long_or_fails_does_not_hold_up_the_stop(run: Run) -> None:
    slow = policy(command=CommandProbe(("sleep", "1000")), within_s=0.2)
    failing = policy(command=CommandProbe(("false",)))
    system = run(
        shell("slow", "exec sleep 1000", stop=slow), shell("failing", "exec sleep 1000", stop=failing)
    )
    for id_ in ("slow", "failing"):
        system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    assert steps(system, "slow")[-1][0] == "SIGTERM"
    assert steps(system, "failing") == [("drain", ""), ("not_drained", "exited with code 1"), ("SIGTERM", "")]


@contextmanager
def served() -> Iterator[tuple[str, list[str]]]:
    """An HTTP server, and the paths that were asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_request_drains_the_worker(run: Run) -> None:
    with served() as (url, asked):
        system = run(shell("w", "exec sleep 1000", stop=policy(http=HttpProbe(f"{url}/drain"))))
        system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
        assert [step for step, _ in steps(system, "w")] == ["drain", "drained", "SIGTERM"]
        assert asked == ["/drain"]


@pytest.mark.usefixtures("both_ways")
def test_a_python_worker_is_told_and_says_when_it_has_no_work_left(run: Run) -> None:
    system = run(python("drain", "w", stop=policy(within_s=PATIENCE_S)))
    system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert steps(system, "w") == [("drain", ""), ("drained", "")]
    assert system.output("w") == ("told", "True True", "asked to stop")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_job_worker_finishes_its_job_and_takes_no_other_while_it_is_drained(
    run: Run, tmp_path: Path, concurrency: int
) -> None:
    go = tmp_path / "go"
    call = PythonCall("tests.processes.job_workers:Obedient.main")
    jobs = JobPolicy(queues=("q",), concurrency=concurrency)
    system = run(worker("w", call, jobs=jobs, stop=policy(within_s=PATIENCE_S)))
    first = system.enqueue("q", {"do": "wait for", "file": str(go)})
    assert eventually(lambda: system.jobs.get(first).state == "running")
    stopping = threading.Thread(target=system.stop_worker, args=("w",))
    with system.events() as events:
        stopping.start()
        events.until(lambda e: isinstance(e, StopStepTaken) and e.step == "drain", PATIENCE_S)
        second = system.enqueue("q", {})
        go.touch()
        events.until(lambda e: isinstance(e, StopStepTaken) and e.step == "drained", PATIENCE_S)
    stopping.join(PATIENCE_S)
    assert (system.jobs.get(first).state, system.jobs.get(second).state) == ("done", "pending")
