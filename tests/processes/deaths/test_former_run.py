"""What a killed supervisor left behind, whom a worker runs as, and who starts before whom."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import python, shell, sleeper, worker
from tests.processes.supervisors import Supervisor
from tests.processes.waiting import PATIENCE_S, Held, eventually

from rekindle.actors import Status, WorkerStopped, command
from rekindle.worker.guardian import marked_processes


def test_f11_a_stray_of_a_killed_supervisor_is_ended_before_anything_is_started(
    database: Path, marks: list[str], run: Run
) -> None:
    """Its guardian was stopped too, so that a program in a session of its own lives on."""
    with Supervisor("mixed", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(supervisor.guardian)
        guardian = supervisor.guardian()
        assert guardian is not None
        assert eventually(lambda: len(supervisor.family()) > 10)
        os.kill(guardian, signal.SIGSTOP)
        with Held(supervisor.family()) as held:
            supervisor.kill()
            assert held.living(), "no process was left behind, so nothing is shown"
            system = run(sleeper())
            system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
            assert held.living() == []
        assert marked_processes(supervisor.mark) == []
        os.kill(guardian, signal.SIGKILL)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may run a worker as another user")
def test_a_worker_runs_as_the_user_that_it_names(run: Run) -> None:
    system = run(worker("w", command("sh", "-c", "id -un; echo $HOME; exec sleep 1000"), user="nobody"))
    system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(lambda: len(system.output("w")) == 2)
    assert system.output("w")[0] == "nobody"


def test_an_unknown_user_is_a_failed_start(run: Run) -> None:
    system = run(worker("w", command("sleep", "1000"), user="no-such-user-here"))
    assert eventually(lambda: system.deaths("w"))
    assert (system.deaths("w")[0].cause, system.status("w").pid) == ("spawn_failed", None)


@pytest.mark.usefixtures("both_ways")
def test_a_worker_starts_after_the_workers_that_it_names_and_stops_before_them(run: Run) -> None:
    system = run(sleeper("late", after=("early",)), python("wait", "early"))
    with system.events() as events:
        system.wait_for("late", Status.HEALTHY, timeout_s=PATIENCE_S)
        assert system.status("early").status is Status.HEALTHY
        results = system.stop_workers()
        assert any(isinstance(event, WorkerStopped) for event in events.within(PATIENCE_S))
    assert [result.component_id for result in results] == ["late", "early"]


def test_a_changed_command_gets_a_new_process_and_the_others_keep_theirs(run: Run) -> None:
    system = run(sleeper("a"), sleeper("b"))
    before = {id_: system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid for id_ in ("a", "b")}
    changes = system.change([sleeper("a"), shell("b", "echo changed; exec sleep 1000"), sleeper("c")])
    assert (changes.restarted, changes.added, changes.unchanged) == (("b",), ("c",), ("a",))
    again = system.wait_until("b", lambda w: w.pid not in (None, before["b"]), PATIENCE_S)
    assert again.restart_count == 0
    assert system.status("a").pid == before["a"]
    system.wait_for("c", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(lambda: system.output("b") == ("changed",))
