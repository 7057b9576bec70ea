"""What is wrong with a node or an order is told in one sentence, and nothing is started."""

from __future__ import annotations

from tests.cluster.nodes import Nodes, until


def test_a_file_of_a_node_is_refused_by_rekindle_run(nodes: Nodes) -> None:
    nodes.describe("k1")
    said = nodes.run("run", str(nodes.file("k1")), code=2)
    assert "k1.toml:3: cluster: makes this machine a node of a cluster" in said
    assert f"rekindle cluster join {nodes.file('k1')}" in said


def test_a_file_without_the_table_is_refused_by_rekindle_cluster(nodes: Nodes) -> None:
    nodes.file("k1").write_text('[worker.web]\ncommand = ["true"]')
    assert "has no [cluster] table" in nodes.run("cluster", "join", str(nodes.file("k1")), code=2)


def test_a_database_of_another_cluster_is_refused(nodes: Nodes) -> None:
    nodes.workers()
    nodes.describe("k1")
    nodes.apply("k1")
    file = nodes.file("k2")
    file.write_text(nodes.file("k1").read_text().replace('name = "test"', 'name = "other"'))
    said = nodes.run("cluster", "apply", str(file), code=1)
    assert "belongs to the cluster test, not to other" in said


def test_a_second_node_of_the_same_name_may_not_join(nodes: Nodes) -> None:
    nodes.join("k1")
    nodes.describe("k2")
    nodes.file("k2").write_text(nodes.file("k2").read_text().replace('node = "k2"', 'node = "k1"'))
    nodes.start("k2")
    until(lambda: "may not join: another machine is called k1" in nodes.log("k2"), "the refusal")
    assert len(nodes.status()["nodes"]) == 1


def test_orders_to_what_does_not_exist_are_refused(nodes: Nodes) -> None:
    nodes.join("k1")
    assert "no node is called k9; nodes: k1" in nodes.order("drain", "k9", code=1)
    assert "holds its lease" in nodes.order("forget", "k1", code=1)


def test_a_node_keeps_to_the_database_and_not_to_its_file(nodes: Nodes) -> None:
    nodes.join("k1")
    said = nodes.run("reload", "--state", str(nodes.folder / "k1"), code=1)
    assert "rekindle cluster apply FILE" in said


def test_a_node_with_another_secret_is_refused_while_the_others_hold_their_leases(nodes: Nodes) -> None:
    nodes.join("k1")
    nodes.describe("k2")
    other = nodes.folder / "other"
    other.write_text("another secret")
    other.chmod(0o600)
    file = nodes.file("k2")
    file.write_text(file.read_text().replace('secret_file = "secret"', 'secret_file = "other"'))
    said = nodes.run("cluster", "join", str(file), code=1)
    assert "the secret_file of this node has another secret than the one of k1: copy that file" in said
    nodes.agents["k1"].terminate()
    nodes.agents["k1"].wait(60)
    until(lambda: not nodes.status()["nodes"][0]["lease_left_ms"], "the lease of k1 to end")
    nodes.start("k2")
    until(lambda: nodes.hold_leases("k2"), "a node with a new secret to join when it is alone")


def test_the_head_of_ray_is_started_on_one_machine_only(nodes: Nodes) -> None:
    nodes.describe("k1", cluster='engine = "ray"')
    assert "[cluster] has no join" in nodes.run("cluster", "join", str(nodes.file("k1")), code=2)
    nodes.describe("k2", cluster='engine = "ray"\njoin = ["10.0.0.1:6390"]')
    assert "names the head of another machine" in nodes.run("cluster", "up", str(nodes.file("k2")), code=2)
    nodes.describe("k3")
    assert 'has no engine = "ray"' in nodes.run("cluster", "up", str(nodes.file("k3")), code=2)


def test_a_ray_that_exists_and_what_differs_from_the_file_are_checked_before_a_node_starts(
    nodes: Nodes,
) -> None:
    nodes.describe("k1")
    file = str(nodes.file("k1"))
    said = nodes.run("cluster", "attach", file, "--ray", "10.0.0.1:6379", code=2)
    assert '[cluster] has no engine = "ray", so --ray 10.0.0.1:6379 cannot be' in said
    assert "--node a b: must be a name" in nodes.run("cluster", "join", file, "--node", "a b", code=2)
    assert "--listen here: must be ADDRESS" in nodes.run("cluster", "join", file, "--listen", "here", code=2)
