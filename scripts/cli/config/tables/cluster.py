"""Pure except for the name of the host: `[cluster]`, and what a file with it may not have."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

from rekindle.actors.spec.policies.group import GroupExhausted

from ..file_tables import ClusterSettings, Given, arguments
from ..model import WorkerTable
from ..paths import absolute
from ..problems import ConfigFinding
from .groups import GroupTables, workers_of

NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")


def cluster_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> ClusterSettings | None:
    """The settings of the node; None if the file has no `[cluster]`."""
    if "cluster" not in file:
        return None
    table = file["cluster"]
    values = arguments(ClusterSettings, table)
    values["node"] = values.get("node") or socket.gethostname()
    if values.get("secret_file") is not None:
        try:
            values["secret_file"] = str(absolute(values["secret_file"], folder))
        except ValueError as error:
            findings.append(ConfigFinding(("cluster", "secret_file"), str(error), table["secret_file"]))
    cluster = ClusterSettings(**values)
    findings += _findings(cluster, table)
    if not file.get("database", "").startswith("postgres"):
        reason = "must be postgresql://… in a cluster: all nodes need to reach it"
        findings.append(ConfigFinding(("database",), reason, file.get("database", "")))
    return cluster


def _findings(cluster: ClusterSettings, table: Given) -> Iterator[ConfigFinding]:
    if not NODE_NAME.fullmatch(cluster.name):
        reason = "must be a name of letters, digits, dots, dashes and underscores"
        yield ConfigFinding(("cluster", "name"), reason, cluster.name)
    if not NODE_NAME.fullmatch(cluster.node):
        origin = "" if "node" in table else " (it is the name of the host: set node)"
        reason = f"must be a name of letters, digits, dots, dashes and underscores{origin}"
        yield ConfigFinding(("cluster", "node"), reason, cluster.node)
    if (reason_not := address_problem(cluster)) is not None:
        yield ConfigFinding(("cluster", "listen"), reason_not, cluster.listen)
    yield from _engine_findings(cluster, table)
    for name, amount in cluster.capacity.items():
        if not 0.0 <= amount < float("inf"):
            yield ConfigFinding(("cluster", "capacity", name), "must be 0 or more", amount)


def _engine_findings(cluster: ClusterSettings, table: Given) -> Iterator[ConfigFinding]:
    if cluster.engine != "ray":
        for key in ("join", "ray_port"):
            if key in table:
                yield ConfigFinding(("cluster", key), 'is for engine = "ray"', table[key])
        return
    if cluster.secret_file is None:
        reason = 'must be set with engine = "ray": the token of Ray is derived from it'
        yield ConfigFinding(("cluster", "secret_file"), reason)
    for address in cluster.join:
        found = _ADDRESS.fullmatch(address)
        if found is None or not 0 < int(found["port"]) < 65536:
            reason = "must be the address of Ray's head, such as 10.0.0.1:6390"
            yield ConfigFinding(("cluster", "join"), reason, address)


def address_problem(cluster: ClusterSettings) -> str | None:
    """Why it cannot listen there; None if it can."""
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


def misfits(
    cluster: ClusterSettings | None, file: Given, groups: Mapping[str, WorkerTable], together: GroupTables
) -> Iterator[ConfigFinding]:
    """What a file with `[cluster]` may not have, and what has no effect without it."""
    for group in groups.values():
        here = ("worker", group.name)
        if cluster is None:
            if "place" in file["worker"][group.name]:
                yield ConfigFinding((*here, "place"), "is for a file with a [cluster] table")
            continue
        if group.template.essential is not False:
            yield ConfigFinding((*here, "essential"), _ESSENTIAL)
        for name in _everywhere(group.waits_for, groups, together):
            reason = f"{name} runs on each node (place.everywhere): it is not one worker to wait for"
            yield ConfigFinding((*here, "after"), reason, list(group.waits_for))
        if group.place.everywhere and group.count != 1:
            reason = "must be 1 with place.everywhere: one copy runs on each node"
            yield ConfigFinding((*here, "count"), reason, group.count)
    if cluster is not None:
        yield from _unfit_groups(groups, together)


_ESSENTIAL = (
    "is not possible in a cluster: it would end the supervisor of one node, and its workers would continue"
    " elsewhere; have an alert on worker_failed instead"
)


def _unfit_groups(groups: Mapping[str, WorkerTable], together: GroupTables) -> Iterator[ConfigFinding]:
    inner = {word for each in together.values() for word in each.members}
    for name, group in together.items():
        here = ("group", name)
        if group.essential is not False:
            yield ConfigFinding((*here, "essential"), _ESSENTIAL)
        if group.on_exhausted is GroupExhausted.ESCALATE and name not in inner:
            reason = "must be fail in a cluster for an outermost group: escalate ends a node's supervisor"
            yield ConfigFinding((*here, "on_exhausted"), reason, str(group.on_exhausted))
        for member in _everywhere(group.members, groups, together):
            reason = f"{member} runs on each node (place.everywhere), a group on one"
            yield ConfigFinding((*here, "members"), reason, list(group.members))


def _everywhere(
    words: Iterable[str], groups: Mapping[str, WorkerTable], together: GroupTables
) -> Iterator[str]:
    """The worker tables among these words that run on each node."""
    for word in words:
        names = (
            workers_of(word, together) if word in together else [word.split(":")[1] if ":" in word else word]
        )
        yield from (name for name in names if name in groups and groups[name].place.everywhere)
