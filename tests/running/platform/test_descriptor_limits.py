"""Clients cannot take the descriptors that workers need, and a low limit stops no start."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from threading import Event, Thread

from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running
from tests.web.conftest import certificate

__all__ = ["certificate"]

FLOOD = 700


def limited(soft: int, hard: int) -> list[str]:
    """A command that runs another one with these limits of descriptors."""
    return ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh"]


def workers(count: int) -> str:
    return f'[worker.w]\ncommand = ["sleep", "1000"]\ncount = {count}\n'


def open_descriptors(running: Running) -> int:
    return len(os.listdir(f"/proc/{running.process.pid}/fd"))


def resident_mb(running: Running) -> int:
    pages = Path(f"/proc/{running.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20


def pids(running: Running) -> set[int]:
    """The processes of all workers, if all are healthy."""
    found = running.workers().values()
    return {each["pid"] for each in found} if all(each["shown"] == "healthy" for each in found) else set()


def all_back(running: Running, before: set[int]) -> bool:
    now = pids(running)
    return len(now) == len(before) and not now & before


@contextmanager
def idle_clients(path: Path, count: int) -> Iterator[None]:
    """Clients that send nothing, and come back as soon as they are turned away."""
    over = Event()

    def stay(number: int) -> None:
        while not over.is_set():
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(0.5)
                try:
                    client.connect(str(path))
                    client.recv(1)
                except OSError:
                    over.wait(0.05)

    threads = [Thread(target=stay, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(20)


def test_idle_clients_of_the_control_socket_leave_room_for_every_restart(run: Run) -> None:
    """With 63 of them and a limit of 64, only one of three killed workers came back."""
    running = run(workers(3), within=limited(64, 64))
    assert eventually(lambda: len(pids(running)) == 3)
    before = pids(running)
    with idle_clients(running.file.parent / ".rekindle" / "control.sock", 63):
        assert eventually(lambda: open_descriptors(running) >= 30)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: running.text().count("generation 2") == 3), running.text()
    assert eventually(lambda: all_back(running, before)), running.text()
    assert {each["restart_count"] for each in running.workers().values()} == {1}


def test_the_supervisor_uses_the_hard_limit_and_its_workers_keep_the_soft_one(run: Run) -> None:
    running = run(
        '[worker.w]\ncommand = ["sh", "-c", "ulimit -Sn; exec sleep 1000"]\n', within=limited(200, 900)
    )
    running.wait_for("worker:w:0", shown="healthy")
    limits = Path(f"/proc/{running.process.pid}/limits").read_text()
    assert "Max open files            900                  900" in limits
    assert eventually(lambda: running.client.get("/output")["lines"])
    assert [line["text"] for line in running.client.get("/output")["lines"]] == ["200"]


def test_workers_beyond_the_hard_limit_wait_without_a_crash_loop(run: Run) -> None:
    """400 workers with a limit of 1,024: 67 restarted without a delay, and filled the database."""
    running = run(
        workers(40) + "restart = { initial_delay_s = 0, min_delay_s = 0 }\n", within=limited(100, 100)
    )
    assert eventually(lambda: "the machine has no room" in running.text())
    since = time.monotonic()
    assert eventually(lambda: time.monotonic() > since + 3)
    # By the log: the workers have nearly all descriptors, so the control socket may have to wait for one.
    assert running.text().count("the machine has no room") == 1
    assert "died" not in running.text()
    assert "generation 2" not in running.text()


def test_clients_that_never_begin_the_tls_handshake_take_no_descriptor_from_a_worker(
    run: Run, certificate: tuple[Path, Path]
) -> None:
    """They took all of them: starts failed, a worker was given up, and the log grew by 230 MB a minute."""
    cert, key = certificate
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    http = f'[http]\nlisten = "127.0.0.1:{port}"\ntls_cert = "{cert}"\ntls_key = "{key}"\n'
    running = run(workers(2) + http, within=limited(512, 512))
    assert eventually(lambda: len(pids(running)) == 2)
    before = pids(running)
    with ExitStack() as held:
        for _ in range(FLOOD):
            client = held.enter_context(socket.socket())
            client.settimeout(20)
            client.connect(("127.0.0.1", port))
        assert open_descriptors(running) < 250
        assert resident_mb(running) < 200
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: all_back(running, before)), running.text()
        trusting = ssl.create_default_context(cafile=str(cert))
        connection = HTTPSConnection("127.0.0.1", port, timeout=20, context=trusting)
        connection.request("GET", "/session")
        assert connection.getresponse().status == 200
        connection.close()
        assert eventually(lambda: open_descriptors(running) < 100), "the handshakes do not time out"
    assert {each["restart_count"] for each in running.workers().values()} == {1}
    assert len(running.text()) < 100_000
