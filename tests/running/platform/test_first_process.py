"""Rekindle as the first process of a PID namespace, as in a container."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import ROOT, Run, Running

from rekindle.cli.commands.index import SECTIONS

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
if os.geteuid() != 0:
    UNSHARE += ["--user", "--map-root-user"]


def _can_unshare() -> bool:
    try:
        return (
            subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=20, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


alone = pytest.mark.skipif(not _can_unshare(), reason="this machine allows no PID namespaces")

Contained = Callable[[str], Running]

WORKERS = """
[worker.polite]
command = ["sh", "-c", "trap 'echo has got SIGTERM; exit 0' TERM; while :; do sleep 0.05; done"]
"""


def first_process(running: Running) -> int:
    """The pid of the supervisor as it is known outside."""
    unshare = running.process.pid
    found: list[str] = []

    def has_begun() -> bool:
        found[:] = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        return bool(found)

    assert eventually(has_begun)
    return int(found[0])


def children(pid: int) -> dict[str, str]:
    """The children of a process: their commands and states."""
    text = subprocess.run(
        ["ps", "-o", "stat=,args=", "--ppid", str(pid)], capture_output=True, text=True
    ).stdout
    return {line.split(None, 1)[1]: line.split()[0] for line in text.splitlines()}


@pytest.fixture
def contained(run: Run) -> Iterator[Contained]:
    """Runs files in a namespace of their own; `unshare` itself ignores signals while it waits."""
    running: list[Running] = []

    def contained(text: str) -> Running:
        running.append(run(text, within=UNSHARE))
        return running[-1]

    yield contained
    for each in running:
        if each.process.poll() is None:
            os.kill(first_process(each), signal.SIGKILL)
            each.end()


@alone
def test_sigterm_stops_the_workers_in_order_and_the_container_ends_well(contained: Contained) -> None:
    running = contained(WORKERS)
    running.wait_for("worker:polite:0", status="healthy")
    os.kill(first_process(running), signal.SIGTERM)
    assert running.end() == 0
    assert "has got SIGTERM" in running.text()


@alone
def test_orphans_of_processes_that_are_not_workers_are_reaped(contained: Contained) -> None:
    """As `docker exec` leaves them."""
    running = contained(WORKERS)
    running.wait_for("worker:polite:0", status="healthy")
    first = first_process(running)
    enter = ["nsenter", "--target", str(first), "--pid", "--mount"]
    if os.geteuid() != 0:
        enter += ["--user", "--preserve-credentials"]
    subprocess.run([*enter, "sh", "-c", "sleep 0.31 & sleep 0.32 &"], check=True, timeout=20)
    assert eventually(lambda: "sleep 0.31" not in children(first) and "sleep 0.32" not in children(first))
    assert eventually(lambda: not any(state.startswith("Z") for state in children(first).values()))
    assert running.worker("worker:polite:0")["status"] == "healthy"


@alone
def test_the_container_ends_with_the_code_of_an_essential_worker(contained: Contained) -> None:
    give_up = 'essential = true\nrestart = { restart_on = "never" }\n'
    api = f'[worker.api]\ncommand = ["sh", "-c", "sleep 0.2; exit 7"]\n{give_up}'
    running = contained(WORKERS + api)
    assert running.end() == 7


@alone
def test_a_signal_during_the_start_ends_the_container_although_the_kernel_would_ignore_it(
    contained: Contained,
) -> None:
    running = contained(WORKERS)
    first = first_process(running)
    assert eventually(lambda: "starting, state in" in running.text())
    os.kill(first, signal.SIGTERM)
    assert running.end() in (0, 128 + signal.SIGTERM)


def test_the_dockerfile_runs_commands_that_exist_in_exec_form() -> None:
    """Docker itself is not here: what can be read is checked."""
    text = (ROOT / "scripts" / "Dockerfile").read_text()
    known = {name for names in SECTIONS.values() for name in names}
    forms = re.findall(r"^(?:HEALTHCHECK .* CMD|ENTRYPOINT|CMD) (.+)$", text, re.MULTILINE)
    assert forms == [
        '["rekindle", "health"]',
        '["rekindle"]',
        '["run", "/app/workers.toml", "--log-json"]',
    ]
    assert {"health", "run"} <= known
    assert re.findall(r"^(FROM|USER|STOPSIGNAL) .*", text, re.MULTILINE) == [
        "FROM",
        "FROM",
        "USER",
        "STOPSIGNAL",
    ]
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        assert (ROOT / shlex.split(source)[0]).exists()
