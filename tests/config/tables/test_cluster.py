"""The table `[cluster]`, and where workers may run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.config.files import good, reason

from rekindle.cli.config import parse
from rekindle.cli.config.tables.wishes import spec_of, wishes_of

DATABASE = 'database = "postgresql://db/prod"'
NODE = f'{DATABASE}\n[cluster]\nname = "prod"\n'
RAY = f'{NODE}engine = "ray"\nsecret_file = "s"\n'
WEB = '[worker.web]\ncommand = ["./serve", "{n}"]\n'


def test_a_file_without_the_table_is_no_node() -> None:
    assert good("").cluster is None


def test_a_node_has_the_name_of_its_host_by_default() -> None:
    cluster = good(NODE).cluster
    assert cluster is not None
    assert (cluster.node, cluster.engine, cluster.lease_s) == (socket.gethostname(), "none", 3.0)


def test_a_node_runs_nothing_of_the_file_by_itself_and_has_a_journal_of_its_own() -> None:
    config = good(NODE + WEB)
    node = config.as_node()
    assert (node.groups, node.shared_database) == ((), "postgresql://db/prod")
    assert node.database.endswith("rekindle.db")


def test_a_node_leaves_queues_and_periodic_jobs_of_its_file_to_the_cluster() -> None:
    serves = '[worker.mail]\npython = "app:run"\njobs = { queues = ["mail"] }\n'
    config = good(f'{NODE}{serves}[queue.mail]\nrate = "1/s"\n[periodic.x]\nqueue = "mail"\nevery = "1h"')
    assert (len(config.queues), len(config.periodic)) == (1, 1)
    node = config.as_node()
    assert (node.queues, node.periodic) == ((), ())


def test_where_workers_may_run_is_read() -> None:
    text = NODE + WEB + 'place = { spread = "zone", needs = { cpu = 2 }, per_node = 4, apart_from = ["db"] }'
    place = good(text).groups[0].place
    assert (place.spread, dict(place.needs), place.per_node, place.apart_from) == (
        "zone",
        {"cpu": 2},
        4,
        ("db",),
    )


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ('[cluster]\nname = "prod"', "database", "must be postgresql"),
        (f"{DATABASE}\n[cluster]", "cluster.name", "must be a name"),
        (NODE + 'node = "a b"', "cluster.node", "must be a name"),
        (NODE + 'engine = "nomad"', "cluster.engine", "none, ray"),
        (NODE + 'engine = "ray"', "cluster.secret_file", "the token of Ray is derived from it"),
        (NODE + 'join = ["10.0.0.1:6390"]', "cluster.join", 'is for engine = "ray"'),
        (NODE + "ray_port = 7000", "cluster.ray_port", 'is for engine = "ray"'),
        (RAY + 'join = ["10.0.0.1"]', "cluster.join", "such as 10.0.0.1:6390"),
        (NODE + "lease_s = 0.5", "cluster.lease_s", "between 1.5 and 300"),
        (NODE + 'listen = "here"', "cluster.listen", "must be ADDRESS:PORT"),
        (NODE + 'listen = "10.0.0.4:8378"', "cluster.listen", "needs a secret_file"),
        (NODE + 'secret_file = "s"\nlisten = "0.0.0.0:1"', "cluster.listen", "must be an address at which"),
        (NODE + "capacity = { cpu = -1 }", "cluster.capacity.cpu", "must be 0 or more"),
        (NODE + 'suspects = "no"', "cluster.suspects", "must be one of"),
        (WEB + "place = { per_node = 1 }", "worker.web.place", "is for a file with a [cluster] table"),
        (NODE + WEB + "place = { per_node = 0 }", "worker.web.place.per_node", "must be at least 1"),
        (NODE + WEB + 'place = { pack = true, spread = "z" }', "worker.web.place.pack", "conflicts with"),
        (
            NODE + WEB + 'place = { everywhere = true, on_partition = "keep" }',
            "worker.web.place.on_partition",
            "may only be stop",
        ),
        (NODE + WEB + "place = { everywhere = true }\ncount = 2", "worker.web.count", "must be 1"),
        (NODE + WEB + "essential = true", "worker.web.essential", "end the supervisor of one node"),
        (
            NODE + WEB + '[group.all]\nmembers = ["web"]\nessential = true',
            "group.all.essential",
            "end the supervisor of one node",
        ),
        (
            NODE + WEB + '[group.all]\nmembers = ["web"]\non_exhausted = "escalate"',
            "group.all.on_exhausted",
            "must be fail in a cluster for an outermost group",
        ),
        (
            NODE + WEB + 'place = { everywhere = true }\n[group.all]\nmembers = ["web"]',
            "group.all.members",
            "web runs on each node (place.everywhere), a group on one",
        ),
        (
            NODE + WEB + 'after = ["db"]\n[worker.db]\ncommand = ["db"]\nplace = { everywhere = true }',
            "worker.web.after",
            "it is not one worker to wait for",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(text: str, key: str, says: str) -> None:
    assert says in reason(text, key)


def test_a_wish_is_read_on_the_node_as_if_it_stood_in_the_file_of_the_node(tmp_path: Path) -> None:
    """Relative paths, placeholders and environment files are those of the machine that runs the worker."""
    folder = tmp_path / "a"
    folder.mkdir()
    file = folder / "a.toml"
    file.write_text(
        NODE
        + '[defaults.env]\nHERE = "yes"\n[worker.web]\ncommand = ["true", "{n}"]\ncount = 2\ncwd = "data"\n'
        "place = { per_node = 1 }"
    )
    first, second = wishes_of(parse(file.read_text(), file))
    assert (first.component_id, second.component_id) == ("worker:web:0", "worker:web:1")
    assert second.place.per_node == 1
    other = tmp_path / "b" / "b.toml"
    (other.parent / "data").mkdir(parents=True)
    spec = spec_of(second, other)
    assert spec.run.argv == ("true", "1")  # type: ignore[union-attr]
    assert (spec.id, spec.cwd, dict(spec.env)) == (
        "worker:web:1",
        str(other.parent / "data"),
        {"HERE": "yes"},
    )


ORDER = """
[worker.migrate]
command = ["true"]
kind = "once"
[worker.db]
command = ["true"]
[worker.api]
command = ["true"]
count = 2
after = ["db", "migrate"]
[worker.web]
command = ["true"]
after = { shop = "ready", migrate = "done" }
[group.shop]
members = ["inner"]
[group.inner]
members = ["db", "api"]
strategy = "rest_for_one"
"""


def test_a_group_is_one_unit_and_what_a_worker_waits_for_elsewhere_is_told_to_the_cluster(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(NODE + ORDER)
    wishes = {wish.component_id: wish for wish in wishes_of(parse(file.read_text(), file))}
    db, api, web = (wishes[f"worker:{name}:0"] for name in ("db", "api", "web"))
    assert wishes["worker:migrate:0"].once
    assert (db.unit, api.unit, web.unit) == ("shop", "shop", "")
    assert (db.beside, api.beside) == ((), ("worker:db:0",))
    assert (db.after, api.after) == ({}, {"worker:migrate:0": "done"})
    shop = dict.fromkeys(("worker:db:0", "worker:api:0", "worker:api:1"), "ready")
    assert web.after == {**shop, "worker:migrate:0": "done"}
    here = spec_of(wishes["worker:api:1"], tmp_path / "b.toml")
    assert (here.id, here.after) == ("worker:api:1", ("worker:db:0",))
    assert [place.group.name for place in here.membership] == ["inner", "shop"]
    assert spec_of(web, tmp_path / "b.toml").after == ()


def test_another_count_or_place_changes_the_spec_of_no_worker(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    specs = []
    for more in ("count = 1", "count = 2\nmin_healthy = 1\nplace = { per_node = 1 }"):
        file.write_text(NODE + WEB + more)
        specs.append(next(wishes_of(parse(file.read_text(), file))).spec)
    assert specs[0] == specs[1]
