"""A cluster on the machines of a room: agents, which their machines start again, and workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from rekindle.persistence.cluster.cluster_desk import ClusterDesk

from .namespaces import RoomError
from .postgres import PostgresMachine
from .room import Room
from .traces import WORKER, Life, lives

T = TypeVar("T")
REKINDLE = (sys.executable, "-m", "rekindle")
PATIENCE_S = 90.0
FRESH_S = 1.0
"""A worker whose last sign of life is not older than this runs."""

FILE = """database = "{database}"
state_dir = "{state}"

[cluster]
name = "room"
node = "{node}"
listen = "{address}:8378"
secret_file = "secret"
lease_s = {lease_s}

[worker.web]
command = {command}
count = {workers}
restart = {{ initial_delay_s = 0.0, min_delay_s = 0.0, max_delay_s = 0.1, max_in_window = "none" }}
"""


class Fleet:
    """Nodes, a database and workers that write traces."""

    def __init__(self, nodes: int, workers: int, *, crash_share: float = 0.0, lease_s: float = 3.0) -> None:
        """Make the machines; `crash_share` of all beats of a worker are its last.

        Raises:
            RoomError: machines or PostgreSQL cannot be had here.
        """
        self.room = Room()
        self.folder = Path(tempfile.mkdtemp(prefix="rekindle-room-"))
        try:
            self.database = PostgresMachine(self.room)
        except RoomError:
            self.room.close()
            shutil.rmtree(self.folder)
            raise
        self.names = tuple(f"k{number}" for number in range(1, nodes + 1))
        self.ids = tuple(f"worker:web:{number}" for number in range(workers))
        self.lease_s = lease_s
        self._share = round(crash_share * 32768)
        self._desk: ClusterDesk | None = None
        (self.folder / "secret").write_text("of the room")
        (self.folder / "secret").chmod(0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, keep: bool = False) -> None:
        """Power everything off; with `keep`, traces and logs stay."""
        self.forget_desk()
        self.room.close()
        shutil.copy(self.database.folder / "log", self.folder / "postgres.log")
        self.database.remove()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    # ── starting ─────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start the database, the agents and the workers, and wait until all of them run."""
        self.database.start()
        self.database.wait()
        for name in self.names:
            machine = self.room.add(name)
            self._describe(name)
            machine.serve((*REKINDLE, "cluster", "join", self.file(name)), self.folder / f"{name}.log")
            self.room.power_on(name)
        self.until_joined()
        first = self.names[0]
        self.room.machines[first].run(*REKINDLE, "cluster", "apply", self.file(first))
        self.until(lambda: self.all_run(), "every worker to run")

    def until_joined(self) -> None:
        """Wait until every node holds its lease."""
        self.until(self.has_joined, "every node to join")

    def has_joined(self) -> bool:
        """Whether every node holds its lease."""
        return len(self.members()) == len(self.names)

    def file(self, name: str) -> str:
        """The file of a node."""
        return str(self.folder / f"{name}.toml")

    def _describe(self, name: str) -> None:
        script = WORKER.format(folder=self.folder, share=self._share)
        text = FILE.format(
            database=self.database.url,
            state=self.folder / name,
            node=name,
            address=self.room.machines[name].address,
            lease_s=self.lease_s,
            command=json.dumps(["bash", "-c", script]),
            workers=len(self.ids),
        )
        Path(self.file(name)).write_text(text)
        Path(self.file(name)).chmod(0o600)

    def agent(self, name: str) -> int:
        """The pid of an agent; 0 if it has none."""
        return next(iter(self.room.machines[name].find("cluster", "join")), 0)

    def signal(self, name: str, number: int) -> None:
        """Send an agent, and none of its other processes, a signal."""
        with suppress(ProcessLookupError):
            if pid := self.agent(name):
                os.kill(pid, number)

    def kill_agent(self, name: str) -> None:
        """Kill an agent; its guardian kills its workers."""
        self.signal(name, signal.SIGKILL)

    # ── what is true ─────────────────────────────────────────────────────────────────────

    def until(self, condition: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
        """The first true answer of the condition.

        Raises:
            RoomError: there is none in time.
        """
        deadline = time.monotonic() + within_s
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise RoomError(f"waited {within_s:g} s for {what}")
            time.sleep(0.02)
        return found

    def lives(self, component_id: str) -> list[Life]:
        """The processes of a worker, by its own traces."""
        file = self.folder / f"{component_id}.trace"
        return lives(file.read_text().splitlines()) if file.exists() else []

    def last(self, component_id: str) -> tuple[float, str] | None:
        """The last sign of life of a worker, and its node."""
        file = self.folder / f"{component_id}.trace"
        if not file.exists():
            return None
        with file.open("rb") as traces:
            traces.seek(max(0, traces.seek(0, os.SEEK_END) - 400))
            lines = traces.read().decode().splitlines()
        words = lines[-1].split() if lines else []
        return (float(words[0]), words[1]) if len(words) >= 4 else None

    def runs_on(self, component_id: str) -> str | None:
        """Where a worker runs now."""
        found = self.last(component_id)
        return found[1] if found is not None and time.time() - found[0] < FRESH_S else None

    def all_run(self) -> bool:
        """Whether each worker has just given a sign of life."""
        return all(self.runs_on(id_) for id_ in self.ids)

    def crash(self, component_id: str) -> None:
        """Have a worker crash at its next beat."""
        (self.folder / f"{component_id}.crash").touch()

    # ── what the cluster believes ────────────────────────────────────────────────────────

    def desk(self) -> ClusterDesk:
        """The database, by a way that no fault of a cable cuts."""
        if self._desk is None:
            self._desk = ClusterDesk(self.database.local_url)
        return self._desk

    def forget_desk(self) -> None:
        """Open the database again when it is needed next."""
        if self._desk is not None:
            self._desk.close()
            self._desk = None

    def members(self) -> dict[str, Any]:
        """The nodes that hold a lease, by name."""
        read = self.desk().read()
        return {
            node.name: node
            for node in read.nodes
            if node.state.is_member and node.lease_until_ms > read.now_ms and node.incarnation > 0
        }

    def places(self) -> dict[str, str | None]:
        """Where the database has each worker."""
        read = self.desk().read()
        names = {node.id: node.name for node in read.nodes}
        return {each.component_id: names.get(each.node_id or "") for each in read.assignments}

    def counted(self) -> dict[str, int]:
        """The restarts of each worker in the database."""
        found = self.desk().restarts()
        return {id_: found.get(id_, 0) for id_ in self.ids}
