"""Pure except for the name of the host: `[cluster]`, and what a file with it may not have."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path

from rekindle.actors.spec.worker_spec import WorkerSpec

from ..file_tables import Cluster, Given, arguments
from ..model import WorkerTable
from ..paths import absolute
from ..problems import ConfigFinding

NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")


def cluster_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> Cluster | None:
    """The settings of the node; None if the file has no `[cluster]`."""
    if "cluster" not in file:
        return None
    table = file["cluster"]
    values = arguments(Cluster, table)
    values["node"] = values.get("node") or socket.gethostname()
    if values.get("secret_file") is not None:
        try:
            values["secret_file"] = str(absolute(values["secret_file"], folder))
        except ValueError as error:
            findings.append(ConfigFinding(("cluster", "secret_file"), str(error), table["secret_file"]))
    cluster = Cluster(**values)
    findings += _findings(cluster, table)
    if not file.get("database", "").startswith("postgres"):
        reason = "must be postgresql://… in a cluster: all nodes need to reach it"
        findings.append(ConfigFinding(("database",), reason, file.get("database", "")))
    return cluster


def _findings(cluster: Cluster, table: Given) -> Iterator[ConfigFinding]:
    if not NODE_NAME.fullmatch(cluster.name):
        reason = "must be a name of letters, digits, dots, dashes and underscores"
        yield ConfigFinding(("cluster", "name"), reason, cluster.name)
    if not NODE_NAME.fullmatch(cluster.node):
        origin = "" if "node" in table else " (it is the name of the host: set node)"
        reason = f"must be a name of letters, digits, dots, dashes and underscores{origin}"
        yield ConfigFinding(("cluster", "node"), reason, cluster.node)
    if (reason_not := _address_problem(cluster)) is not None:
        yield ConfigFinding(("cluster", "listen"), reason_not, cluster.listen)
    for name, amount in cluster.capacity.items():
        if not 0.0 <= amount < float("inf"):
            yield ConfigFinding(("cluster", "capacity", name), "must be 0 or more", amount)


def _address_problem(cluster: Cluster) -> str | None:
    found = _ADDRESS.fullmatch(cluster.listen)
    if found is None or int(found["port"]) > 65535:
        return "must be ADDRESS:PORT, such as 10.0.0.4:8378"
    host = found["host"].strip("[]")
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_unspecified:
        return "must be an address at which the other nodes reach this machine"
    is_local = host == "localhost" if address is None else address.is_loopback
    if not is_local and cluster.secret_file is None:
        return "needs a secret_file: other machines can send to it"
    return None


def misfits(cluster: Cluster | None, file: Given, groups: Iterable[WorkerTable]) -> Iterator[ConfigFinding]:
    """What a file with `[cluster]` may not have yet, and what one without it has in vain."""
    for group in groups:
        here = ("worker", group.name)
        if cluster is None:
            if "place" in file["worker"][group.name]:
                yield ConfigFinding((*here, "place"), "is for a file with a [cluster] table")
            continue
        for key, reason in _unfit(group.template):
            yield ConfigFinding((*here, key), reason)
        if group.waits_for:
            yield ConfigFinding((*here, "after"), _ACROSS)
        if group.place.everywhere and group.count != 1:
            reason = "must be 1 with place.everywhere: one copy runs on each node"
            yield ConfigFinding((*here, "count"), reason, group.count)
    if cluster is not None and file.get("group"):
        reason = "is not supported in a cluster yet: its members may run on different nodes"
        yield ConfigFinding(("group",), reason)


_ACROSS = "is not supported in a cluster yet: the workers may run on different nodes"


def _unfit(spec: WorkerSpec) -> Iterator[tuple[str, str]]:
    if spec.schedule is not None:
        yield (
            "every" if spec.schedule.every else "cron",
            ("is not supported in a cluster yet: each node would begin the schedule again"),
        )
    elif spec.is_task:
        yield "kind", "must be service in a cluster: a task would run again on each node that it comes to"
    if spec.essential is not False:
        yield "essential", "is not supported in a cluster yet: it would stop the supervisor of one node"
