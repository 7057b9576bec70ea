"""A real node on which workers die is cordoned and drained, and its deaths are refunded."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from tests.cluster.nodes import Nodes, until
from tests.services import PostgresService

WORKER = """
exec 9<> <(:)
while :; do
  echo "$EPOCHREALTIME $REKINDLE_NODE $$ $REKINDLE_TOKEN" >> "{folder}/$REKINDLE_WORKER.trace"
  if [ -e "{folder}/bad.$REKINDLE_NODE" ]; then exit 3; fi
  read -rt 0.1 -u 9
done
"""
"""Dies wherever a file says that the machine is bad."""

GROUPS = ("api", "feed", "mail")


def sickly(nodes: Nodes, suspects: str = "act") -> None:
    """Three groups with a copy on each of three nodes."""
    command = json.dumps(["bash", "-c", WORKER.format(folder=nodes.folder)])
    tables = [
        f"[worker.{group}]\ncommand = {command}\ncount = 3\n"
        f"[worker.{group}.restart]\nimmediate_first = true\nmax_delay_s = 1.0\ninitial_delay_s = 1.0\n"
        for group in GROUPS
    ]
    for name in ("k1", "k2", "k3"):
        nodes.describe(name, cluster=f'suspects = "{suspects}"', more="\n".join(tables))
    nodes.join("k1", "k2", "k3")
    nodes.apply("k1")
    ids = [f"worker:{group}:{number}" for group in GROUPS for number in range(3)]
    nodes.until_runs(*ids)
    until(
        lambda: Counter(nodes.places().values()) == dict.fromkeys(("k1", "k2", "k3"), 3),
        "a copy on each node",
    )


def the_node(nodes: Nodes, name: str) -> dict[str, Any]:
    return next(each for each in nodes.status()["nodes"] if each["name"] == name)


def query(nodes: Nodes, statement: str) -> list[Any]:
    engine = create_engine(nodes.database.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement))]
    finally:
        engine.dispose()


def test_a_bad_node_is_suspected_convicted_and_drained_and_its_deaths_are_refunded(nodes: Nodes) -> None:
    sickly(nodes)
    before = nodes.places()
    (nodes.folder / "bad.k2").touch()
    began = time.monotonic()
    until(lambda: the_node(nodes, "k2")["state"] == "suspect", "a suspicion")
    assert "workers died in" in the_node(nodes, "k2")["case"]["why"]
    assert "2 witnesses until" in nodes.order("status")
    until(lambda: the_node(nodes, "k2")["state"] == "convicted", "a conviction")
    assert time.monotonic() - began < 75.0
    until(lambda: "k2" not in nodes.places().values(), "the drain")
    ids = [id_ for id_, node in before.items() if node == "k2"]
    for id_ in ids:
        nodes.until_runs(id_, elsewhere_than="k2")
    until(lambda: all(nodes.restarts(id_) == 0 for id_ in ids), "all of its deaths to be refunded")
    assert [each["failed"] for each in nodes.status()["workers"]] == [None] * 9
    assert {each["node"] for each in nodes.status()["workers"]} == {"k1", "k3"}
    assert "were the fault of k2" in nodes.order("explain", ids[0])
    nodes.assert_sound(*before)

    (nodes.folder / "bad.k2").unlink()
    nodes.order("uncordon", "k2")
    assert the_node(nodes, "k2")["state"] == "up"
    ((kind, by),) = query(nodes, "SELECT kind, given_by FROM rekindle_ruling ORDER BY number DESC LIMIT 1")
    assert kind == "trusted"
    assert by


def test_where_suspects_are_only_told_of_nothing_moves(nodes: Nodes) -> None:
    sickly(nodes, "tell")
    before = nodes.places()
    (nodes.folder / "bad.k2").touch()
    until(lambda: the_node(nodes, "k2")["case"] is not None, "a notice")
    assert (the_node(nodes, "k2")["case"]["kind"], the_node(nodes, "k2")["state"]) == ("noticed", "up")
    assert nodes.places() == before


@pytest.mark.parametrize("outage", ["database", "agent"])
def test_each_death_reaches_the_database_once_whatever_is_killed(
    nodes: Nodes, postgres_service: PostgresService, outage: str
) -> None:
    nodes.workers(restart="max_in_window = 50\nmax_lifetime = 50")
    nodes.join("k1", "k2", "k3")
    nodes.apply("k1")
    node = nodes.until_runs()
    nodes.crash()
    until(lambda: deaths(nodes) == [(node, "exited", "worker", 1)], "the first death")
    if outage == "database":
        postgres_service.stop()
        try:
            nodes.crash()
            nodes.until_lives(3)
        finally:
            postgres_service.start()
    else:
        nodes.crash()
        nodes.kill(node)
        nodes.join(node)
    until(lambda: len(deaths(nodes)) == 2, "the second death")
    nodes.until_runs()
    ((events, last),) = query(
        nodes,
        "SELECT count(*), max(number) FROM rekindle_shipped_event s JOIN rekindle_node n"
        f" ON n.id = s.node_id WHERE n.name = '{node}'",
    )
    assert events == last  # in order, and none is missing
    assert {row[3] for row in deaths(nodes)} == {1}


def deaths(nodes: Nodes) -> list[Any]:
    """Node, cause, fault, and whether it counts, of every death that was by itself."""
    return query(
        nodes,
        "SELECT n.name, l.cause, l.fault, l.counted FROM rekindle_node_life l JOIN rekindle_node n"
        " ON n.id = l.node_id WHERE l.died = 1 ORDER BY l.ended_ms",
    )
