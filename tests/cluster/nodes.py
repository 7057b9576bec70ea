"""Nodes of one cluster on this machine, and the traces that their workers write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from tests.leftovers import ends_with_tests
from tests.services import PostgresService

from rekindle.cli.commands.run.nodes.cluster_status import document
from rekindle.cli.main import main as rekindle
from rekindle.persistence.cluster.cluster_desk import ClusterDesk
from rekindle.worker.guardian import is_zombie

PATIENCE_S = 90.0
"""For what takes seconds on a quiet machine."""

LEASE_S = 3.0

WORKER = """
exec 9<> <(:)
[ -e "{folder}/$REKINDLE_WORKER.deaf" ] && trap "" TERM
while :; do
  echo "$EPOCHREALTIME $REKINDLE_NODE $$ $REKINDLE_TOKEN" >> "{folder}/$REKINDLE_WORKER.trace"
  if [ -e "{folder}/$REKINDLE_WORKER.crash" ]; then
    rm "{folder}/$REKINDLE_WORKER.crash"; echo "crash of $REKINDLE_WORKER"; exit 3
  fi
  read -rt 0.05 -u 9
done
"""
"""Writes down that it lives, and crashes when it is told to. It waits without a program for each wait."""


class Trace(NamedTuple):
    """One sign of life of a worker."""

    at: float
    node: str
    pid: int
    token: int


class Life(NamedTuple):
    """One process of a worker, from its first sign of life to its last."""

    began: float
    ended: float
    node: str
    token: int


def until(condition: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> Any:
    """The first true answer of the condition."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within_s:g} s for {what}")
        time.sleep(0.05)
    return found


class Nodes:
    """Starts, kills and freezes the agents of a cluster."""

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self._workers = ""
        self._desk: ClusterDesk | None = None
        (folder / "secret").write_text("of the test")
        (folder / "secret").chmod(0o600)

    # ── files and commands ───────────────────────────────────────────────────────────────

    def file(self, name: str) -> Path:
        """The file of a node."""
        return self.folder / f"{name}.toml"

    def describe(self, name: str, *, cluster: str = "", more: str = "") -> None:
        """Write the file of a node; `cluster` has further settings of its [cluster] table."""
        self.file(name).write_text(
            f'database = "{self.database}"\nstate_dir = "{self.folder / name}"\n'
            f'[cluster]\nname = "test"\nnode = "{name}"\nlease_s = {LEASE_S}\n'
            f'secret_file = "secret"\n{cluster}\n{self._workers}\n{more}'
        )
        self.file(name).chmod(0o600)

    def declare(self, workers: str) -> None:
        """Declare workers by their tables; call it before `describe` or `join`."""
        self._workers = workers

    def workers(self, count: int = 1, *, place: str = "", restart: str = "") -> None:
        """Declare this many workers that write traces; call it before `describe` or `join`."""
        command = json.dumps(["bash", "-c", WORKER.format(folder=self.folder)])
        self._workers = (
            f"[worker.web]\ncommand = {command}\ncount = {count}\n"
            f"{f'place = {place}' if place else ''}\n"
            f"[worker.web.restart]\ninitial_delay_s = 0.1\nmin_delay_s = 0.0\nmax_delay_s = 0.2\n{restart}\n"
        )

    def run(self, *words: str, code: int = 0) -> str:
        """A command of `rekindle`; its standard output."""
        found = subprocess.run(
            [sys.executable, "-m", "rekindle", *words], capture_output=True, text=True, check=False
        )
        assert found.returncode == code, (words, found.stdout, found.stderr)
        return found.stdout if code == 0 else found.stderr

    def apply(self, name: str) -> None:
        """Let the cluster run the workers of the node's file."""
        self._run_here("apply", str(self.file(name)))

    def order(self, *words: str, code: int = 0) -> str:
        """A command of `rekindle cluster`, with the file of the first node."""
        return self._run_here(*words, "--file", str(self.file(next(iter(self.agents)))), code=code)

    def move(self, component_id: str, node: str) -> None:
        """Move a worker, once its next node holds a lease: on a busy machine that may be a moment later."""
        until(lambda: self.hold_leases(node), f"{node} to hold its lease")
        self.order("move", component_id, node)

    def _run_here(self, *words: str, code: int = 0) -> str:
        """A command of `rekindle cluster` without the half second that a process takes to load it."""
        found = CliRunner().invoke(rekindle, ["cluster", *words])
        assert found.exit_code == code, (words, found.output, found.exception)
        return found.stdout if code == 0 else found.stderr

    def status(self) -> dict[str, Any]:
        """What `rekindle cluster status` says, without the half second that a command takes to start."""
        desk = self._desk = self._desk or ClusterDesk(self.database)
        return document("test", desk.read(), desk.restarts(), desk.leader(), desk.name)

    # ── agents ───────────────────────────────────────────────────────────────────────────

    def join(self, *names: str, **described: str) -> None:
        """Start the agents of these nodes, and wait until they hold their leases."""
        for name in names:
            if not self.file(name).exists():
                self.describe(name, **described)
            self.start(name)
        until(lambda: self.hold_leases(*names), f"{names} to join")

    def start(self, name: str, *program: str, command: str = "join") -> None:
        """Start the agent of a node; `program` is another `rekindle` than the one of this repository."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.agents[name] = subprocess.Popen(
                [*(program or (sys.executable, "-m", "rekindle")), "cluster", command, str(self.file(name))],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends_with_tests(self.agents[name].pid)

    def hold_leases(self, *names: str) -> bool:
        """Whether the database says so."""
        for name in names:
            assert self.agents[name].poll() is None, self.log(name)
        return set(names) <= {node["name"] for node in self.status()["nodes"] if node["lease_left_ms"]}

    def until_acquainted(self, *names: str) -> None:
        """Wait until these nodes know each other: one that is cut off before that is its own majority."""
        until(lambda: self._know_each_other(set(names)), f"{names} to know each other")

    def _know_each_other(self, names: set[str]) -> bool:
        desk = self._desk = self._desk or ClusterDesk(self.database)
        found = [node for node in desk.read().nodes if node.name in names]
        ids = {node.id for node in found}
        return len(ids) == len(names) and all(ids <= set(node.members) for node in found)

    def state(self, name: str) -> str:
        """What the node is to the cluster."""
        return next(str(node["state"]) for node in self.status()["nodes"] if node["name"] == name)

    def log(self, name: str) -> str:
        """What the agent has logged."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """Kill the agent; its guardian kills its workers."""
        self.agents[name].kill()
        self.agents[name].wait(PATIENCE_S)

    def signal(self, name: str, number: int) -> None:
        """Send the agent a signal."""
        self.agents[name].send_signal(number)

    def close(self) -> None:
        """End the agents; the processes of their workers must end with them."""
        if self._desk is not None:
            self._desk.close()
        for agent in self.agents.values():
            with suppress(ProcessLookupError):
                agent.send_signal(signal.SIGCONT)
                agent.terminate()
        for name, agent in self.agents.items():
            try:
                agent.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                agent.kill()
                pytest.fail(f"the agent of {name} did not end: {self.log(name)[-2000:]}")
        until(lambda: not self.living(), "every worker to end")

    # ── workers ──────────────────────────────────────────────────────────────────────────

    def places(self) -> dict[str, str | None]:
        """Where the database has each worker."""
        return {each["component_id"]: each["node"] for each in self.status()["workers"]}

    def traces(self, component_id: str = "worker:web:0") -> list[Trace]:
        """The signs of life of a worker, in the order in which they were written."""
        file = self.folder / f"{component_id}.trace"
        if not file.exists():
            return []
        rows = [line.split() for line in file.read_text().splitlines()]
        return [Trace(float(row[0]), row[1], int(row[2]), int(row[3])) for row in rows if len(row) == 4]

    def lives(self, component_id: str = "worker:web:0") -> list[Life]:
        """The processes of a worker, oldest first."""
        found: defaultdict[int, list[Trace]] = defaultdict(list)
        for trace in self.traces(component_id):
            found[trace.token].append(trace)
        made = [Life(each[0].at, each[-1].at, each[0].node, token) for token, each in found.items()]
        return sorted(made)

    def living(self) -> set[int]:
        """The pids of all workers that have written a trace and run."""
        pids = {each.pid for file in self.folder.glob("*.trace") for each in self.traces(file.stem)}
        return {pid for pid in pids if os.path.exists(f"/proc/{pid}") and not is_zombie(pid)}

    def runs_on(self, component_id: str = "worker:web:0") -> str | None:
        """The node of the latest sign of life, if that is fresh."""
        traces = self.traces(component_id)
        return traces[-1].node if traces and time.time() - traces[-1].at < 2.0 else None

    def until_runs(self, *component_ids: str, elsewhere_than: str = "") -> str:
        """Wait until these workers write traces; the node of the last one."""
        node = ""
        for id_ in component_ids or ("worker:web:0",):
            node = until(partial(self._fresh, id_, elsewhere_than), f"{id_} to run")
        return node

    def _fresh(self, component_id: str, elsewhere_than: str) -> str | None:
        found = self.runs_on(component_id)
        return None if found == elsewhere_than else found

    @contextmanager
    def deaf(self, component_id: str = "worker:web:0") -> Iterator[None]:
        """Let the processes of a worker that start meanwhile ignore SIGTERM."""
        file = self.folder / f"{component_id}.deaf"
        file.touch()
        yield
        file.unlink()

    def crash(self, component_id: str = "worker:web:0") -> None:
        """Let a worker crash, and wait until it does."""
        file = self.folder / f"{component_id}.crash"
        file.touch()
        until(lambda: not file.exists(), f"{component_id} to crash")

    def until_lives(self, count: int, component_id: str = "worker:web:0") -> None:
        """Wait until the worker has had so many processes."""
        until(lambda: len(self.lives(component_id)) == count, f"process {count} of {component_id}")

    def restarts(self, component_id: str = "worker:web:0") -> int:
        """How many the cluster has counted."""
        found = {each["component_id"]: each["restarts"] for each in self.status()["workers"]}
        return int(found[component_id])

    def assert_sound(self, *component_ids: str) -> None:
        """No two processes of a worker have overlapped, and each had a larger token than all before it."""
        for id_ in component_ids or ("worker:web:0",):
            lives = self.lives(id_)
            for before, after in pairwise(lives):
                assert before.ended <= after.began, (id_, before, after)
                assert before.token < after.token, (id_, before, after)


__all__ = ["Life", "Nodes", "PostgresService", "Trace", "until"]
