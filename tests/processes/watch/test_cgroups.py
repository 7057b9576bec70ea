"""Control groups of real processes. Limits need controllers that many machines have with version 1 only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import PATIENCE_S, Held, eventually

from rekindle.actors import (
    CgroupPolicy,
    Command,
    Finding,
    PythonCall,
    Status,
    Surroundings,
    System,
    WorkerDied,
)
from rekindle.actors.processes.cgroups.hierarchy import Hierarchy, find

FOUND = find()
pytestmark = pytest.mark.skipif(isinstance(FOUND, str), reason=str(FOUND))
OWN = Surroundings(cgroup=CgroupPolicy())


def hierarchy() -> Hierarchy:
    assert isinstance(FOUND, Hierarchy)
    return FOUND


def ours() -> list[Path]:
    """The groups of all workers of this process."""
    return sorted(path for path in hierarchy().base.glob(f"rekindle-{os.getpid()}-*/*") if path.is_dir())


def group_of(pid: int) -> str:
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


def pid_of(system: System) -> int:
    assert eventually(lambda: system.status("w").status is Status.HEALTHY), system.explain("w")
    return system.status("w").pid or 0


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert eventually(lambda: not ours())


def test_a_process_is_in_its_group_before_its_program_begins(run: Run) -> None:
    system = run(replace(shell("w", "grep ^0:: /proc/self/cgroup; exec sleep 1000"), surroundings=OWN))
    assert eventually(lambda: len(system.output("w")) == 1)
    assert system.output("w")[0].endswith(f"/w.{system.status('w').generation}")


def test_a_fork_of_a_warm_process_is_in_a_group_of_its_own(run: Run) -> None:
    call = PythonCall("tests.processes.warm_application:serve", warm=True)
    system = run(replace(worker("w", call), surroundings=OWN))
    assert group_of(pid_of(system)).endswith("/w.1")
    assert system.status("w").start_note == "forked from its warm process"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")
def test_a_process_of_another_user_enters_its_group_with_the_rights_of_the_supervisor(run: Run) -> None:
    spec = shell("w", "exec sleep 1000", user="nobody")
    assert group_of(pid_of(run(replace(spec, surroundings=OWN)))).endswith("/w.1")


def test_everything_in_the_group_ends_with_the_worker_also_in_a_host(run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    detach = f"read < <(setsid env -i sh -c 'echo $$ >> {pids}; echo; exec sleep 1000'); exec sleep 1000"
    system = run(replace(worker("w", Command(("bash", "-c", detach))), surroundings=OWN))
    assert eventually(lambda: pids.exists() and pids.read_text().strip() != "")
    left = int(pids.read_text().split()[0])
    with Held([left]) as held:
        os.kill(pid_of(system), 9)
        assert held.all_end(PATIENCE_S)
    assert eventually(lambda: [path.name for path in ours()] == ["w.2"])


def test_what_a_killed_supervisor_left_is_ended_and_removed_at_the_first_use(run: Run) -> None:
    leftover = hierarchy().base / "rekindle-999999999-1-abcdef01"
    inside = leftover / "w.1"
    inside.mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"]) as process:
        (inside / "cgroup.procs").write_text(str(process.pid))
        pid_of(run(replace(shell("w", "exec sleep 1000"), surroundings=OWN)))
        assert process.wait(PATIENCE_S) == -9
    assert not leftover.exists()


def test_a_group_that_this_machine_cannot_give_fails_the_start_with_the_reason(run: Run) -> None:
    reason = hierarchy().lacks(["memory"])
    if reason is None:
        pytest.skip("this machine can limit memory")
    spec = replace(shell("w", "true"), surroundings=Surroundings(cgroup=CgroupPolicy(memory_max="64M")))
    system = run(spec)
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert reason in str(died.death)


def test_a_process_that_exceeds_its_memory_is_certainly_known_as_out_of_memory(run: Run) -> None:
    reason = hierarchy().lacks(["memory"])
    if reason is not None:
        pytest.skip(reason)
    eat = "exec python3 -c 'x = bytearray(200 << 20); import time; time.sleep(99)'"
    system = run(replace(shell("w", eat), surroundings=Surroundings(cgroup=CgroupPolicy(memory_max="40M"))))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert eventually(lambda: bool(system.deaths("w")))
    bundle = system.bundle("w", died.death.generation)
    assert bundle is not None
    assert bundle.finding is Finding.OUT_OF_MEMORY
