"""A file of variables in which the user of a worker has put something else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.running.conftest import REKINDLE, Run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")

FILE = """
[worker.evil]
command = ["sh", "-c", "exec sleep $LENGTH"]
user = "nobody"
env_file = "theirs/evil.env"
restart = { initial_delay_s = 0.1, clear_failed_on_change = true }
[worker.good]
command = ["sleep", "1000"]
"""


@pytest.fixture
def variables(tmp_path: Path) -> Path:
    """In a folder of the worker's user."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "secret.env").write_text("LENGTH=1000\n")
    os.chown(tmp_path / "theirs", 65534, 65534)
    return tmp_path / "theirs" / "evil.env"


def replace_by_link(variables: Path) -> None:
    variables.unlink(missing_ok=True)
    variables.symlink_to(variables.parents[1] / "secret.env")
    os.lchown(variables, 65534, 65534)


def test_variables_that_a_worker_replaced_by_a_link_keep_no_other_worker_from_its_start(
    run: Run, variables: Path
) -> None:
    """A killed supervisor ended with 2, for all workers, because of the user of one."""
    replace_by_link(variables)
    running = run(FILE)
    running.wait_for("worker:good:0", status="healthy")
    failing = running.wait_for("worker:evil:0", status="failed")
    assert "a symbolic link of another user (uid 65534) is on its path" in str(failing)
    variables.unlink()
    variables.write_text("LENGTH=1000\n")
    assert running.order("reload")["detail"]["restarted"] == ["worker:evil:0"]
    running.wait_for("worker:evil:0", status="healthy")
    assert running.stop() == 0


def test_a_reload_applies_to_all_others_while_one_user_has_replaced_its_variables(
    run: Run, variables: Path
) -> None:
    """One user could keep the supervisor from every reload."""
    variables.write_text("LENGTH=1000\n")
    running = run(FILE)
    running.wait_for("worker:evil:0", status="healthy")
    replace_by_link(variables)
    running.file.write_text(running.file.read_text() + "count = 2\n")
    summary = running.order("reload")["detail"]
    assert (summary["added"], summary["restarted"]) == (["worker:good:1"], ["worker:evil:0"])
    running.wait_for("worker:good:1", status="healthy")
    running.wait_for("worker:evil:0", status="failed")
    assert running.stop() == 0


def test_the_check_of_a_file_tells_which_variables_cannot_be_read(tmp_path: Path, variables: Path) -> None:
    replace_by_link(variables)
    file = tmp_path / "workers.toml"
    file.write_text(FILE)
    checked = subprocess.run([*REKINDLE, "config", "check", str(file)], capture_output=True, text=True)
    assert checked.returncode == 2
    (line,) = [each for each in (checked.stdout + checked.stderr).splitlines() if "evil.env" in each]
    assert "workers.toml:5: worker.evil.env_file" in line
    assert "a symbolic link of another user (uid 65534) is on its path" in line
