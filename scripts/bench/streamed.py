"""Runs Rekindle as a separate process with its events on a local TCP port:

    python -m scripts.bench.streamed ARENA SLOTS DATABASE WORKER…

Like `supervised`, but prints `ready PORT`. Every death is committed to SQLite with synchronous=FULL
before its event is sent.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from rekindle.actors import System
from rekindle.actors.gateways.api.app import create_app
from rekindle.actors.gateways.server_identity import identity
from rekindle.actors.gateways.serving.call_pools import CallPools
from rekindle.actors.gateways.serving.server_thread import ServerThread
from rekindle.actors.gateways.serving.uvicorn_server import HttpProtocol
from rekindle.cli.supervise.platform.memory import settle
from rekindle.persistence import open_store

from .arena import Arena
from .supervised import specs


class OpenProtocol(HttpProtocol):
    """Accepts every client: the port is the benchmark's own."""

    def _may_connect(self, transport: object) -> bool:
        return True


def main() -> None:
    """Run until standard input ends."""
    path, slots, database, *worker = sys.argv[1:]
    arena = Arena(Path(path), int(slots), create=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        system = System(specs(arena, 0, worker), store=open_store(database))
        with system:
            pools = CallPools()
            app = create_app(system, identity(Path(path).parent, None), pools)  # type: ignore[arg-type]
            serving = ServerThread(app, pools, name="the benchmark", protocol=OpenProtocol)
            serving.start(listening, "rekindle-bench")
            settle()
            print("ready", listening.getsockname()[1], flush=True)
            sys.stdin.read()
            serving.stop()
            system.stop_workers()


if __name__ == "__main__":
    main()
