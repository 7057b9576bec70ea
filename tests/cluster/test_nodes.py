"""Several agents on one PostgreSQL: workers are placed, placed anew, moved, and keep their counters."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import pytest
from tests.cluster.nodes import LEASE_S, PATIENCE_S, Nodes, until
from tests.services import PostgresService

from rekindle.cli.client import ControlClient, ControlError
from rekindle.cli.state_files import SOCKET_NAME

W = "worker:web:0"


def test_the_workers_of_a_killed_node_start_elsewhere_with_their_counters(nodes: Nodes) -> None:
    """Four crashes on one node leave one of five on the next."""
    nodes.workers(restart="max_in_window = 5\nwindow_s = 300")
    nodes.join("k1", "k2")
    nodes.apply("k1")
    first = nodes.until_runs()
    for count in range(1, 5):
        nodes.crash()
        nodes.until_lives(count + 1)
    until(lambda: nodes.restarts() == 4, "the crashes to be in the database")
    nodes.kill(first)
    second = nodes.until_runs(elsewhere_than=first)
    assert second != first
    assert nodes.restarts() == 4  # the loss of the node counts against no worker
    nodes.crash()
    until(lambda: nodes.restarts() == 5, "the fifth restart")
    nodes.until_runs()
    nodes.crash()
    until(lambda: nodes.status()["workers"][0]["phase"] == "placed" and _failed(nodes), "it to be given up")
    nodes.assert_sound()


def _failed(nodes: Nodes) -> str | None:
    why: str | None = nodes.status()["workers"][0]["failed"]
    return why


def test_a_node_that_is_back_within_its_lease_goes_on_with_its_workers(nodes: Nodes) -> None:
    nodes.workers()
    nodes.describe("k1")
    nodes.file("k1").write_text(nodes.file("k1").read_text().replace(f"lease_s = {LEASE_S}", "lease_s = 60"))
    nodes.join("k1")
    nodes.apply("k1")
    nodes.until_runs()
    nodes.crash()
    until(lambda: len(nodes.lives()) == 2, "it to run again")
    epoch = nodes.status()["workers"][0]["epoch"]
    nodes.kill("k1")
    nodes.join("k1")
    until(lambda: len(nodes.lives()) == 3, "it to run again")
    worker = nodes.status()["workers"][0]
    assert (worker["epoch"], worker["node"], worker["restarts"]) == (epoch, "k1", 1)
    nodes.assert_sound()


def test_the_workers_of_a_frozen_agent_are_dead_before_they_start_elsewhere(nodes: Nodes) -> None:
    nodes.workers()
    nodes.join("k1", "k2")
    nodes.apply("k1")
    first = nodes.until_runs()
    nodes.signal(first, signal.SIGSTOP)
    second = nodes.until_runs(elsewhere_than=first)
    nodes.assert_sound()
    nodes.signal(first, signal.SIGCONT)
    until(lambda: nodes.hold_leases(first), "the thawed node to join again")
    assert nodes.until_runs() == second  # nothing moves because something came back
    assert nodes.restarts() == 0
    nodes.assert_sound()


def test_the_loss_of_the_database_stops_and_moves_no_worker(
    nodes: Nodes, postgres_service: PostgresService
) -> None:
    """Most of the agents see each other: they promise not to testify against each other."""
    ids = tuple(f"worker:web:{number}" for number in range(3))
    nodes.workers(3)
    nodes.join("k1", "k2", "k3")
    nodes.until_acquainted("k1", "k2", "k3")
    nodes.apply("k1")
    nodes.until_runs(*ids)
    before = {id_: nodes.lives(id_) for id_ in ids}
    postgres_service.stop()
    try:
        last = nodes.traces(W)[-1].at
        until(lambda: nodes.traces(W)[-1].at > last + 4 * LEASE_S, "a long outage to pass")
        until(lambda: "the shared database is unavailable" in nodes.log("k1"), "the event")
    finally:
        postgres_service.start()
    until(lambda: "the shared database is available again" in nodes.log("k1"), "the end of it")
    until(lambda: nodes.hold_leases("k1", "k2", "k3"), "the leases to be renewed")
    for id_ in ids:
        assert [life.token for life in nodes.lives(id_)] == [life.token for life in before[id_]]
    assert set(nodes.places().values()) == {life[-1].node for life in before.values()}


def test_a_crash_while_the_database_is_away_is_counted_when_it_is_back(
    nodes: Nodes, postgres_service: PostgresService
) -> None:
    nodes.workers()
    nodes.join("k1", "k2", "k3")
    nodes.until_acquainted("k1", "k2", "k3")
    nodes.apply("k1")
    nodes.until_runs()
    postgres_service.stop()
    try:
        nodes.crash()
        until(lambda: len(nodes.lives()) == 2, "it to run again without the database")
    finally:
        postgres_service.start()
    until(lambda: nodes.restarts() == 1, "the crash to be in the database")


@pytest.mark.parametrize("alone", [False, True])
def test_a_node_without_database_and_peers_ends_its_workers(
    nodes: Nodes, postgres_service: PostgresService, alone: bool
) -> None:
    """A node that is alone in its cluster is its own majority: its workers run on."""
    nodes.workers()
    nodes.join("k1", *(() if alone else ("k2",)))
    nodes.until_acquainted(*nodes.agents)
    nodes.apply("k1")
    first = nodes.until_runs()
    for name in set(nodes.agents) - {first}:
        nodes.signal(name, signal.SIGSTOP)  # it cannot promise anything
    postgres_service.stop()
    try:
        if alone:
            last = nodes.traces(W)[-1].at
            until(lambda: nodes.traces(W)[-1].at > last + 2 * LEASE_S, "a long outage to pass")
        else:
            until(lambda: not nodes.living(), "its workers to end")
    finally:
        postgres_service.start()
        for name in set(nodes.agents) - {first}:
            nodes.signal(name, signal.SIGCONT)
    nodes.until_runs()
    nodes.assert_sound()


def test_a_drain_moves_all_workers_and_a_move_one_of_them(nodes: Nodes) -> None:
    ids = tuple(f"worker:web:{number}" for number in range(4))
    nodes.workers(4)
    nodes.join("k1", "k2")
    nodes.apply("k1")
    nodes.until_runs(*ids)
    until(lambda: sorted(str(each) for each in nodes.places().values()) == ["k1", "k1", "k2", "k2"], "spread")
    nodes.order("drain", "k1", "--reason", "new kernel")
    assert set(nodes.places().values()) == {"k2"}
    nodes.order("uncordon", "k1")
    nodes.move(W, "k1")
    until(lambda: nodes.runs_on(W) == "k1", "the move")
    assert [each for each in nodes.places().values() if each == "k1"] == ["k1"]
    planned = nodes.order("rebalance", "--dry-run")
    assert planned.count("k2 -> k1") == 1
    assert nodes.places()[W] == "k1"
    assert nodes.order("rebalance") == planned
    assert sorted(str(each) for each in nodes.places().values()) == ["k1", "k1", "k2", "k2"]
    assert "nothing moves" in nodes.order("rebalance", "--dry-run")
    assert nodes.order("move", "worker:none:0", "k1", code=4)
    nodes.assert_sound(*ids)
    assert [nodes.restarts(id_) for id_ in ids] == [0, 0, 0, 0]


def test_a_worker_that_does_not_stop_is_killed_at_the_deadline_of_a_drain(nodes: Nodes) -> None:
    nodes.workers()
    nodes.join("k1", "k2", more="[worker.web.stop]\nask_s = 300\nterm_s = 300")
    with nodes.deaf(W):
        nodes.apply("k1")
        first = nodes.until_runs()
    began = time.monotonic()
    nodes.order("drain", first, "--deadline", "2s")
    assert time.monotonic() - began < 60
    assert nodes.until_runs(elsewhere_than=first) != first
    assert nodes.restarts() == 0
    nodes.assert_sound()


def test_a_changed_file_changes_the_workers_where_they_run(nodes: Nodes) -> None:
    nodes.workers(2)
    nodes.join("k1", "k2")
    nodes.apply("k1")
    nodes.until_runs("worker:web:0", "worker:web:1")
    places = nodes.places()
    nodes.describe("k1", more='[worker.web.env]\nVERSION = "2"')
    planned = nodes.run("cluster", "apply", str(nodes.file("k1")), "--dry-run")
    assert f"restarted  {places[W]}" in planned
    assert "its settings changed" in planned
    nodes.apply("k1")
    until(lambda: all(len(nodes.lives(id_)) == 2 for id_ in places), "new processes")
    assert nodes.places() == places
    nodes.workers(1)
    nodes.describe("k1")
    planned = nodes.run("cluster", "apply", str(nodes.file("k1")), "--dry-run")
    assert f"stopped    {places['worker:web:1']}" in planned
    nodes.apply("k1")
    until(lambda: list(nodes.places()) == [W], "the second worker to be removed")
    until(lambda: nodes.runs_on("worker:web:1") is None, "it to end")
    nodes.assert_sound("worker:web:0", "worker:web:1")


def test_a_worker_that_fits_nowhere_is_unplaced_with_the_reason_of_each_node(nodes: Nodes) -> None:
    nodes.workers(place='{ labels = { disk = "ssd" } }')
    nodes.join("k1")
    nodes.apply("k1")
    until(lambda: "k1" in nodes.status()["workers"][0]["why"], "the reason")
    said = nodes.order("status")
    assert "test: 1 nodes, leader k1, database ok, 1 workers, 1 unplaced" in said
    assert nodes.status()["workers"][0]["phase"] == "unplaced"
    nodes.join("k2", cluster='labels = { disk = "ssd" }')
    assert nodes.until_runs() == "k2"


def test_a_worker_of_every_node_runs_on_a_node_that_joins_later_too(nodes: Nodes) -> None:
    nodes.workers(place="{ everywhere = true }")
    nodes.join("k1")
    nodes.apply("k1")
    assert nodes.until_runs("worker:web:k1") == "k1"
    nodes.join("k2")
    assert nodes.until_runs("worker:web:k2") == "k2"
    assert nodes.places() == {"worker:web:k1": "k1", "worker:web:k2": "k2"}


def test_a_spec_whose_program_a_node_lacks_is_refused_there_in_a_sentence(nodes: Nodes) -> None:
    nodes.join("k1", more='[worker.odd]\ncommand = ["/no/such/program"]')
    nodes.apply("k1")
    until(lambda: "/no/such/program" in nodes.status()["workers"][0]["why"], "the reason")
    assert "cannot run worker:odd:0" in nodes.log("k1")


def test_a_node_answers_while_it_waits_for_its_database(
    nodes: Nodes, postgres_service: PostgresService
) -> None:
    nodes.workers(1)
    nodes.describe("k1")
    postgres_service.stop()
    try:
        nodes.start("k1")
        client = ControlClient(nodes.folder / "k1" / SOCKET_NAME)

        def answers() -> bool:
            with suppress(ControlError):
                return bool(client.get("/info")["pid"] == nodes.agents["k1"].pid)
            return False

        until(answers, "the node to answer")
        nodes.run("shutdown", "--state", str(nodes.folder / "k1"))
        assert nodes.agents["k1"].wait(PATIENCE_S) is not None
    finally:
        postgres_service.start()


def test_a_node_leaves_when_its_workers_have_moved(nodes: Nodes) -> None:
    nodes.workers(2)
    nodes.join("k1", "k2")
    nodes.apply("k1")
    nodes.until_runs("worker:web:0", "worker:web:1")
    nodes.run("cluster", "leave", str(nodes.file("k2")))
    assert set(nodes.places().values()) == {"k1"}
    assert {node["name"]: node["state"] for node in nodes.status()["nodes"]}["k2"] == "left"


def test_a_drain_and_a_leave_name_the_workers_that_no_other_node_takes(nodes: Nodes) -> None:
    nodes.workers(place='{ labels = { disk = "ssd" } }')
    nodes.join("k1")
    nodes.join("k2", cluster='labels = { disk = "ssd" }')
    nodes.apply("k1")
    nodes.until_runs()
    said = nodes.order("drain", "k2", code=1)
    assert f"no node takes {W}: k1: its label disk is not set, not ssd; k2: draining" in said
    nodes.order("uncordon", "k2")
    nodes.until_runs()
    assert f"no node takes {W}" in nodes.run("cluster", "leave", str(nodes.file("k2")), code=1)
