"""P8, P23: hosts that do things with signals and children which we would rather they did not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.supervisors import python_process

from rekindle.worker.guardian import marked_processes


def lived_through(habit: str, database: Path) -> dict[str, object]:
    """What a host with this habit saw."""
    with python_process("-m", "tests.processes.hosts", habit, str(database)) as host:
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
        causes = lived_through("reap_everybody", tmp_path / f"{len(rounds)}.db")["causes"]
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
