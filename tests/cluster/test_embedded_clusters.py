"""Clusters of several nodes in one process, as a user's tests start them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.plugin.test_plugin import PLUGIN, ROOT, suite
from tests.test_readme import blocks

from rekindle.actors import Command, SpecError, WorkerSpec
from rekindle.testing.cluster import Cluster

__all__ = ["suite"]

A, B = "worker:web:0", "worker:web:1"
SPECS = tuple(WorkerSpec(id_, Command(("sleep", "1000")), group="web") for id_ in (A, B))


@pytest.fixture
def cluster(postgres_url: str) -> Iterator[Cluster]:
    """Two workers on two nodes."""
    with Cluster(SPECS, database=postgres_url, nodes=2) as made:
        made.wait_until_running(A)
        made.wait_until_running(B)
        yield made


def test_a_node_that_is_cut_off_loses_its_workers_to_the_other_and_gets_no_old_ones_back(
    postgres_url: str,
) -> None:
    with Cluster(SPECS[:1], database=postgres_url, nodes=3) as cluster:
        first = cluster.wait_until_running(A)
        before = cluster.status(A)
        cluster.cut(first)
        second = cluster.wait_until_running(A, elsewhere_than=first)
        after = cluster.status(A)
        assert before is not None
        assert after is not None
        assert (before.pid != after.pid, cluster.restarts(A)) == (True, 0)
        cluster.plug(first)
        cluster.wait_until(lambda: cluster.holds_lease(first), "the node to join again")
        assert cluster.runs_on(A) == second


def test_nodes_are_drained_and_stopped_and_workers_are_moved(cluster: Cluster) -> None:
    first = cluster.wait_until_running(A)
    other = next(name for name in cluster.names if name != first)
    cluster.drain(first)
    assert set(cluster.places().values()) == {other}
    cluster.uncordon(first)
    cluster.move(A, first)
    assert cluster.wait_until_running(B) == other
    cluster.stop(other)
    cluster.wait_until_running(B, elsewhere_than=other)
    cluster.start(other)
    assert (cluster.restarts(A), cluster.restarts(B)) == (0, 0)


def test_workers_of_one_id_are_refused() -> None:
    with pytest.raises(SpecError, match="is used by two workers"):
        Cluster((SPECS[0], SPECS[0]), database="postgresql://nowhere/x")


def test_the_test_of_the_manual_passes_and_a_failed_one_reports_where_everything_is(
    suite: pytest.Pytester, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REKINDLE_TEST_DATABASE", postgres_url)
    (shown,) = blocks(ROOT / "scripts" / "testing" / "README.md", "python")[1:]
    failing = """
def test_that_fails(rekindle_cluster):
    assert rekindle_cluster(WEB, nodes=1).wait_until_running(WEB.id) is None
"""
    suite.makepyfile(test_cluster=shown + failing)
    found = suite.runpytest_subprocess("-p", PLUGIN, "-p", "no:cacheprovider", timeout=100)
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*rekindle: cluster*", "n1: worker:web:0 *"])
