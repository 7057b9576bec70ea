"""Where control groups can be made, and what is written into them, on an imitated hierarchy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rekindle.actors.processes.cgroups.cgroups import Cgroups, remove_leftovers
from rekindle.actors.processes.cgroups.hierarchy import Hierarchy, find
from rekindle.actors.spec.surroundings import CgroupPolicy

V1 = "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t52\t1\npids\t0\t1\t1\n"


def machine(tmp_path: Path, *, own: str = "0::/app", controllers: str = "cpu pids") -> Path:
    """A folder like /proc, with a hierarchy in `cg`."""
    proc, base = tmp_path / "proc", tmp_path / "cg" / "app"
    (proc / "self").mkdir(parents=True)
    base.mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"4:memory:/x\n{own}\n")
    (proc / "self" / "mountinfo").write_text(
        f"30 29 0:26 / {tmp_path}/v1 rw - cgroup none rw\n31 29 0:27 / {tmp_path}/cg rw - cgroup2 none rw\n"
    )
    (proc / "cgroups").write_text(V1)
    (base / "cgroup.controllers").write_text(controllers)
    (base / "cgroup.subtree_control").write_text("")
    return proc


def test_the_place_is_the_group_of_the_supervisor(tmp_path: Path) -> None:
    found = find(machine(tmp_path))
    assert isinstance(found, Hierarchy)
    assert (found.base, found.controllers) == (tmp_path / "cg" / "app", frozenset(("cpu", "pids")))


def test_a_supervisor_that_moved_itself_still_finds_the_place(tmp_path: Path) -> None:
    found = find(machine(tmp_path, own="0::/app/rekindle-7-123-supervisor"))
    assert isinstance(found, Hierarchy)
    assert found.base == tmp_path / "cg" / "app"


def test_a_controller_of_version_1_and_one_that_is_missing_are_told_apart(tmp_path: Path) -> None:
    found = find(machine(tmp_path))
    assert isinstance(found, Hierarchy)
    assert found.lacks(["cpu", "pids"]) is None
    assert "uses the controller memory with control groups of version 1" in str(found.lacks(["memory"]))
    assert "the controller io is not available" in str(found.lacks(["io"]))


def test_a_machine_with_version_1_only_has_no_place(tmp_path: Path) -> None:
    proc = machine(tmp_path)
    (proc / "self" / "mountinfo").write_text("30 29 0:26 / /sys/fs/cgroup rw - cgroup none rw\n")
    assert find(proc) == "this machine cannot: control groups of version 2 are not mounted"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_group_that_is_not_delegated_is_no_place(tmp_path: Path) -> None:
    proc = machine(tmp_path)
    (tmp_path / "cg" / "app").chmod(0o555)
    assert "Delegate=yes" in str(find(proc))


def test_the_limits_are_written_before_a_process_enters(tmp_path: Path) -> None:
    base = tmp_path / "cg"
    base.mkdir()
    announced: list[Path] = []
    everything = frozenset(("cpu", "memory", "pids"))
    cgroups = Cgroups(
        "0123456789abcdef",
        moves=False,
        announce=announced.append,
        found=lambda: Hierarchy(base, everything, frozenset()),
    )
    (base / "cgroup.subtree_control").write_text("")
    workers = base / f"rekindle-{os.getpid()}-{_start()}-01234567"
    inside = workers / "worker:a:0.3"
    inside.mkdir(parents=True)
    (workers / "cgroup.subtree_control").write_text("cpu memory pids")
    (inside / "cgroup.procs").write_text("")
    policy = CgroupPolicy(memory_max="1M", memory_high=1000, cpu_max=2, pids_max=5)
    group = cgroups.make("worker:a:0", 3, policy)
    group.close_entrance()
    assert announced == [workers]
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    written = {file.name: file.read_text() for file in inside.iterdir() if file.name != "cgroup.procs"}
    assert written == {
        "memory.max": "1048576",
        "memory.high": "1000",
        "memory.oom.group": "1",
        "cpu.max": "200000 100000",
        "pids.max": "5",
    }
    (inside / "memory.events").write_text("low 0\noom 4\noom_kill 2\noom_group_kill 1\n")
    assert group.oom_kills() == 2


def test_only_groups_of_supervisors_that_are_gone_are_leftovers(tmp_path: Path) -> None:
    alive = tmp_path / f"rekindle-{os.getpid()}-{_start()}-01234567"
    reused = tmp_path / f"rekindle-{os.getpid()}-1-01234567"
    other = tmp_path / "rekindle-notes"
    for folder in (alive, reused, other):
        folder.mkdir()
    remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([alive, other])


def _start() -> str:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
