"""P8, P23: hosts that do things with signals and children which we would rather they did not."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from loguru import logger
from tests.processes.conftest import Rows, Run
from tests.processes.policies import python, shell
from tests.processes.supervisors import python_process
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import RequestRefusedError, Status
from rekindle.actors.spec.worker_spec import RESERVED
from rekindle.worker.guardian import marked_processes


def lived_through(habit: str, database: Path) -> dict[str, object]:
    """What a host with this habit saw."""
    with python_process("-m", "tests.processes.supervision.hosts", habit, str(database)) as host:
        said, _ = host.communicate(timeout=60)
    assert host.returncode == 0
    seen: dict[str, object] = json.loads(said)
    assert marked_processes(str(seen["mark"])) == []
    assert seen["gone"] == [True] * 3
    assert seen["deaf"] == []
    return seen


def test_p8_a_host_that_ignores_sigchld_costs_the_exit_status_and_nothing_else(database: Path) -> None:
    seen = lived_through("ignore_sigchld", database)
    assert (seen["causes"], seen["unknown"]) == (["unknown"], True)


def test_p8_a_host_that_reaps_every_child_costs_the_exit_status_at_most(tmp_path: Path) -> None:
    """Who reaps first is a race, which the host wins now and then."""
    rounds: list[list[object]] = []
    while not any("unknown" in causes for causes in rounds):
        assert len(rounds) < 10, "the host never reaped a child before us: nothing was shown"
        causes = lived_through("reap_all", tmp_path / f"{len(rounds)}.db")["causes"]
        assert isinstance(causes, list)
        assert {"exited", "signalled", "unknown"} >= set(causes)
        rounds.append(causes)


def test_a_host_that_wants_sigpipe_survives_a_worker_and_a_guardian_that_are_gone(database: Path) -> None:
    seen = lived_through("want_sigpipe", database)
    assert (seen["causes"], seen["unknown"]) == (["exited", "signalled"], False)


def test_a_host_that_blocks_sigterm_does_not_make_its_workers_deaf(database: Path) -> None:
    """A program inherited the mask of our thread, and could only be killed."""
    seen = lived_through("block_sigterm", database)
    assert (seen["causes"], seen["unknown"]) == (["exited", "signalled"], False)


def test_a_host_whose_log_raises_for_a_moment_costs_some_lines_and_nothing_else(run: Run, rows: Rows) -> None:
    """The thread that watches all processes ended by it."""
    full = threading.Event()

    def sink(_message: object) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")

    logger.enable("rekindle")
    sinking = logger.add(sink, catch=False)
    try:
        system = run(shell("w", "while :; do echo line; sleep 0.02; done"))
        first = system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S).pid
        assert first is not None
        full.set()
        before = system.written("w", after=0).newest
        assert eventually(lambda: system.written("w", after=0).newest > before + 5)
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: rows.deaths("w"))
        full.clear()
        system.wait_until("w", lambda worker: worker.pid not in (None, first), timeout_s=PATIENCE_S)
    finally:
        logger.remove(sinking)
        logger.disable("rekindle")


def test_a_host_that_is_a_worker_itself_hands_down_nothing_of_that(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker took the generation of its supervisor for its own, and its jobs were never given back."""
    for name in sorted(RESERVED):
        monkeypatch.setenv(name, "77")
    monkeypatch.setenv("REKINDLE_STATE", "/elsewhere")
    system = run(python("wait", inherit_env=("*",)))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    told = [variable for variable in found if variable.startswith(b"REKINDLE_")]
    assert b"REKINDLE_GENERATION=1" in told
    assert b"REKINDLE_STATE=/elsewhere" in told
    assert not [variable for variable in told if variable.endswith(b"=77")]


def test_a_supervisor_inside_a_host_s_process_cannot_be_upgraded(run: Run) -> None:
    system = run(shell("w", "sleep 1000"))
    (worker,) = system.report().workers
    with pytest.raises(RequestRefusedError, match="only the supervisor of `rekindle run` can be upgraded"):
        system.upgrade()
    assert system.status(worker.component_id).generation == worker.generation
