"""Workers of another user: where they start, and with which signals."""

from __future__ import annotations

import os
import pwd
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import StopPolicy, Surroundings, WorkerDied, command

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")

NOBODY = pwd.getpwnam("nobody").pw_uid
SHOW = "pwd -P; grep -E '^Sig(Blk|Ign)' /proc/self/status; exec sleep 1000"


def shown(run: Run, **changes: object) -> list[str]:
    system = run(shell("w", SHOW, user="nobody", **changes))
    assert eventually(lambda: len(system.output("w")) == 3), system.status("w").why
    return list(system.output("w"))


def test_a_worker_of_another_user_does_not_start_in_the_folder_of_the_supervisor(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened as root: the worker could read what lay in a folder that its user may not enter."""
    tmp_path.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    home = pwd.getpwnam("nobody").pw_dir
    assert shown(run)[0] == (home if os.path.isdir(home) else "/")


def test_the_working_directory_is_entered_with_the_rights_of_the_user(run: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    system = run(shell("w", SHOW, user="nobody", cwd=str(tmp_path)))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert "nobody cannot enter it" in str(died.death)


def test_a_worker_of_another_user_blocks_and_ignores_no_signal_of_its_host(run: Run) -> None:
    """It inherited them, and could not be stopped by SIGTERM."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        words = [line.split() for line in shown(run)[1:]]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGUSR1, before)
    assert {name: int(value, 16) for name, value in words} == {"SigBlk:": 0, "SigIgn:": 0}


def test_a_worker_of_another_user_gets_its_channel_as_a_number_of_one_digit(run: Run) -> None:
    """dash, the shell of Debian, knows no other in `>&$REKINDLE_FD`."""
    beat = """echo '{"status": "healthy", "current_job": "fg-7"}' >&$REKINDLE_FD; ls /proc/$$/fd"""
    talks = command("sh", "-c", f"{beat}; exec sleep 1000", reports_health=True)
    system = run(worker("w", talks, user="nobody", stop=StopPolicy(ask_s=0.1)))
    assert eventually(lambda: system.status("w").current_job == "fg-7"), system.status("w").why
    assert eventually(lambda: len(system.output("w")) >= 4)
    assert system.output("w")[:4] == ("0", "1", "2", "3")


def test_a_link_of_the_workers_user_does_not_give_it_a_file_of_root_to_read(run: Run, tmp_path: Path) -> None:
    """The supervisor followed it with the rights of root: the worker read any file of the machine."""
    (tmp_path / "secret").write_text("hunter22\n")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "jobs").symlink_to("secret")
    os.lchown(tmp_path / "jobs", NOBODY, NOBODY)
    wanted = Surroundings(stdin=str(tmp_path / "jobs"))
    system = run(replace(shell("w", "cat; exec sleep 1000", user="nobody"), surroundings=wanted))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert f"a symbolic link of another user (uid {NOBODY}) is on its path, for its stdin" in str(died.death)
    assert not system.output("w")
