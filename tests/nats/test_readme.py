"""The client that the manual shows works as it is shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.nats.test_system import Hosts, W, hosts, pid_of
from tests.processes.waiting import eventually
from tests.services import NatsService

from rekindle.actors.gateways.nats import NatsCommands

__all__ = ["hosts"]

README = (Path(__file__).parents[2] / "actors" / "gateways" / "README.md").read_text()


def test_the_client_of_the_readme_receives_a_death_and_sends_a_request(
    nats_service: NatsService, hosts: Hosts, tmp_path: Path
) -> None:
    (code,) = re.findall(r"```py\n(# listen\.py.*?)```", README, flags=re.DOTALL)
    program, shown = tmp_path / "listen.py", tmp_path / "shown"
    program.write_text(code.replace("nats://127.0.0.1:4222", nats_service.url))
    host, gateway = hosts(nats_service, commands=NatsCommands(enabled=True))
    pid = pid_of(host)
    assert eventually(lambda: gateway.state().connected)
    with shown.open("wb") as output, subprocess.Popen([sys.executable, program], stdout=output) as client:
        try:
            assert eventually(lambda: "listening" in shown.read_text())
            os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: shown.read_text().count(W) >= 2)
        finally:
            client.terminate()
    assert f"{W} died: signalled. Restart #1" in shown.read_text()
