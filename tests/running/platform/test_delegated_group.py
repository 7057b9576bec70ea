"""`rekindle run` in a control group that was given to it, as by `Delegate=yes`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run

from rekindle.actors.processes.cgroups.hierarchy import find

FOUND = find()
pytestmark = pytest.mark.skipif(isinstance(FOUND, str), reason=str(FOUND))

WORKERS = """
[worker.own]
command = ["sleep", "1000"]
cgroup = {}
[worker.plain]
command = ["sleep", "1000"]
"""


@pytest.fixture
def delegated() -> Iterator[Path]:
    assert not isinstance(FOUND, str)
    group = FOUND.base / f"test-of-rekindle-{os.getpid()}"
    group.mkdir()
    yield group
    for folder, _, _ in os.walk(group, topdown=False):
        assert eventually(lambda folder=folder: not Path(folder, "cgroup.procs").read_text())  # type: ignore[misc]
        os.rmdir(folder)


def members(group: Path, pattern: str) -> list[int]:
    found = (path.read_text().split() for path in sorted(group.glob(f"{pattern}/cgroup.procs")))
    return [int(pid) for pids in found for pid in pids]


def test_the_supervisor_moves_beside_its_workers_and_removes_their_groups(run: Run, delegated: Path) -> None:
    enter = ("sh", "-c", f'echo $$ > {delegated}/cgroup.procs; exec "$@"', "sh")
    running = run(WORKERS, within=enter)
    own = running.wait_for("worker:own:0", status="healthy")["pid"]
    plain = running.wait_for("worker:plain:0", status="healthy")["pid"]
    assert members(delegated, ".") == []
    assert {running.process.pid, plain} <= set(members(delegated, "rekindle-*-supervisor"))
    assert members(delegated, "rekindle-*/worker:own:0.1") == [own]
    assert running.stop() == 0
    assert [path.name[-11:] for path in delegated.glob("rekindle-*")] == ["-supervisor"]
