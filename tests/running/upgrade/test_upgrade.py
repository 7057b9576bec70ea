"""`rekindle upgrade`: the supervisor replaces its own program, and no worker notices."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import ended, eventually
from tests.running.conftest import CREW, Other, Run, Running, pids
from tests.running.upgrade.upgrading import UPGRADE_S, upgraded

from rekindle import __version__
from rekindle.cli.client import ControlError, OrderRefusedError


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


def test_a_stop_step_that_is_due_before_the_process_is_taken_over_waits_for_it(
    run: Run, other: Other, tmp_path: Path
) -> None:
    """SIGKILL was forgotten: the worker was called unkillable, and lived until the supervisor ended."""
    running = run(
        '[worker.deaf]\ncommand = ["sh", "-c", "trap : TERM; while :; do sleep 0.05; done"]\n'
        "stop = { ask_s = 6, kill_s = 60, last_s = 60 }\n",
        PYTHONPATH="",
    )
    pid = running.wait_for("worker:deaf:0", status="healthy")["pid"]

    def stop() -> None:
        with suppress(ControlError):  # the answer does not come: the upgrade is sooner
            running.order("workers", "worker:deaf:0", "stop")

    threading.Thread(target=stop, daemon=True).start()
    assert eventually(lambda: running.worker("worker:deaf:0").get("shown") == "stopping")
    go_on, adopt = tmp_path / "go_on", "    def _adopt(self, request: SpawnRequest) -> None:\n"
    wait = f"        while not Path({str(go_on)!r}).exists():\n            __import__('time').sleep(0.01)\n"
    running.order("upgrade", python=other("actors/processes/process_table.py", adopt, adopt + wait))
    assert eventually(lambda: "was sent SIGKILL" in running.text(), UPGRADE_S), running.text()
    go_on.touch()
    assert eventually(lambda: ended(pid)), running.text()
    running.wait_for("worker:deaf:0", shown="stopped")


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


def test_upgrades_leave_no_descriptors_behind(crew: Running) -> None:
    def opened() -> int:
        return len(os.listdir(f"/proc/{crew.process.pid}/fd"))

    upgraded(crew)
    before = opened()
    for _ in range(3):
        upgraded(crew)
    assert eventually(lambda: opened() <= before), f"{before} before, {opened()} now"


def test_sigusr1_upgrades_in_place_and_a_refusal_is_in_the_log(crew: Running) -> None:
    before = pids(crew)
    crew.signal(signal.SIGUSR1)
    assert eventually(lambda: "the supervisor was upgraded" in crew.text(), UPGRADE_S), crew.text()
    assert crew.client.get("/upgrade")["detail"]["number"] == 1
    crew.file.write_text(CREW + '[worker.more]\ncommand = ["true"]\n')
    crew.signal(signal.SIGUSR1)
    assert eventually(lambda: "upgrade: refused: " in crew.text()), crew.text()
    assert "has changed since it was loaded: apply it first with: rekindle reload" in crew.text()
    assert pids(crew) == before


# ── refusals: nothing changes ────────────────────────────────────────────────────────────


def refusal(running: Running, **body: Any) -> str:
    with pytest.raises(OrderRefusedError) as raised:
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
    for more in ("", "count = 0\n"):  # the socket of a group without workers is open, too
        (tmp_path / "workers.toml").write_text(CREW + f'[worker.more]\ncommand = ["true"]\n{more}')
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


OLDER = (
    ("cli/supervise/upgrade/runner_state.py", "    task_codes: dict[str, int] = {}\n", "runner"),
    ("actors/processes/takeover/known_child.py", "    counts_memory: bool = False\n", "processes"),
)


def test_a_part_of_the_hand_over_that_an_older_version_does_not_know_is_refused_by_the_check(
    crew: Running, other: Other, tmp_path: Path
) -> None:
    """It was noticed after the exec, and the supervisor ended with all workers."""
    for file, field, part in OLDER:
        python = other(file, field, "")
        assert f"does not understand {part} of the hand-over" in refusal(crew, python=python)
        shutil.rmtree(tmp_path / "other")


def test_an_installation_that_does_not_know_the_database_is_refused(crew: Running, other: Other) -> None:
    python = other("persistence/schema/migrate.py", "\nREVISIONS = ", "\nREVISIONS = ('0001',)\nNEWER = ")
    assert "newer" in refusal(crew, python=python)


def test_a_supervisor_without_a_database_is_not_upgraded(run: Run) -> None:
    running = run('[worker.w]\ncommand = ["sleep", "1000"]\n', "--ignore-state")
    running.wait_for("worker:w:0", status="healthy")
    assert "history in memory only" in refusal(running)


def test_an_installation_without_an_extra_that_the_file_needs_is_refused(run: Run, other: Other) -> None:
    pytest.importorskip("prometheus_client")
    running = run('[worker.w]\ncommand = ["sleep", "1000"]\n[metrics]\nenabled = true\n', PYTHONPATH="")
    pid = running.wait_for("worker:w:0", status="healthy")["pid"]
    python = other("__init__.py", f'"{__version__}"', '"99.0"')
    (packages,) = (Path(python).parents[1] / "lib").glob("*/site-packages")
    (packages / "without.pth").write_text("import sys; sys.modules['prometheus_client'] = None\n")
    assert "pip install 'rekindle-supervisor[metrics]'" in refusal(running, python=python)
    assert running.worker("worker:w:0")["pid"] == pid


def test_one_upgrade_at_a_time(crew: Running, other: Other, tmp_path: Path) -> None:
    asked, go_on, last = tmp_path / "asked", tmp_path / "go_on", "    known = {spec.id for spec in"
    waits = f"    __import__('pathlib').Path({str(asked)!r}).touch()\n"
    waits += f"    while not __import__('pathlib').Path({str(go_on)!r}).exists(): pass\n"
    python = other("cli/supervise/upgrade/dry_start.py", last, waits + last)
    order = threading.Thread(target=crew.order, args=("upgrade",), kwargs={"python": python})
    order.start()
    assert eventually(asked.exists, UPGRADE_S)
    assert "is being checked or is under way already" in refusal(crew)
    go_on.touch()
    order.join()
    assert eventually(lambda: "the supervisor was upgraded" in crew.text(), UPGRADE_S), crew.text()
