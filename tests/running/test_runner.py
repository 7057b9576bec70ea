"""`rekindle run`: start, signals, reload, stop, and one supervisor per state directory."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, Held, ended, eventually
from tests.running.conftest import Run

from rekindle.cli.client import InvalidArgumentsError

SLEEPERS = """
[worker.sleep]
command = ["sleep", "1000"]
count = 2
"""

STUBBORN = """
[worker.stubborn]
command = ["bash", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
stop = { ask_s = 600 }
"""

FLAPPING = """
[worker.flapping]
command = ["sleep", "0.02"]
count = 4
restart = { initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0, max_in_window = 1000000, \
max_lifetime = 1000000 }
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_in_order_and_exits_0(run: Run, signum: int) -> None:
    running = run(SLEEPERS)
    pids = [running.wait_for(f"worker:sleep:{n}", status="healthy")["pid"] for n in range(2)]
    running.signal(signum)
    assert running.end() == 0
    assert all(ended(pid) for pid in pids)
    assert not (running.file.parent / ".rekindle" / "control.sock").exists()


BLOCKING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_signal_that_the_caller_had_blocked_stops_everything_too(run: Run) -> None:
    running = run(SLEEPERS, within=[sys.executable, "-c", BLOCKING])
    running.wait_for("worker:sleep:0", status="healthy")
    running.signal(signal.SIGTERM)
    assert running.end() == 0


def test_a_third_signal_kills_what_does_not_want_to_stop(run: Run) -> None:
    running = run(STUBBORN)
    pid = running.wait_for("worker:stubborn:0", status="healthy")["pid"]
    running.signal(signal.SIGINT)
    assert eventually(lambda: "stopping" in running.text())
    with Held([pid]) as held:
        running.signal(signal.SIGINT)
        running.signal(signal.SIGINT)
        assert held.all_end(PATIENCE_S)
    assert running.end() == 0
    assert "had to be killed" in running.text()


def test_f12_a_second_supervisor_of_a_state_directory_says_who_holds_it(run: Run) -> None:
    first = run(SLEEPERS)
    first.wait_for("worker:sleep:0", status="healthy")
    second = run(SLEEPERS)
    assert second.end() == 1
    assert f"pid {first.process.pid}" in second.text()
    assert first.worker("worker:sleep:0")["status"] == "healthy"


def test_a_bad_file_starts_nothing_and_exits_2(run: Run) -> None:
    running = run('[worker.a]\ncommand = ["true"]\ncuont = 2\n')
    assert running.end() == 2
    assert "cuont" in running.text()
    assert not (running.file.parent / ".rekindle" / "supervisor.lock").exists()


@pytest.mark.parametrize("way", ["SIGHUP", "socket"])
def test_cf_08_a_reload_restarts_only_what_changed(run: Run, way: str) -> None:
    running = run(SLEEPERS + '[worker.other]\ncommand = ["sleep", "1000"]\n')
    same = running.wait_for("worker:other:0", status="healthy")
    changing = running.wait_for("worker:sleep:0", status="healthy")
    running.file.write_text(running.file.read_text().replace('"1000"]\ncount = 2', '"2000"]\ncount = 3'))
    if way == "SIGHUP":
        running.signal(signal.SIGHUP)
    else:
        summary = running.order("reload")["detail"]
        assert summary["added"] == ["worker:sleep:2"]
        assert summary["restarted"] == ["worker:sleep:0", "worker:sleep:1"]
    running.wait_for("worker:sleep:0", status="healthy", generation=2)
    running.wait_for("worker:sleep:2", status="healthy")
    assert running.worker("worker:other:0")["pid"] == same["pid"]
    assert running.worker("worker:sleep:0")["pid"] != changing["pid"]
    assert running.worker("worker:sleep:0")["restart_count"] == 0


def test_a_reload_restarts_the_workers_whose_file_of_variables_changed(run: Run, tmp_path: Path) -> None:
    variables = tmp_path / "a.env"
    variables.write_text("SONG=one\n")
    running = run(
        f'[worker.a]\ncommand = ["sh", "-c", "echo $SONG; sleep 99"]\nenv_file = "{variables}"\n'
        '[worker.b]\ncommand = ["sleep", "99"]\n'
    )
    running.wait_for("worker:a:0", status="healthy")
    assert running.order("reload")["detail"].get("restarted") is None
    variables.write_text("SONG=two\n")
    assert running.order("reload")["detail"]["restarted"] == ["worker:a:0"]
    assert eventually(lambda: "worker:a:0 out | two" in running.log.read_text())
    variables.unlink()
    with pytest.raises(InvalidArgumentsError, match=r"nothing was changed.*No such file"):
        running.order("reload")


def test_a_setting_that_was_taken_back_needs_no_new_supervisor(run: Run) -> None:
    """It was compared with the file that was read last, and not with what runs."""
    running = run(SLEEPERS)
    running.wait_for("worker:sleep:0", status="healthy")
    text = running.file.read_text()
    running.file.write_text(f'database = "elsewhere.db"\n{text}')
    assert running.order("reload")["detail"]["after_a_restart_of_the_supervisor"] == ["database"]
    running.file.write_text(text)
    assert "after_a_restart_of_the_supervisor" not in running.order("reload")["detail"]


def test_cf_08_a_bad_file_changes_nothing_when_it_is_reloaded(run: Run) -> None:
    running = run(SLEEPERS)
    before = running.wait_for("worker:sleep:0", status="healthy")
    running.file.write_text('[worker.sleep]\ncommand = "a shell string"\n')
    with pytest.raises(InvalidArgumentsError, match="nothing was changed"):
        running.order("reload")
    running.signal(signal.SIGHUP)
    assert eventually(lambda: "nothing was changed" in running.text())
    assert running.worker("worker:sleep:0")["pid"] == before["pid"]


def test_systemd_is_notified_that_we_are_ready_alive_and_stopping(run: Run, tmp_path: Path) -> None:
    address = str(tmp_path / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(PATIENCE_S)
        running = run(SLEEPERS, NOTIFY_SOCKET=address, WATCHDOG_USEC="300000")
        heard = manager.recv(4096).decode()
        while "READY=1" not in heard or "WATCHDOG=1" not in heard:
            heard += "\n" + manager.recv(4096).decode()
        running.signal(signal.SIGTERM)
        while "STOPPING=1" not in heard:
            heard += "\n" + manager.recv(4096).decode()
    assert running.end() == 0
    assert "STATUS=" in heard


def test_the_watchdog_of_systemd_is_not_starved_by_workers_that_flap(run: Run, tmp_path: Path) -> None:
    address = str(tmp_path / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(PATIENCE_S)
        run(FLAPPING, NOTIFY_SOCKET=address, WATCHDOG_USEC="3000000")
        signs = 0
        for _ in range(2000):
            signs += "WATCHDOG=1" in manager.recv(4096).decode()
            if signs == 3:
                break
    assert signs == 3


def test_the_log_is_json_where_asked_with_the_worker_and_without_control_characters(run: Run) -> None:
    script = r"printf 'red \033[31m alert {brace}\n'; exec sleep 1000"
    running = run(f"[worker.w]\ncommand = ['bash', '-c', '''{script}''']\n", "--log-json")
    assert eventually(lambda: "alert" in running.text())
    lines = [json.loads(line) for line in running.text().splitlines()]
    said = next(line for line in lines if "alert" in line["message"])
    assert said["worker"] == "worker:w:0"
    assert said["message"] == "worker:w:0 out | red \\x1b[31m alert {brace}"
    assert (said["stream"], said["text"]) == ("out", "red \\x1b[31m alert {brace}")


def test_a_line_of_the_json_log_about_an_event_has_the_fields_of_the_event(run: Run) -> None:
    running = run('[worker.w]\ncommand = ["sh", "-c", "exit 7"]\n', "--log-json")
    assert eventually(lambda: "exited with code 7" in running.text())
    lines = [json.loads(line) for line in running.text().splitlines()]
    died = next(line for line in lines if line.get("event", {}).get("type") == "worker_died")
    assert (died["worker"], died["generation"]) == ("worker:w:0", 1)
    event = died["event"]
    assert (event["component_id"], event["exit_code"], event["action"]) == ("worker:w:0", 7, "restart")
    assert (event["delay_ms"], event["reason"]) == (1000, "Restart #1 with 1s backoff")


def test_orders_are_answered_while_a_start_hangs(run: Run) -> None:
    running = run('[worker.w]\npython = "tests.processes.workers:never_ready"\n', PYTHONPATH=_import_path())
    running.wait_for("worker:w:0", shown="starting")
    assert running.client.get("/info")["workers"] == 1
    running.order("workers", "worker:w:0", "pause", reason="thinking")
    running.wait_for("worker:w:0", shown="stopped", pause_reason="thinking")


def _import_path() -> str:
    root = Path(__file__).parents[2]
    return os.pathsep.join([str(root / "scripts" / "import_root"), str(root)])
