"""How the Ray of a node is started, as workers of its own supervisor.

    system:ray:0        `ray start --block`, of the head or of a further node
    system:ray-link:0   the link (`link.py`), which is ended if it sends no keep-alive

Both are restarted forever. They belong to the node and not to the cluster: a lease that is over does not
end them. Every port is pinned, because Ray listens on all addresses of the machine whatever it is told.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...spec.deployment.assigned import OF_THE_NODE
from ...spec.policies.health_policy import HealthPolicy
from ...spec.policies.ready_policy import ReadyPolicy
from ...spec.policies.restart_policy import RestartPolicy
from ...spec.policies.stop_policy import StopPolicy
from ...spec.program import Command
from ...spec.worker_spec import WorkerSpec
from ..settings.ray_attachment import Attachment
from .agent_keeper import KEPT
from .reservations import NODE_LABEL

RAY, LINK = f"{OF_THE_NODE}ray:0", f"{OF_THE_NODE}ray-link:0"
TOKEN_NAME = "ray.token"
DEFAULT_PORT = 6390
PORTS = 510
"""How many ports Ray uses, from the first one on."""
WORKER_PORTS = 10
"""Where those of Ray's own workers begin."""
LONGEST_FOLDER = 40
"""Ray's sockets lie deep below its folder, and the kernel limits their paths to 107 bytes."""
OBJECT_STORE = 80_000_000
"""Bytes: the least that Ray takes, since Rekindle keeps nothing there."""
START_S = 90.0
HANGS_S = 30.0

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PORTS = {
    "node-manager-port": 1,
    "object-manager-port": 2,
    "runtime-env-agent-port": 3,
    "dashboard-agent-grpc-port": 4,
    "dashboard-agent-listen-port": 5,
    "metrics-export-port": 6,
}

_FOREVER = RestartPolicy(max_in_window=None, max_lifetime=None, max_delay_s=15.0, reset_after_healthy_s=60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    """The Ray of one machine."""

    node_id: str
    cluster: str
    ip: str
    state_dir: Path
    secret: str = field(repr=False)
    head: str = ""
    """Its address; empty: this machine has the head."""
    port: int = DEFAULT_PORT
    """The first port of this machine; the head listens at it."""
    capacity: Mapping[str, float] = field(default_factory=dict)
    """What Ray may give away; without it, what Ray finds."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the head listens."""
        return self.head or f"{self.ip}:{self.port}"

    @property
    def folder(self) -> Path:
        """Ray's sockets, logs and spilled objects."""
        inside = self.state_dir / "ray"
        return (
            inside if len(str(inside)) <= LONGEST_FOLDER else Path("/tmp") / f"rekindle-{self.node_id[:12]}"
        )

    def specs(self) -> tuple[WorkerSpec, WorkerSpec]:
        """The two workers."""
        start = WorkerSpec(
            RAY,
            Command(self._start_command()),
            restart=_FOREVER,
            health=HealthPolicy(startup_timeout_s=START_S),
            stop=StopPolicy(ask_s=10.0),
            ready=ReadyPolicy(output="Ray runtime started"),
            env=self.environment(),
            jobs=None,
        )
        return start, link_spec(self.state_dir, self.address, self.ip, self.cluster, self.environment())

    def environment(self) -> dict[str, str]:
        """What Ray and the link read from their environment."""
        found = token_environment(self.state_dir / TOKEN_NAME)
        if not self.head:
            found |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(self.state_dir / "ray-head")}
        return found

    def write_token(self) -> None:
        """Write the token that all nodes derive from their secret, for its owner only."""
        write_private(self.state_dir / TOKEN_NAME, token(self.secret, self.cluster))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _start_command(self) -> tuple[str, ...]:
        # Ray refuses to start a head again while its former address is noted there, and a node of it lives.
        note = str(self.folder / "ray_current_cluster")
        start = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")
        return ("sh", "-c", 'rm -f "$0"; exec "$@"', note, *start, *self.arguments())

    def arguments(self) -> tuple[str, ...]:
        """The options of `ray start`."""
        found = {
            "node-ip-address": self.ip,
            "temp-dir": str(self.folder),
            "labels": ",".join(f"{name}={value}" for name, value in self._labels().items()),
            "include-log-monitor": "false",
            "object-store-memory": str(OBJECT_STORE),
            **{name: str(self.port + number) for name, number in _PORTS.items()},
            "min-worker-port": str(self.port + WORKER_PORTS),
            "max-worker-port": str(self.port + PORTS - 1),
            **_resources(self.capacity),
        }
        if self.head:
            found["address"] = self.head
        else:
            found |= {"port": str(self.port), "include-dashboard": "false"}
        role = () if self.head else ("--head",)
        return (*role, *(f"--{name}={value}" for name, value in found.items()))

    def _labels(self) -> dict[str, str]:
        """Those that Ray takes; the others are for Rekindle's own placement only."""
        fit = {
            name: value
            for name, value in self.labels.items()
            if _LABEL.fullmatch(name) and _LABEL.fullmatch(value)
        }
        return {**fit, NODE_LABEL: self.node_id}


def attached_link(state_dir: Path, attachment: Attachment, cluster: str) -> WorkerSpec:
    """The link of a node on a Ray cluster that was there before: its token is that of its surroundings.

    It starts agents on other machines unless a service manager started this one, and does it there, too.
    """
    environment = {"RAY_USAGE_STATS_ENABLED": "0"}
    asks = attachment if KEPT in os.environ else None
    return link_spec(state_dir, attachment.ray, "-", cluster, environment, asks)


def link_spec(
    state_dir: Path,
    address: str,
    ip: str,
    cluster: str,
    environment: Mapping[str, str],
    attachment: Attachment | None = None,
) -> WorkerSpec:
    """The link to the Ray of this machine."""
    module = "rekindle.actors.gateways.ray.link"
    more = () if attachment is None else (msgspec.json.encode(attachment).decode(),)
    return WorkerSpec(
        LINK,
        Command((sys.executable, "-m", module, str(state_dir), address, ip, cluster, *more)),
        restart=_FOREVER,
        health=HealthPolicy(startup_timeout_s=START_S),
        stop=StopPolicy(ask_s=1.0),
        ready=ReadyPolicy(notify=True, watchdog_s=HANGS_S),
        env=environment,
        inherit_env=("RAY_AUTH_*",),
        jobs=None,
    )


def token(secret: str, cluster: str) -> str:
    """Ray's token: it reveals nothing of the secret."""
    return hmac.digest(secret.encode(), f"rekindle ray {cluster}".encode(), "sha256").hex()


def token_environment(path: Path) -> dict[str, str]:
    """What makes Ray ask for a token, and show this one."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL": "minor",
    }


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


def _resources(capacity: Mapping[str, float]) -> dict[str, str]:
    """A capacity as options; the memory in bytes, and whole processors only."""
    found: dict[str, str] = {}
    others: dict[str, float] = {}
    for name, amount in capacity.items():
        if name in ("cpu", "gpu"):
            found[f"num-{name}s"] = str(math.floor(amount))
        elif name == "memory_mb":
            found["memory"] = str(math.floor(amount) * 1024 * 1024)
        else:
            others[name] = amount
    if others:
        found["resources"] = json.dumps(others)
    return found
