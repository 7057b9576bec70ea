"""Programs that speak sd_notify: a socket for each, only the worker's own processes are heard."""

from __future__ import annotations

import array
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import eventually

from rekindle.actors import Cause, ReadyPolicy, RestartPolicy, Status, System, WorkerSpec, command
from rekindle.actors.processes.channel import refuses_descriptors

PATIENCE_S = 20.0
NOTIFIES = ReadyPolicy(notify=True)
NOT_AGAIN = RestartPolicy(enabled=False)

BEGIN = """
import array, os, socket, subprocess, sys, time
address = os.environ["NOTIFY_SOCKET"]
print(address, os.environ.get("WATCHDOG_USEC"), flush=True)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("\\0" + address[1:])
"""
WAIT = "\ntime.sleep(1000)"


def program(body: str, ready: ReadyPolicy = NOTIFIES, **changes: object) -> WorkerSpec:
    """A Python program with a socket `s` to its supervisor."""
    return worker("app", command(sys.executable, "-c", BEGIN + body + WAIT), ready=ready, **changes)


def address_of(system: System) -> str:
    """The address that the worker printed."""
    assert eventually(lambda: system.output("app"))
    return "\0" + system.output("app")[0].split()[0][1:]


def test_a_program_is_starting_until_it_says_that_it_is_ready(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wait = f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    system = run(program(f"s.send(b'STATUS=loading')\n{wait}\ns.send(b'READY=1\\nSTATUS=serving')"))
    assert eventually(lambda: system.status("app").said == "loading")
    assert system.status("app").shown == "starting"
    assert "waits for READY=1 to its NOTIFY_SOCKET: loading." in system.explain("app")
    gate.touch()
    system.wait_for("app", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(lambda: "It says: serving" in system.explain("app"))


def test_a_program_that_misses_its_watchdog_is_ended(run: Run) -> None:
    feed = "s.send(b'READY=1')\nfor _ in range(5): s.send(b'WATCHDOG=1'); time.sleep(0.1)"
    system = run(program(feed, ReadyPolicy(notify=True, watchdog_s=0.8)))
    assert eventually(lambda: system.deaths("app"))
    assert system.deaths("app")[-1].cause is Cause.HEARTBEAT_LOST
    assert system.output("app")[0].endswith(" 800000")
    assert eventually(lambda: "no WATCHDOG=1 for" in system.explain("app"))


def test_another_program_cannot_speak_for_the_worker(run: Run, logs: list[str]) -> None:
    system = run(program(""))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.connect(address_of(system))
        other.send(b"READY=1\nSTATUS=forged")
    assert eventually(lambda: any(f"a notification of process {os.getpid()}" in line for line in logs))
    assert (system.status("app").shown, system.status("app").said) == ("starting", "")


def test_a_child_that_left_the_session_of_the_worker_is_heard(run: Run) -> None:
    child = BEGIN + "os.setsid(); s.send(b'READY=1'); sys.stdin.read()  # until the worker ends"
    system = run(program(f"subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)"))
    system.wait_for("app", Status.HEALTHY, timeout_s=PATIENCE_S)


@pytest.mark.skipif(shutil.which("systemd-notify") is None, reason="systemd-notify is not installed")
def test_a_shell_script_is_heard_through_systemd_notify(run: Run) -> None:
    system = run(shell("app", "systemd-notify --ready --status=up; sleep 1000", ready=NOTIFIES))
    system.wait_for("app", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert system.status("app").said == "up"


def test_a_descriptor_that_takes_long_to_close_holds_up_nothing(run: Run) -> None:
    """A TCP socket with SO_LINGER whose peer does not read: its close lasts as long as its owner wants."""
    linger = """
import struct
listener = socket.create_server(("127.0.0.1", 0)); a = socket.create_connection(listener.getsockname())
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 30)); a.setblocking(False)
try:
    while True: a.send(b"x" * 65536)
except BlockingIOError: pass
s.sendmsg([b"FDSTORE=1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno()]))]); a.close()
"""
    other = worker(
        "other", command(sys.executable, "-c", BEGIN + "s.send(b'READY=1')" + WAIT), ready=NOTIFIES
    )
    system = run(program(linger), other)
    system.wait_for("other", Status.HEALTHY, timeout_s=PATIENCE_S)
    system.restart("other")
    system.wait_for("other", Status.HEALTHY, timeout_s=PATIENCE_S)


@pytest.mark.skipif(not refuses_descriptors(), reason="this kernel cannot refuse descriptors")
def test_another_program_cannot_send_descriptors_that_keep_the_worker_unheard(run: Run) -> None:
    system = run(program("s.send(b'READY=1')"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.connect(address_of(system))
        handed = array.array("i", [stranger.fileno()])
        with pytest.raises(PermissionError):
            stranger.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])


def test_a_flood_is_read_slowly_and_what_is_too_long_not_at_all(run: Run, logs: list[str]) -> None:
    flood = "s.send(b'STATUS=' + b'x' * 5000)\nfor _ in range(150): s.send(b'WATCHDOG=1')\ns.send(b'READY=1')"
    system = run(program(flood))
    system.wait_for("app", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert any("more than 4096 bytes" in line for line in logs)
    assert any("too many notifications" in line for line in logs)


def test_the_socket_of_the_supervisor_itself_is_not_handed_down(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.setenv(name, "7")
    system = run(shell("app", "env; sleep 1000", inherit_env=("*",)))
    assert eventually(lambda: any(line.startswith("REKINDLE_WORKER=") for line in system.output("app")))
    names = {line.partition("=")[0] for line in system.output("app")}
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}


def test_the_words_of_a_program_that_ends_at_once_are_not_lost(run: Run) -> None:
    body = "s.send(b'READY=1'); s.send(b'STATUS=done'); os._exit(3)"
    system = run(program(body, restart=NOT_AGAIN))
    assert eventually(lambda: system.deaths("app"))
    assert [death.exit_code for death in system.deaths("app")] == [3]
