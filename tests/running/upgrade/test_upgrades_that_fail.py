"""`rekindle upgrade`: what goes wrong on the way; the former program returns, and nothing is lost."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import CREW, IMPORT_PATH, REKINDLE, Other, Running, pids
from tests.running.upgrade.upgrading import UPGRADE_S, upgraded

from rekindle.actors.handover.sealed_file import SEALS


@pytest.mark.parametrize(
    ("file", "text", "instead"),
    [
        (
            "cli/supervise/upgrade/resumption.py",
            "    inheritance, is_former = inherited(), FAILED in os.environ\n",
            "    raise OSError('no')\n",
        ),
        (
            "cli/supervise/upgrade/left.py",
            "            set_inheritable(inheritance.document, inheritable=False)\n",
            "            raise OSError('no')\n",
        ),
        ("cli/supervise/runner.py", "    runner.listen()\n", "    raise OSError('no')\n"),
        (
            "actors/gateways/http/http_server.py",
            '        self._serving.start(listening, "rekindle-http")\n',
            "        raise OSError('no')\n",
        ),
        (
            "actors/gateways/control/control_server.py",
            '        self._serving.start(file.socket, "rekindle-control")\n',
            "        raise OSError('no')\n",
        ),
    ],
    ids=[
        "before anything was taken over",
        "when it has read the document",
        "when the actors are there",
        "when it cannot serve the dashboard",
        "when it cannot serve the control socket",
    ],
)
def test_a_program_that_fails_after_the_exec_gives_way_to_the_former_one(
    crew: Running, other: Other, file: str, text: str, instead: str
) -> None:
    before = pids(crew)
    outcome = upgraded(crew, python=other(file, text, instead))
    assert outcome["failed"] == "no"
    assert outcome["pid"] == crew.process.pid
    assert pids(crew) == before
    os.kill(before["worker:bound:0"], signal.SIGKILL)
    crew.wait_for("worker:bound:0", generation=2, status="healthy")
    with urllib.request.urlopen(crew.client.get("/info")["dashboard"], timeout=30) as answer:
        assert answer.status == 200
    assert upgraded(crew)["failed"] is None


def test_a_program_that_hangs_while_it_is_loaded_gives_way_to_the_former_one(
    crew: Running, other: Other
) -> None:
    """No worker was watched any more, forever."""
    before = pids(crew)
    begins = "            signal.alarm(LOAD_S)\n"
    hangs = "            signal.alarm(1)\n            __import__('threading').Event().wait()\n"
    outcome = upgraded(crew, python=other("__main__.py", begins, hangs))
    assert "it was not loaded within" in outcome["failed"]
    assert pids(crew) == before
    assert upgraded(crew)["failed"] is None


def test_a_program_that_hangs_before_it_is_ready_gives_way_to_the_former_one(
    crew: Running, other: Other
) -> None:
    before = pids(crew)
    python = other("cli/supervise/upgrade/left.py", "READY_S = 60.0", "READY_S = 1.0")
    runner = Path(python).parents[1] / "code" / "rekindle" / "cli" / "supervise" / "runner.py"
    hangs = "    threading.Event().wait()\n    runner.listen()\n"
    runner.write_text(runner.read_text().replace("    runner.listen()\n", hangs, 1))
    outcome = upgraded(crew, python=python)
    assert outcome["failed"] == "it was not ready within 1 s"
    assert pids(crew) == before


def test_a_file_that_is_damaged_during_the_hand_over_is_waited_for(
    crew: Running, other: Other, tmp_path: Path
) -> None:
    """Neither program could load it, and the supervisor ended with all workers."""
    before, file = pids(crew), tmp_path / "workers.toml"
    read = "    inheritance, is_former = inherited(), FAILED in os.environ\n"
    damage = f"    __import__('pathlib').Path({str(file)!r}).write_text('nonsense')\n"
    crew.order("upgrade", python=other("cli/supervise/upgrade/resumption.py", read, read + damage))
    refused = "no worker is watched until the file can be loaded"
    assert eventually(lambda: refused in crew.text(), UPGRADE_S), crew.text()
    file.write_text(CREW)
    assert eventually(lambda: bool(crew.workers()), UPGRADE_S), crew.text()
    assert pids(crew) == before

    def is_told() -> bool:
        failed = crew.client.get("/upgrade")["detail"]["failed"] or ""
        return "nonsense" in crew.text() or "workers.toml" in failed

    assert eventually(is_told, UPGRADE_S), crew.text()


def test_a_stop_that_comes_while_the_supervisor_hands_over_is_obeyed_by_the_next_program(
    crew: Running,
) -> None:
    """It was forgotten: the supervisor ran on, and systemd would have killed it after 90 s."""
    crew.order("upgrade")
    assert eventually(lambda: "upgrade: handing over to" in crew.text())
    crew.signal(signal.SIGTERM)
    assert crew.end() == 0
    assert "supervisor: stopping" in crew.text()


def test_a_stop_is_obeyed_while_the_next_program_waits_for_its_database(
    crew: Running, other: Other, tmp_path: Path
) -> None:
    """It was obeyed only once the database was back."""
    before, database = pids(crew), tmp_path / ".rekindle" / "rekindle.db"
    read = "    inheritance, is_former = inherited(), FAILED in os.environ\n"
    away = f"    __import__('pathlib').Path({str(database)!r}).rename({str(tmp_path / 'away.db')!r})\n"
    crew.order("upgrade", python=other("cli/supervise/upgrade/resumption.py", read, read + away))
    waits = "no worker is watched until the database is available"
    assert eventually(lambda: waits in crew.text(), UPGRADE_S), crew.text()
    crew.signal(signal.SIGTERM)
    assert crew.end() == 1
    assert "worker:beat:0 stopped" in crew.text()
    assert not any(Path(f"/proc/{pid}").exists() for pid in before.values())


def test_a_death_that_cannot_be_written_before_the_hand_over_is_told_once(
    crew: Running, other: Other, tmp_path: Path
) -> None:
    """The next program took a start without a stored end for one that was lost with its supervisor."""
    go_on, last = tmp_path / "go_on", "        at = self._fleet.hand_over(estate)\n"
    waits = f"        while not Path({str(go_on)!r}).exists():\n            time.sleep(0.01)\n"
    upgraded(crew, python=other("cli/supervise/upgrade/upgrade_desk.py", last, waits + last))
    bound = pids(crew)["worker:bound:0"]
    assert eventually(lambda: crew.client.get("/workers")["unsaved"] == 0)
    crew.order("upgrade", python=sys.executable)
    assert eventually(lambda: crew.text().count("upgrade: handing over to") == 2)
    database = tmp_path / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as other_writer:
        other_writer.execute("BEGIN IMMEDIATE")
        os.kill(bound, signal.SIGKILL)
        assert eventually(lambda: "worker:bound:0 died" in crew.text()), crew.text()
        go_on.touch()
        assert eventually(lambda: program(crew) == sys.executable, UPGRADE_S), crew.text()
    crew.wait_for("worker:bound:0", generation=2, status="healthy")
    deaths = crew.client.get("/workers/worker:bound:0/history")["deaths"]
    assert [(each["generation"], each["cause"]) for each in deaths] == [(1, "signalled")]
    events = crew.client.get("/events/log?after=0&limit=1000")["events"]
    assert [each["cause"] for each in events if each["type"] == "worker_died"] == ["signalled"]


def program(running: Running) -> str:
    """The interpreter that the supervisor's process executes."""
    return Path(f"/proc/{running.process.pid}/cmdline").read_bytes().partition(b"\0")[0].decode()


@pytest.mark.parametrize(
    ("seals", "problem"),
    [
        (0, "the hand-over document is not sealed: it may have been tampered with"),
        (SEALS, "the hand-over document is damaged"),
    ],
    ids=["one that can be changed", "one that no supervisor wrote"],
)
def test_a_forged_hand_over_document_starts_nothing(tmp_path: Path, seals: int, problem: str) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(CREW)
    forged = os.memfd_create("rekindle-hand-over", os.MFD_ALLOW_SEALING)
    os.write(forged, b'{"parts": {}}')
    fcntl.fcntl(forged, fcntl.F_ADD_SEALS, seals)
    ran = subprocess.run(
        [*REKINDLE, "run", str(file)],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH, "REKINDLE_HAND_OVER": str(forged)},
        pass_fds=(forged,),
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(forged)
    assert ran.returncode == 1
    assert problem in ran.stderr
    assert os.listdir(tmp_path) == ["workers.toml"]
