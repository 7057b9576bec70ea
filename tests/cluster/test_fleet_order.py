"""Tasks, schedules, order and groups on several nodes: the same file as on one machine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.nodes import WORKER, Nodes, until

FILE = """
[worker.migrate]
kind = "once"
command = {migrate}
[worker.db]
command = {trace}
[worker.api]
command = {trace}
[group.shop]
members = ["db", "api"]
strategy = "one_for_all"
max_in_window = 50
[worker.app]
command = {trace}
after = {{ migrate = "done", shop = "ready" }}
[worker.report]
every = "2s"
command = {report}
[defaults.restart]
initial_delay_s = 0.1
min_delay_s = 0
max_delay_s = 0.2
"""
DB, API, APP = "worker:db:0", "worker:api:0", "worker:app:0"


def note(file: Path) -> str:
    return json.dumps(["bash", "-c", f'echo "$EPOCHREALTIME $REKINDLE_NODE" >> {file}'])


def lines(file: Path) -> list[list[str]]:
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def wanted(nodes: Nodes) -> dict[str, str | None]:
    return {each["component_id"]: each["node"] for each in nodes.status()["workers"]}


def test_a_file_with_tasks_groups_order_and_schedules_is_placed_and_survives_a_node(nodes: Nodes) -> None:
    migrations, reports = nodes.folder / "migrations", nodes.folder / "reports"
    trace = json.dumps(["bash", "-c", WORKER.format(folder=nodes.folder)])
    nodes.declare(FILE.format(trace=trace, migrate=note(migrations), report=note(reports)))
    nodes.join("k1", "k2", "k3")
    nodes.apply("k1")
    nodes.until_runs(DB, API, APP)
    assert len(lines(migrations)) == 1
    first = {id_: nodes.traces(id_)[0] for id_ in (DB, API, APP)}
    assert float(lines(migrations)[0][0]) < first[APP].at
    assert first[DB].at < first[API].at < first[APP].at
    assert first[DB].node == first[API].node
    nodes.crash(API)  # one for all: the other member of its group gets a new process, too
    until(lambda: len(nodes.lives(DB)) == 2, "the group to be restarted")
    until(lambda: len(lines(reports)) > 1, "two reports")
    victim = lines(reports)[-1][1]
    nodes.kill(victim)
    until(lambda: any(node != victim for _, node in lines(reports)), "a report by another node")
    for id_ in (DB, API, APP):
        nodes.until_runs(id_, elsewhere_than=victim)
    assert nodes.traces(DB)[-1].node == nodes.traces(API)[-1].node
    nodes.order("move", DB, to := _other(nodes, victim))
    until(lambda: {nodes.runs_on(DB), nodes.runs_on(API)} == {to}, "the group to move")
    assert len(lines(migrations)) == 1
    assert wanted(nodes)["worker:migrate:0"] is None
    nodes.assert_sound(DB, API, APP)


def _other(nodes: Nodes, lost: str) -> str:
    here = nodes.traces(DB)[-1].node
    return next(name for name in ("k1", "k2", "k3") if name not in (lost, here))
