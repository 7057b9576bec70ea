"""Log files of workers under a real `rekindle run`."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

TALK = """
[defaults]
log = { file = "logs/{name}.log" }
[worker.talk]
command = ["sh", "-c", "echo hello; echo oh >&2; printf unfinished; exec sleep 1000"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
"""


def lines(path: Path) -> list[list[str]]:
    """The lines of a log file: worker, generation, stream, text."""
    found = path.read_text().splitlines() if path.exists() else []
    return [[*line.split(" ")[1:4], line.partition(" | ")[2]] for line in found]


def log_alerts(running: Running) -> list[dict[str, str]]:
    return [each for each in running.client.get("/alerts")["alerts"] if each["kind"] == "log"]


def test_the_log_file_outlasts_the_worker_and_the_supervisor(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "talk.log"
    running = run(TALK)
    first = running.wait_for("worker:talk:0", status="healthy")
    assert eventually(lambda: len(lines(path)) == 2)
    os.kill(first["pid"], signal.SIGKILL)
    assert eventually(lambda: len(lines(path)) == 5)
    assert sorted(lines(path)[:3]) == [
        ["worker:talk:0", "1", "err", "oh"],
        ["worker:talk:0", "1", "out", "hello"],
        ["worker:talk:0", "1", "out", "unfinished"],
    ]
    running.kill()
    again = run(TALK)
    generation = again.wait_for("worker:talk:0", status="healthy")["generation"]
    assert eventually(lambda: ["worker:talk:0", str(generation), "out", "hello"] in lines(path))
    assert len(lines(path)) >= 7


def test_a_renamed_log_file_is_opened_again_on_sigusr2(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "talk.log"
    running = run(TALK)
    first = running.wait_for("worker:talk:0", status="healthy")
    assert eventually(lambda: len(lines(path)) == 2)
    path.rename(path.with_suffix(".log.1"))
    running.signal(signal.SIGUSR2)
    os.kill(first["pid"], signal.SIGKILL)
    assert eventually(lambda: ["worker:talk:0", "2", "out", "hello"] in lines(path))
    assert running.stop() == 0


def test_a_log_file_that_could_not_be_opened_is_refused_before_anything_starts(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "talk.log").symlink_to("/dev/null")
    running = run('[worker.talk]\ncommand = ["sleep", "9"]\nlog = { file = "talk.log" }')
    assert running.end() == 2
    assert "workers.toml:3: worker.talk.log.file" in running.text()
    assert "is a symbolic link" in running.text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")
def test_a_log_file_that_a_worker_replaced_by_a_link_keeps_no_worker_from_its_start(
    run: Run, tmp_path: Path
) -> None:
    """A killed supervisor could not start again, with any worker, because of the user of one."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "evil.log").symlink_to("/dev/null")
    os.chown(tmp_path / "theirs", 65534, 65534)
    running = run(EVIL)
    running.wait_for("worker:good:0", status="healthy")
    running.wait_for("worker:evil:0", status="healthy")
    assert eventually(lambda: log_alerts(running))
    assert "is a symbolic link" in log_alerts(running)[0]["reason"]
    assert running.stop() == 0


EVIL = """
[worker.evil]
command = ["sh", "-c", "echo hello; exec sleep 1000"]
user = "nobody"
log = { file = "theirs/evil.log" }
[worker.good]
command = ["sleep", "1000"]
"""

FULL = """
[worker.loud]
command = ["sh", "-c", "yes one line and another | head -c 50000000; touch done; exec sleep 1000"]
cwd = "."
log = { file = "logs/loud.log", compress = false }
[worker.calm]
command = ["sleep", "1000"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
"""


def in_a_small_room(folder: Path) -> list[str]:
    """A command that runs another one with a folder in which hardly anything fits."""
    room = f'mount -t tmpfs -o size=256k rekindle {folder} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", room, "--"]


def can_have_a_small_room(folder: Path) -> bool:
    found = subprocess.run([*in_a_small_room(folder), "true"], capture_output=True, timeout=20, check=False)
    return found.returncode == 0


def test_a_full_disk_stops_neither_a_worker_nor_the_restart_of_another(run: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    if not can_have_a_small_room(tmp_path / "logs"):
        pytest.skip("this machine allows no mounts")
    running = run(FULL, within=in_a_small_room(tmp_path / "logs"))
    calm = running.wait_for("worker:calm:0", status="healthy")
    assert eventually((tmp_path / "done").exists), "the worker wrote 50 MB, and the disk took 256 kB"
    os.kill(calm["pid"], signal.SIGKILL)
    running.wait_for("worker:calm:0", status="healthy", generation=2)
    (alert,) = log_alerts(running)
    assert "cannot be written" in alert["message"]
    assert alert["reason"] == "No space left on device"
    assert running.stop() == 0
