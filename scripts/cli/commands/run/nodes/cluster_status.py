"""`rekindle cluster status`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from ....console.options import json_option, print_json
from ....render.status_table import table
from ....render.text import printable
from .desk import file_option, loaded, opened

if TYPE_CHECKING:
    from rekindle.actors.cluster.cluster_messages import ClusterRead
    from rekindle.actors.cluster.facts.cases import KeptRuling
    from rekindle.actors.cluster.facts.nodes import Node


@click.command()
@file_option
@json_option
def status(file: Path, as_json: bool) -> None:
    """Show the nodes of the cluster, and where each worker runs.

    It reads the database, so it works on any machine that reaches it. RESTARTS are those of all nodes
    since the last reset. For the current state of a worker, run rekindle status on its node.

    \b
      $ rekindle cluster status --file prod.toml
    """
    config = loaded(file)
    assert config.cluster is not None
    with opened(config) as desk:
        read = desk.read()
        found = document(config.cluster.name, read, desk.restarts(), desk.leader(), desk.name)
    if as_json:
        print_json(found)
        return
    for line in _lines(found):
        click.echo(line)


def document(
    name: str, read: ClusterRead, counts: dict[str, int], leader: str | None = None, database: str = ""
) -> dict[str, Any]:
    """The state of a cluster as JSON; `leader`: the id of the node whose coordinator acts."""
    from rekindle.actors.cluster.facts.tenures import TenurePhase

    names = {node.id: node.name for node in read.nodes}
    rulings = {each.node_id: each for each in read.rulings}
    many = Counter(each.node_id for each in read.assignments if each.node_id is not None)
    failed = {
        each.component_id: each.failure_reason
        for each in read.tenures
        if each.failed_at_wall_ms is not None and each.lifted_ms is None
    }
    return {
        "cluster": name,
        "leader": None if leader is None else names.get(leader, leader),
        "database": database,
        "unplaced": sum(each.phase is TenurePhase.UNPLACED for each in read.assignments),
        "nodes": [
            {**_node(node, read.now_ms, many[node.id]), **_case(rulings.get(node.id))} for node in read.nodes
        ],
        "workers": [
            {
                "component_id": each.component_id,
                "node": None if each.node_id is None else names.get(each.node_id, each.node_id),
                "phase": each.phase.value,
                "epoch": each.epoch,
                "restarts": counts.get(each.component_id, 0),
                "failed": failed.get(each.component_id),
                "why": each.reason,
            }
            for each in read.assignments
        ],
    }


def _node(node: Node, now_ms: int, workers: int) -> dict[str, Any]:
    left_ms = node.lease_until_ms - now_ms
    return {
        "name": node.name,
        "id": node.id,
        "state": node.state.value,
        "why": node.state_reason,
        "by": node.state_by,
        "lease_left_ms": max(0, left_ms) if node.state.is_member else None,
        "workers": workers,
        "labels": dict(node.labels),
        "capacity": dict(node.capacity.amounts),
        "version": node.version,
        "address": node.address,
    }


def _case(ruling: KeptRuling | None) -> dict[str, Any]:
    """What the cluster thinks of a node on which workers die; nothing if that is nothing."""
    if ruling is None or ruling.case.__struct_config__.tag == "trusted":
        return {"case": None}
    case: dict[str, Any] = to_builtins(ruling.case)
    hold_ms = round(1000 * (case["since"] + case.get("hold_s", 0.0)))
    return {
        "case": {
            "kind": case["type"],
            "why": ruling.why,
            "since_ms": ruling.at_ms,
            "witnesses": case.get("witnesses", []),
            "until_ms": hold_ms if case["type"] in ("suspect", "on_parole") else None,
            "parole_ms": round(1000 * case["parole_at"]) if "parole_at" in case else None,
        }
    }


def _why(node: dict[str, Any]) -> str:
    case = node["case"]
    if case is None or node["state"] in ("cordoned", "draining"):
        return " ".join(filter(None, (node["why"], f"({node['by']})" if node["by"] else "")))
    match case["kind"]:
        case "suspect":
            return f"{case['why']}; {len(case['witnesses'])} witnesses until {_clock(case['until_ms'])}"
        case "convicted":
            return f"{case['why']}; on parole at {_clock(case['parole_ms'])}"
        case "noticed":
            return f"{case['why']}; only told: [cluster] suspects"
        case _:
            return str(case["why"])


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%H:%M:%S")


def _lines(document: dict[str, Any]) -> list[str]:
    nodes, workers = document["nodes"], document["workers"]
    head = (
        f"{document['cluster']}: {len(nodes)} nodes, leader {document['leader'] or 'none'}, database ok,"
        f" {len(workers)} workers, {document['unplaced']} unplaced"
    )
    rows = [
        (
            printable(each["name"]),
            each["state"],
            "-" if each["lease_left_ms"] is None else f"{each['lease_left_ms'] / 1000:.1f} s",
            str(each["workers"]),
            printable(_why(each)),
        )
        for each in nodes
    ]
    head = printable(head)
    lines = [head, "", *table(("NODE", "STATE", "LEASE", "WORKERS", "WHY"), rows)] if rows else [head]
    placed = [
        (
            printable(each["component_id"]),
            printable(each["node"] or "-"),
            "failed" if each["failed"] else each["phase"],
            str(each["restarts"]),
            printable(each["failed"] or each["why"]),
        )
        for each in workers
    ]
    if placed:
        lines += ["", *table(("WORKER", "NODE", "PHASE", "RESTARTS", "WHY"), placed)]
    return lines
