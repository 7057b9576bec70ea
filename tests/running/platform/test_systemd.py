"""systemd's side of an upgrade: a real datagram socket in its role, and the process that it believes in."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S
from tests.running.conftest import Other, Run, pids
from tests.running.upgrade.upgrading import upgraded

WATCHDOG_S = 1.5
SLEEPERS = '[worker.sleep]\ncommand = ["sleep", "1000"]\ncount = 2\n'
CREDENTIALS = struct.Struct("3i")


class ServiceManager:
    """Receives what a service says, as systemd does: in order, with the pid that the kernel vouches for.

    It does so at once: with ten messages the socket is full, and the service drops what it says.
    """

    def __init__(self, address: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(address))
        self._said: queue.Queue[dict[str, str]] = queue.Queue()
        self._thread = threading.Thread(target=self._receive, name="service-manager")
        self._thread.start()
        self.senders: set[int] = set()

    def _receive(self) -> None:
        with self._socket:
            while True:
                text, ancillary, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(CREDENTIALS.size))
                if not text:
                    return
                self.senders |= {CREDENTIALS.unpack(data)[0] for _, _, data in ancillary}
                self._said.put(dict(line.split("=", 1) for line in text.decode().split("\n")))

    def hear_until(self, name: str) -> list[dict[str, str]]:
        """Everything up to the next message with this field."""
        heard = [self._said.get(timeout=PATIENCE_S)]
        while name not in heard[-1]:
            heard.append(self._said.get(timeout=PATIENCE_S))
        return heard

    def close(self, address: Path) -> None:
        """End the thread."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(address))
        self._thread.join()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    address = tmp_path / "notify.sock"
    manager = ServiceManager(address)
    yield manager
    manager.close(address)


def test_systemd_follows_an_upgrade_that_succeeds_and_one_that_fails(
    run: Run, other: Other, manager: ServiceManager, tmp_path: Path
) -> None:
    """The watchdog would have killed a supervisor whose upgrade takes longer than its period."""
    running = run(
        SLEEPERS,
        within=["sh", "-c", 'export WATCHDOG_PID=$$; exec "$@"', "sh"],
        NOTIFY_SOCKET=str(tmp_path / "notify.sock"),
        WATCHDOG_USEC=str(round(WATCHDOG_S * 1e6)),
        PYTHONPATH="",
    )
    main_pid = running.process.pid
    assert "MAINPID" not in manager.hear_until("READY")[-1]
    for number in range(2):
        running.wait_for(f"worker:sleep:{number}", status="healthy")
    before = pids(running)
    fails = other("cli/supervise/runner.py", "    runner.listen()\n", "    raise OSError('no')\n")
    for python, failed in ((None, None), (fails, "no")):
        asked_us = time.monotonic_ns() // 1000
        outcome = upgraded(running, **({} if python is None else {"python": python}))
        assert (outcome["failed"], outcome["pid"]) == (failed, main_pid)
        reloading = manager.hear_until("RELOADING")[-1]
        assert asked_us <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        # Nothing but the longer watchdog before READY: the program that says so is the one that runs.
        longer, *others, ready = manager.hear_until("READY")
        assert int(longer["WATCHDOG_USEC"]) > 120e6
        assert longer["WATCHDOG"] == "1"
        assert others == []
        assert ready["MAINPID"] == str(main_pid)
        assert int(ready["WATCHDOG_USEC"]) == WATCHDOG_S * 1e6
        assert "2 healthy" in ready["STATUS"]
        for _ in range(2):  # the watchdog is fed again, in its own period
            manager.hear_until("WATCHDOG")
        assert pids(running) == before
    assert running.stop() == 0
    assert "STOPPING" in manager.hear_until("STOPPING")[-1]
    # One process has said everything, as systemd wants of a service with NotifyAccess=main.
    assert manager.senders == {main_pid}
