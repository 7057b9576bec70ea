"""`rekindle upgrade`: the supervisor replaces its own program, and no worker notices."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import sysconfig
import threading
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.processes.waiting import ended, eventually
from tests.running.conftest import ROOT, Run, Running
from tests.running.upgrading import upgraded

from rekindle import __version__
from rekindle.cli.client import ControlError, RequestRefusedError

BEAT = '''
def main(worker):
    """Say that it is alive, and where it is."""
    number = 0
    while worker.running:
        print(f"beat {number}", flush=True)
        number += 1
        worker.wait(0.05)
'''

CREW = """
[worker.plain]
command = ["bash", "-c", "i=0; while true; do echo line $i; i=$((i+1)); sleep 0.02; done"]
[worker.bound]
command = ["sleep", "1000"]
pdeathsig = true
[worker.beat]
python = "beat:main"
cwd = "."
health = { heartbeat_interval_s = 0.2, staleness_s = 1, max_misses = 2 }
[http]
listen = "127.0.0.1:0"
"""

STEADY = "worker:plain:0", "worker:bound:0", "worker:beat:0"


@pytest.fixture
def crew(run: Run, tmp_path: Path) -> Running:
    (tmp_path / "beat.py").write_text(BEAT)
    running = run(CREW, PYTHONPATH="")  # which would hide another installation
    for name in STEADY:
        running.wait_for(name, status="healthy")
    return running


class Other(Protocol):
    """Makes another installation, with one line of one file changed; the path of its interpreter."""

    def __call__(self, file: str, text: str, instead: str) -> str: ...


@pytest.fixture
def other(tmp_path: Path) -> Other:
    def install(file: str, text: str, instead: str) -> str:
        home = tmp_path / "other"
        shutil.copytree(ROOT / "scripts" / "import_root" / "rekindle", home / "code" / "rekindle")
        changed = home / "code" / "rekindle" / file
        assert text in changed.read_text()
        changed.write_text(changed.read_text().replace(text, instead, 1))
        # What `python -m venv` makes, without pip.
        packages = home / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        packages.mkdir(parents=True)
        (home / "bin").mkdir()
        python = home / "bin" / "python"
        python.symlink_to(Path(sys.executable).resolve())
        (home / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
        (packages / "other.pth").write_text(f"{home / 'code'}\n{sysconfig.get_path('purelib')}\n")
        return str(python)

    return install


def pids(running: Running) -> dict[str, int]:
    """The processes that the supervisor says it has, all of which live."""
    found = {name: worker["pid"] for name, worker in running.workers().items()}
    assert not [name for name, pid in found.items() if pid is None or ended(pid)], running.text()
    return found


def numbers(running: Running, id_: str) -> list[int]:
    """The numbers that a worker has printed, as the supervisor keeps its lines."""
    lines = running.client.get(f"/output?ids={id_}&last=200")["lines"]
    return [int(line["text"].split()[1]) for line in lines]


def test_an_upgrade_keeps_every_process_and_goes_on_with_it(crew: Running) -> None:
    before, supervisor = pids(crew), crew.process.pid
    for number in (1, 2):
        outcome = upgraded(crew)
        assert outcome["number"] == number
        assert outcome["failed"] is None
        assert outcome["pid"] == supervisor
        assert pids(crew) == before
        assert all(worker["generation"] == 1 for worker in crew.workers().values())
    os.kill(before["worker:bound:0"], signal.SIGKILL)
    again = crew.wait_for("worker:bound:0", generation=2, status="healthy")
    assert again["pid"] != before["worker:bound:0"]
    (death,) = crew.client.get("/workers/worker:bound:0/history")["deaths"]
    assert death["signal"] == signal.SIGKILL
    assert crew.stop() == 0
    assert all(ended(pid) for pid in (*before.values(), again["pid"]))


def test_a_worker_that_ends_while_nobody_watches_is_recorded_once_with_its_exit_code(
    run: Run, tmp_path: Path
) -> None:
    running = run(
        '[worker.short]\ncommand = ["sh", "-c", "until [ -e go ]; do sleep 0.01; done; exit 7"]\ncwd = "."\n'
        "restart = { initial_delay_s = 60, min_delay_s = 60, max_delay_s = 60 }\n"
        '[worker.long]\ncommand = ["sleep", "1000"]\n'
    )
    pid = running.wait_for("worker:short:0", status="healthy")["pid"]
    running.wait_for("worker:long:0", status="healthy")
    running.order("upgrade")
    assert eventually(lambda: "handing over" in running.text())
    (tmp_path / "go").touch()
    dead = running.wait_for("worker:short:0", shown="crashed")
    assert ended(pid)
    (death,) = running.client.get("/workers/worker:short:0/history")["deaths"]
    assert (death["exit_code"], death["signal"], death["generation"]) == (7, None, 1)
    assert dead["restart_count"] == 1


def test_a_pending_restart_keeps_its_due_time(run: Run) -> None:
    running = run(
        '[worker.w]\ncommand = ["sh", "-c", "exit 3"]\n'
        "restart = { initial_delay_s = 600, max_delay_s = 600 }\n"
    )
    before = running.wait_for("worker:w:0", shown="crashed")
    at = time.monotonic()
    upgraded(running)
    after = running.wait_for("worker:w:0", shown="crashed")
    passed = time.monotonic() - at
    assert after["next_attempt_in_ms"] == pytest.approx(
        before["next_attempt_in_ms"] - passed * 1000, abs=2000
    )
    assert after["restart_count"] == 1


def test_output_goes_on_without_loss_or_repetition(crew: Running) -> None:
    upgraded(crew)
    upgraded(crew)
    seen = numbers(crew, "worker:plain:0")
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert eventually(lambda: numbers(crew, "worker:plain:0")[-1] > seen[-1])


def test_a_stream_of_events_goes_on_after_the_last_one_that_a_client_has(crew: Running) -> None:
    before = crew.client.get("/events/log?after=0&limit=1000")["events"]
    os.kill(crew.worker("worker:bound:0")["pid"], signal.SIGKILL)
    upgraded(crew)
    crew.wait_for("worker:bound:0", generation=2, status="healthy")
    assert eventually(
        lambda: any(
            event["type"] == "supervisor_upgraded"
            for event in crew.client.get(f"/events/log?after={before[-1]['id']}&limit=1000")["events"]
        )
    )
    after = crew.client.get(f"/events/log?after={before[-1]['id']}&limit=1000")["events"]
    assert [event["id"] for event in after] == [before[-1]["id"] + 1 + number for number in range(len(after))]


def test_the_guardian_ends_everything_when_the_upgraded_supervisor_is_killed(crew: Running) -> None:
    upgraded(crew)
    before = pids(crew)
    crew.kill()
    assert eventually(lambda: all(ended(pid) for pid in before.values()))


def test_a_stop_in_progress_goes_on_and_an_operator_s_stop_stays(run: Run, tmp_path: Path) -> None:
    running = run(
        '[worker.deaf]\ncommand = ["sh", "-c", "trap : TERM; while :; do sleep 0.05; done"]\n'
        "stop = { ask_s = 3, term_s = 1 }\n"
        '[worker.down]\ncommand = ["sleep", "1000"]\n'
    )
    pid = running.wait_for("worker:deaf:0", status="healthy")["pid"]
    running.wait_for("worker:down:0", status="healthy")
    running.order("workers", "worker:down:0", "stop")

    def stop() -> None:
        with suppress(ControlError):  # the answer does not come: the upgrade is sooner
            running.order("workers", "worker:deaf:0", "stop")

    threading.Thread(target=stop, daemon=True).start()
    assert eventually(lambda: running.worker("worker:deaf:0").get("shown") == "stopping")
    upgraded(running)
    running.wait_for("worker:deaf:0", shown="stopped")
    assert ended(pid)
    assert running.worker("worker:down:0")["shown"] == "stopped"


def test_another_version_in_another_environment_takes_over(crew: Running, other: Other) -> None:
    before = pids(crew)
    outcome = upgraded(crew, python=other("__init__.py", f'"{__version__}"', '"99.0"'))
    assert (outcome["version"], outcome["failed"]) == ("99.0", None)
    assert pids(crew) == before
    assert crew.client.get("/info")["version"] == "99.0"


def test_no_worker_is_ended_because_its_part_of_the_supervisor_is_late(crew: Running, other: Other) -> None:
    late = "    def _adopt(self) -> None:\n        __import__('time').sleep(0.3)\n"
    before = pids(crew)
    outcome = upgraded(crew, python=other("actors/worker_proxy.py", "    def _adopt(self) -> None:\n", late))
    assert outcome["failed"] is None
    upgraded(crew)  # by then every process has been taken over, or ended
    assert pids(crew) == before


# ── refusals: nothing changes ────────────────────────────────────────────────────────────


def refusal(running: Running, **body: Any) -> str:
    with pytest.raises(RequestRefusedError) as raised:
        running.order("upgrade", **body)
    assert running.client.get("/upgrade")["detail"]["number"] == 0
    return str(raised.value)


def test_what_cannot_take_over_is_refused_before_anything_changes(crew: Running, tmp_path: Path) -> None:
    before = pids(crew)
    assert "is not an absolute path" in refusal(crew, python="python3")
    assert "is not a program" in refusal(crew, python=str(tmp_path / "none"))
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no module named rekindle >&2; exit 1\n")
    fake.chmod(0o755)
    assert "no module named rekindle" in refusal(crew, python=str(fake))
    (tmp_path / "workers.toml").write_text(CREW + '[worker.more]\ncommand = ["true"]\n')
    assert "has changed since it was loaded" in refusal(crew)
    assert pids(crew) == before


def test_an_upgrade_waits_for_a_database_that_can_be_written(crew: Running, tmp_path: Path) -> None:
    with closing(
        sqlite3.connect(tmp_path / ".rekindle" / "rekindle.db", isolation_level=None)
    ) as other_writer:
        other_writer.execute("BEGIN IMMEDIATE")
        os.kill(pids(crew)["worker:bound:0"], signal.SIGKILL)
        assert "the database cannot be written now" in refusal(crew)
    crew.wait_for("worker:bound:0", generation=2, status="healthy")
    assert upgraded(crew)["failed"] is None


def test_a_hand_over_in_another_format_is_refused_by_the_check(crew: Running, other: Other) -> None:
    python = other("actors/handover/document.py", "FORMAT = 1", "FORMAT = 999")
    assert "this version reads format 999" in refusal(crew, python=python)


def test_an_installation_that_does_not_know_the_database_is_refused(crew: Running, other: Other) -> None:
    python = other("persistence/schema/migrate.py", "\nREVISIONS = ", "\nREVISIONS = ('0001',)\nNEWER = ")
    assert "newer" in refusal(crew, python=python)


def test_a_supervisor_without_a_database_is_not_upgraded(run: Run) -> None:
    running = run('[worker.w]\ncommand = ["sleep", "1000"]\n', "--ignore-state")
    running.wait_for("worker:w:0", status="healthy")
    assert "history in memory only" in refusal(running)


# ── the way back ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "text", "instead"),
    [
        (
            "cli/supervise/upgrade/resumption.py",
            "    inheritance = inherited()\n",
            "    raise OSError('no')\n",
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


def test_a_stop_that_comes_while_the_supervisor_hands_over_is_obeyed_by_the_next_program(
    crew: Running,
) -> None:
    """It was forgotten: the supervisor ran on, and systemd would have killed it after 90 s."""
    crew.order("upgrade")
    assert eventually(lambda: "upgrade: handing over to" in crew.text())
    crew.signal(signal.SIGTERM)
    assert crew.end() == 0
    assert "supervisor: stopping" in crew.text()
