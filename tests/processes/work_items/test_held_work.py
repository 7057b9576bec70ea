"""Work items that a worker held when its supervisor was killed, or that it let go of."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.processes.conftest import Rows, Run
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    ReleasePolicy,
    StopPolicy,
    WorkerSpec,
    command,
)

HASTY = StopPolicy(ask_s=0.1, term_s=0.2)

_HOST = """
import sys, threading
from tests.processes.work_items.test_held_work import at_work
from rekindle.actors import System
from rekindle.persistence import open_store
System([at_work(sys.argv[2])], store=open_store(sys.argv[1])).start()
threading.Event().wait()
"""


def at_work(workspace: str) -> WorkerSpec:
    """A worker at `fg-7`, which is freed by a script in the workspace."""
    beat = """while :; do echo '{"status": "healthy", "current_job": "fg-7"}' >&$REKINDLE_FD; sleep 1; done"""
    free = ReleasePolicy(command=("/bin/sh", "free", "{work_item}", "{generation}"), cwd=workspace)
    return WorkerSpec("w", command("bash", "-c", beat, reports_health=True), stop=HASTY, release=free)


def test_what_a_worker_held_that_was_killed_with_its_supervisor_is_released_at_the_next_start(
    run: Run, rows: Rows, database: Path, tmp_path: Path
) -> None:
    """JR-15, with no supervisor left to see the death: the held item stands in the store."""
    (tmp_path / "free").write_text('echo "$@" >> freed\n')
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    host = subprocess.Popen([sys.executable, "-c", _HOST, str(database), str(tmp_path)], env=environment)
    held = "SELECT key, value FROM rekindle_meta WHERE key LIKE 'held_work:%'"
    assert eventually(lambda: database.exists() and _rows_or_none(rows, held) == [("held_work:w:1", "fg-7")])
    host.kill()
    host.wait()
    assert not (tmp_path / "freed").exists()
    system = run(at_work(str(tmp_path)))
    freed = tmp_path / "freed"
    # A shell opens the file some time before it writes.
    assert eventually(lambda: freed.exists() and freed.stat().st_size > 0)
    assert freed.read_text() == "fg-7 1\n"
    assert eventually(lambda: rows("SELECT key FROM rekindle_meta WHERE key LIKE 'left_work:%'") == [])
    system.stop()


def _rows_or_none(rows: Rows, query: str) -> list[tuple[object, ...]] | None:
    """The rows, once there are tables."""
    try:
        return rows(query)
    except sqlite3.OperationalError:
        return None


def test_what_is_let_go_of_is_not_released_by_a_next_run(run: Run, rows: Rows, tmp_path: Path) -> None:
    system = run(at_work(str(tmp_path)))
    system.wait_until("w", lambda w: w.current_job == "fg-7", PATIENCE_S)
    held = "SELECT key FROM rekindle_meta WHERE key LIKE 'held_work:%'"
    assert eventually(lambda: rows(held) == [("held_work:w:1",)])
    system.stop()  # which kills it, so that its item is released
    assert rows(held) == []
