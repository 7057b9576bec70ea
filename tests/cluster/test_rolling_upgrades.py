"""Nodes of two neighbouring versions on one database: one after the other is upgraded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cluster.nodes import Nodes, until

from rekindle.persistence.schema.migrate import REVISIONS

NEWER = """
import os, sys
import rekindle
rekindle.__version__ = "9.0.0"
from rekindle.persistence.schema import migrate
migrate.REVISIONS = (*migrate.REVISIONS, "9001")
migrate.COMPATIBLE_FROM = {compatible_from!r}
true = migrate.alembic_config
def alembic_config(connection):
    config = true(connection)
    ours = os.path.join(config.get_main_option("script_location"), "versions")
    config.set_main_option("version_locations", os.pathsep.join([ours, {versions!r}]))
    return config
migrate.alembic_config = alembic_config
from rekindle.cli.main import main
sys.exit(main())
"""
REVISION = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "9001", {REVISIONS[-1]!r}, None, None
def upgrade():
    for name in ("node", "wish", "assignment", "tenure"):
        op.add_column(f"rekindle_{{name}}", sa.Column("more", sa.Text(), nullable=True))
def downgrade():
    pass
"""
"""It adds a column to each table of the cluster."""


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """A folder with the revision of the newer version."""
    folder = tmp_path / "versions"
    folder.mkdir()
    (folder / "9001_more.py").write_text(REVISION)
    return folder


def newer(versions: Path, compatible_from: str) -> tuple[str, ...]:
    """A `rekindle` of the next version, which has one revision more."""
    program = versions.parent / "newer.py"
    program.write_text(NEWER.format(compatible_from=compatible_from, versions=str(versions)))
    return sys.executable, str(program)


def revision(nodes: Nodes) -> str:
    """Of the tables."""
    import psycopg

    with psycopg.connect(nodes.database) as connection:
        row = connection.execute("SELECT version_num FROM rekindle_alembic_version").fetchone()
    return str(row[0]) if row else ""


def test_older_nodes_go_on_and_come_back_while_newer_ones_upgrade_the_tables(
    nodes: Nodes, versions: Path
) -> None:
    nodes.workers()
    nodes.join("k1")
    nodes.apply("k1")
    nodes.until_runs()
    nodes.describe("k2")
    nodes.start("k2", *newer(versions, REVISIONS[-1]))
    until(lambda: nodes.hold_leases("k2"), "the newer node to join")
    assert revision(nodes) == "9001"
    last = nodes.traces()[-1].at
    until(lambda: nodes.traces()[-1].at > last + 4.0, "more than a lease to pass")
    assert [life.node for life in nodes.lives()] == ["k1"]  # its process has not even been restarted
    nodes.kill("k1")
    nodes.start("k1")
    until(lambda: nodes.hold_leases("k1"), "the older node to join the newer tables")
    nodes.move("worker:web:0", "k2")
    nodes.until_runs(elsewhere_than="k1")
    nodes.move("worker:web:0", "k1")
    nodes.until_runs(elsewhere_than="k2")
    nodes.assert_sound()


def test_a_newer_node_waits_for_older_ones_that_it_would_lock_out_and_they_are_told_to_upgrade(
    nodes: Nodes, versions: Path
) -> None:
    nodes.join("k1")
    nodes.describe("k2")
    nodes.start("k2", *newer(versions, "9001"))
    until(lambda: "k1 (" in nodes.log("k2") and "stop these nodes first" in nodes.log("k2"), "the reason")
    assert revision(nodes) == REVISIONS[-1]
    nodes.agents["k1"].terminate()
    nodes.agents.pop("k1").wait(60)
    until(lambda: revision(nodes) == "9001", "the newer node to upgrade the tables when it is alone")
    said = nodes.run("cluster", "join", str(nodes.file("k1")), code=1)
    assert "of a newer Rekindle (revision 9001, and need a version that knows 9001" in said
    assert "upgrade this node" in said
