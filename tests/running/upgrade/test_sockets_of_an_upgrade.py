"""The sockets of workers after an upgrade of the supervisor."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE

from tests.processes.waiting import eventually
from tests.running.conftest import Run
from tests.running.upgrade.upgrading import upgraded

FILE = """
[socket.state]
listen = "unix:app.sock"
mode = "{mode}"
[worker.app]
command = ["sleep", "1000"]
sockets = ["state"]
"""


def test_the_file_of_a_socket_is_still_the_supervisor_s_after_an_upgrade(run: Run, tmp_path: Path) -> None:
    """Its mode was not changed any more, and the file was left behind at the end."""
    running, path = run(FILE.format(mode="0600")), tmp_path / "app.sock"
    pid = running.wait_for("worker:app:0", status="healthy")["pid"]
    upgraded(running)
    running.file.write_text(FILE.format(mode="0660"))
    running.order("reload")
    assert eventually(lambda: S_IMODE(path.stat().st_mode) == 0o660), running.text()
    assert running.wait_for("worker:app:0", status="healthy")["pid"] == pid
    assert running.stop() == 0
    assert not path.exists()
