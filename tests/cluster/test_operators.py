"""Any node of a cluster answers for all of it, and takes orders to workers of the others."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.nodes import Nodes, until
from tests.services import PostgresService

from rekindle.cli.client import ControlClient, OrderRefusedError, UnknownTargetError

IDS = tuple(f"worker:web:{number}" for number in range(4))


@pytest.fixture(scope="module")
def pair(postgres_service: PostgresService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes with two workers each."""
    nodes = Nodes(postgres_service.new_database(empty=True), tmp_path_factory.mktemp("pair"))
    try:
        nodes.workers(4)
        nodes.join("k1", "k2", more="[metrics]\nenabled = true")
        nodes.apply("k1")
        nodes.until_runs(*IDS)
        yield nodes
    finally:
        nodes.close()


def at(nodes: Nodes, name: str) -> ControlClient:
    """The control socket of a node."""
    return ControlClient(nodes.folder / name / "control.sock")


def workers(nodes: Nodes, name: str) -> dict[str, dict[str, Any]]:
    """What a node says of all workers."""
    return {each["component_id"]: each for each in at(nodes, name).get("/workers")["workers"]}


def of_other(nodes: Nodes, name: str) -> str:
    """A worker that runs, and not on this node."""
    return next(
        id_
        for id_, place in sorted(nodes.places().items())
        if place != name and workers(nodes, name).get(id_, {}).get("pid")
    )


def until_all_run(nodes: Nodes) -> None:
    for name in ("k1", "k2"):
        until(lambda: all(workers(nodes, name).get(id_, {}).get("pid") for id_ in IDS), "all to run")  # noqa: B023


def test_each_node_answers_for_all(pair: Nodes) -> None:
    until_all_run(pair)
    for name in ("k1", "k2"):
        until(
            lambda: all(each["shown"] == "healthy" for each in workers(pair, name).values()),  # noqa: B023
            "the news of healthy workers",
        )
    seen = {name: workers(pair, name) for name in ("k1", "k2")}
    for id_ in IDS:
        mine, theirs = seen["k1"][id_], seen["k2"][id_]
        assert [mine[key] for key in ("pid", "node", "shown", "generation")] == [
            theirs[key] for key in ("pid", "node", "shown", "generation")
        ]
    nodes = {each["name"]: each for each in at(pair, "k1").get("/workers")["nodes"]}
    assert nodes["k1"]["is_own"]
    assert nodes["k2"]["age_ms"] < 5000
    assert sum(each["leads"] for each in nodes.values()) == 1


def test_status_shows_the_nodes_and_narrows_to_one(pair: Nodes) -> None:
    until_all_run(pair)
    state = str(pair.folder / "k1")
    shown = pair.run("status", "--state", state)
    assert "NODE" in shown
    assert "Nodes: k1 up (this one" in shown
    narrowed = json.loads(pair.run("status", "--state", state, "--node", "k2", "--json"))
    assert {each["node"] for each in narrowed["workers"]} == {"k2"}
    assert "no node is called 'k9'; nodes: k1, k2" in pair.run(
        "status", "--state", state, "--node", "k9", code=1
    )


def test_a_worker_of_another_node_is_restarted_from_here(pair: Nodes) -> None:
    until_all_run(pair)
    id_ = of_other(pair, "k1")
    before = workers(pair, "k1")[id_]["generation"]
    pair.run("restart", id_, "--state", str(pair.folder / "k1"))
    until(lambda: workers(pair, "k1")[id_]["generation"] > before, "a new process")
    other = pair.places()[id_]
    entry = at(pair, str(other)).get("/audit")["entries"][0]
    assert (entry["gateway"], entry["action"], entry["target"]) == ("cluster", "restart", id_)
    assert entry["claimed_user"].endswith("@k1")


def test_a_worker_of_another_node_is_stopped_reset_and_started_from_here(pair: Nodes) -> None:
    until_all_run(pair)
    id_, state = of_other(pair, "k2"), str(pair.folder / "k2")
    pair.run("stop", id_, "--state", state)
    assert workers(pair, "k2")[id_]["shown"] == "stopped"
    pair.run("reset", id_, "--state", state)
    assert "already" not in pair.run("start", id_, "--state", state)
    until_all_run(pair)


def test_a_pause_and_its_end_reach_another_node(pair: Nodes) -> None:
    until_all_run(pair)
    id_, state = of_other(pair, "k1"), str(pair.folder / "k1")
    pair.run("pause", id_, "--reason", "a look", "--state", state)
    found = workers(pair, "k1")[id_]
    assert (found["paused"], found["pause_reason"]) == (True, "a look")
    pair.run("resume", id_, "--state", state)
    until_all_run(pair)


def test_orders_that_no_node_can_carry_out_are_refused_in_a_sentence(pair: Nodes) -> None:
    until_all_run(pair)
    with pytest.raises(UnknownTargetError, match="no worker is called 'worker:none:0'"):
        at(pair, "k1").post("/workers/worker:none:0/restart")
    id_ = of_other(pair, "k1")
    with pytest.raises(OrderRefusedError, match=f"{id_} runs on node k2, and only its node knows"):
        at(pair, "k1").get(f"/workers/{id_}/report")


# ── questions ────────────────────────────────────────────────────────────────────────────


def test_a_worker_of_another_node_is_explained_and_its_output_read_from_here(pair: Nodes) -> None:
    until_all_run(pair)
    id_, state = of_other(pair, "k1"), str(pair.folder / "k1")
    before = workers(pair, "k1")[id_]["generation"]
    pair.crash(id_)
    until(lambda: workers(pair, "k1")[id_]["generation"] > before, "its restart")
    found = at(pair, "k1").get(f"/workers/{id_}/explain")
    assert found["source"] == "k2, which runs it, has answered."
    assert found["text"].endswith(found["source"])
    assert found["last_death"]["exit"] == 3
    latest = at(pair, "k1").get(f"/workers/{id_}/history")["deaths"][0]
    assert (latest["node"], latest["exit_code"]) == ("k2", 3)
    generation = latest["generation"]
    assert at(pair, "k1").get(f"/workers/{id_}/bundles/{generation}")["generation"] == generation
    assert f"crash of {id_}" in pair.run("output", id_, "--state", state)
    assert any(f"crash of {id_}" in each["text"] for each in _written(pair, "k1", id_))
    assert f"crash of {id_}" in at(pair, "k1").get(f"/workers/{id_}/log")["lines"][-1]["text"]
    assert "k2  ✖" in pair.run("timeline", id_, "--state", state)
    entries = at(pair, "k2").get("/audit")["entries"]
    assert not any(each["action"].startswith("look") for each in entries)


def _written(nodes: Nodes, name: str, *ids: str) -> list[dict[str, Any]]:
    return list(at(nodes, name).get(f"/output?ids={','.join(ids)}")["lines"])


def test_output_of_several_nodes_at_once_is_refused_in_a_sentence(pair: Nodes) -> None:
    until_all_run(pair)
    with pytest.raises(OrderRefusedError, match="run on several nodes: ask for the output of one"):
        _written(pair, "k1", *IDS)


def test_the_history_of_a_worker_that_has_moved_is_one_line_across_its_nodes(pair: Nodes) -> None:
    until_all_run(pair)
    id_ = of_other(pair, "k1")
    pair.crash(id_)
    until(lambda: _deaths_on(pair, "k1", id_).get("k2"), "the death on k2")
    on_k2 = _deaths_on(pair, "k1", id_)["k2"]
    pair.order("move", id_, "k1")
    until(lambda: workers(pair, "k2").get(id_, {}).get("node") == "k1", "the move")
    until_all_run(pair)
    pair.crash(id_)
    for name in ("k1", "k2"):
        until(lambda: _deaths_on(pair, name, id_).get("k1") == 1, f"the death on k1, seen from {name}")  # noqa: B023
        assert _deaths_on(pair, name, id_) == {"k1": 1, "k2": on_k2}
    for name in ("k1", "k2"):
        entries = at(pair, name).get(f"/workers/{id_}/timeline")["entries"]
        assert {each["node"] for each in entries} == {"k1", "k2"}
    assert "over all" in pair.run("timeline", id_, "--state", str(pair.folder / "k2"))


def _deaths_on(nodes: Nodes, name: str, id_: str) -> dict[str, int]:
    """How many deaths of a worker a node knows of, by the node on which they happened."""
    return dict(Counter(each["node"] for each in at(nodes, name).get(f"/workers/{id_}/history")["deaths"]))


def events(nodes: Nodes, name: str) -> list[str]:
    """What the stream of a node has, in words, oldest first."""
    found = at(nodes, name).get("/events/log?limit=500")["events"]
    return [f"{each['component_id'] or ''} {each['text']}".strip() for each in found]


def test_each_node_tells_of_cordons_and_moves_and_the_metrics_count_them(pair: Nodes) -> None:
    until_all_run(pair)
    pair.order("cordon", "k2", "--reason", "bad disk")
    for name in ("k1", "k2"):
        until(
            lambda: any("node k2 takes no further workers: bad disk" in each for each in events(pair, name)),  # noqa: B023
            "the cordon",
        )
    pair.order("uncordon", "k2")
    moved = next(id_ for id_, place in sorted(pair.places().items()) if place == "k1")
    pair.move(moved, "k2")
    for name in ("k1", "k2"):
        until(
            lambda: any(f"{moved} was placed on node k2 (before: k1)" in each for each in events(pair, name)),  # noqa: B023
            "the move",
        )


def test_the_metrics_of_a_node_have_its_renewals_and_how_late_its_history_is(
    pair: Nodes,
) -> None:
    until_all_run(pair)
    found = metrics_of(pair, "k1")
    assert found["rekindle_lease_renew_seconds_count"] > 0
    until(
        lambda: metrics_of(pair, "k1")["rekindle_ship_lag_seconds"] == 0.0, "all of the history to be shipped"
    )
    (leader,) = (name for name in ("k1", "k2") if metrics_of(pair, name)["rekindle_leader"])
    until(lambda: 'rekindle_node_suspicion_p{node="k2"}' in metrics_of(pair, leader), "the suspicions")


def metrics_of(nodes: Nodes, name: str) -> dict[str, float]:
    """The metrics of a node, by name and labels."""
    path = str(nodes.folder / name / "control.sock")
    text = subprocess.run(
        ["curl", "-sS", "--max-time", "20", "--unix-socket", path, "http://rekindle/metrics"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {key: float(value) for key, _, value in lines}


def test_a_lost_node_is_an_alert_until_it_is_back(pair: Nodes) -> None:
    until_all_run(pair)
    id_ = of_other(pair, "k1")
    pair.crash(id_)
    until(lambda: _deaths_on(pair, "k1", id_).get("k2"), "the death on k2")
    pair.kill("k2")
    said = [at(pair, "k1").get(f"/workers/{id_}/history") for _ in range(2)]
    until(lambda: any("node k2 is lost" in each for each in events(pair, "k1")), "the loss")
    assert all(any(each["node"] == "k2" for each in found["deaths"]) for found in said)
    assert "does not answer" in said[0]["source"] or "has no node now" in said[0]["source"], said[0]
    until(lambda: _node_alerts(pair), "the alert")
    pair.start("k2")
    until(lambda: not _node_alerts(pair), "its end")
    assert any("node k2 has joined" in each for each in events(pair, "k1"))


def _node_alerts(nodes: Nodes) -> list[str]:
    found = at(nodes, "k1").get("/alerts")["alerts"]
    return [each["message"] for each in found if each["kind"] == "node" and not each["resolved_at_wall_ms"]]
