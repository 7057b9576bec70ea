"""A guest in the process of a host: it does its work and leaves everything as it was."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedding.conftest import Host


@pytest.fixture
def visit(host: Host) -> dict[str, Any]:
    """What a host saw that had two systems in its process for a while."""
    return host("guest")


def test_a_guest_leaves_everything_as_it_was_and_does_its_work(visit: dict[str, Any]) -> None:
    assert visit["after"] == visit["before"]
    assert {"StatusChanged", "WorkerStarted", "WorkerDied", "WorkerFailed", "Done"} <= set(visit["seen"])
    assert (visit["died_of"], visit["counts"]) == (9, [1, 0])
    assert visit["neighbour_undisturbed"]
    assert (visit["own_child"], visit["forked"], visit["pong"]) == (42, 7, ["pong", "pong"])


def test_workers_end_when_the_host_stops_all_actors_of_its_process(host: Host) -> None:
    """They went on without supervision until the host ended."""
    assert host("careless", "stop_all")["workers_ended"]


def test_a_system_whose_actors_were_stopped_can_be_stopped_at_once(host: Host) -> None:
    said = host("careless", "stop_all_then_stop")
    assert said["workers_ended"]
    assert (said["results"], said["threads"]) == (0, [])
    assert said["took"] < 10.0


def test_workers_end_when_an_actor_of_the_host_exits_and_takes_all_actors_with_it(host: Host) -> None:
    assert host("careless", "exit_in_an_actor")["workers_ended"]


def test_a_host_that_forgets_to_stop_the_system_ends_all_the_same(host: Host) -> None:
    host("careless", "forget")


def test_a_host_that_raises_takes_its_workers_with_it(host: Host) -> None:
    host("careless", "raise", exit_code=1, silent=False)


def test_a_fork_of_the_host_that_leaves_the_block_stops_nothing(host: Host) -> None:
    """It waited for the answers of threads that a fork does not have."""
    said = host("careless", "fork")
    assert (said["exit_code"], said["undisturbed"]) == (5, True)
    assert said["took"] < 5.0
