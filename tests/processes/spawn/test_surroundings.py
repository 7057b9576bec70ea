"""The surroundings of real processes, executed and warm: limits, priorities, groups, standard input."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import PythonCall, Rlimits, Status, Surroundings, System, WorkerDied, WorkerSpec

IS_ROOT = os.geteuid() == 0
ALL = Surroundings(
    umask="027",
    nice=7,
    ionice="best-effort:6",
    oom_score_adj=300,
    rlimits=Rlimits(nofile="100:200", core=0, stack="unlimited", fsize="1G"),
    groups=("tty",) if IS_ROOT else None,
)


def executed(wanted: Surroundings, **more: object) -> WorkerSpec:
    return replace(shell("w", "exec sleep 1000", **more), surroundings=wanted)


def warm(wanted: Surroundings) -> WorkerSpec:
    run = PythonCall("tests.processes.warm_application:serve", warm=True)
    return replace(worker("w", run), surroundings=wanted)


def pid_of(system: System) -> int:
    assert eventually(lambda: system.status("w").status is Status.HEALTHY), system.explain("w")
    return system.status("w").pid or 0


def line(pid: int, name: str) -> str:
    """A field of the status of a process."""
    found = Path(f"/proc/{pid}/status").read_text().partition(f"\n{name}:")[2]
    return found.splitlines()[0].strip()


@pytest.mark.parametrize("made", [executed, warm])
def test_a_process_has_all_that_its_worker_declares(run: Run, made: object) -> None:
    system = run(made(ALL))  # type: ignore[operator]
    pid = pid_of(system)
    assert "warm" not in system.status("w").start_note or "forked" in system.status("w").start_note
    assert (line(pid, "Umask"), os.getpriority(os.PRIO_PROCESS, pid)) == ("0027", 7)
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "300\n"
    limits = {name: resource.prlimit(pid, number) for name, number in LIMITS.items()}
    assert limits == {"nofile": (100, 200), "core": (0, 0), "stack": (-1, -1), "fsize": (1 << 30, 1 << 30)}
    if IS_ROOT:
        assert line(pid, "Groups") == "5"
    if shutil.which("ionice"):
        assert subprocess.check_output(["ionice", "-p", str(pid)], text=True) == "best-effort: prio 6\n"


LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
    "stack": resource.RLIMIT_STACK,
    "fsize": resource.RLIMIT_FSIZE,
}


def test_the_supervisor_itself_keeps_its_own(run: Run) -> None:
    before = [
        os.getpriority(os.PRIO_PROCESS, 0),
        line(os.getpid(), "Umask"),
        resource.getrlimit(LIMITS["nofile"]),
    ]
    pid_of(run(executed(ALL)))
    after = [
        os.getpriority(os.PRIO_PROCESS, 0),
        line(os.getpid(), "Umask"),
        resource.getrlimit(LIMITS["nofile"]),
    ]
    assert before == after


@pytest.mark.skipif(not IS_ROOT, reason="only root may start workers as another user")
def test_what_needs_the_rights_of_root_is_set_before_they_are_given_up(run: Run) -> None:
    pid = pid_of(run(executed(Surroundings(nice=-5, groups=("tty", "adm")), user="nobody")))
    assert (os.getpriority(os.PRIO_PROCESS, pid), line(pid, "Groups")) == (-5, "4 5")
    assert line(pid, "Uid").split() == ["65534"] * 4


@pytest.mark.parametrize("made", ["executed", "warm"])
def test_a_process_reads_the_file_that_is_its_standard_input(run: Run, tmp_path: Path, made: str) -> None:
    (tmp_path / "songs").write_text("one\ntwo\n")
    wanted = Surroundings(stdin=str(tmp_path / "songs"))
    if made == "warm":
        pid = pid_of(run(warm(wanted)))
        assert os.readlink(f"/proc/{pid}/fd/0") == str(tmp_path / "songs")
    else:
        system = run(replace(shell("w", "cat; exec sleep 1000"), surroundings=wanted))
        assert eventually(lambda: system.output("w") == ("one", "two"))


def test_a_process_reads_a_pipe_of_the_supervisor_by_its_link_in_proc(run: Run) -> None:
    """As /dev/stdin is one: its text, `pipe:[1]`, is not a path."""
    read, write = os.pipe()
    os.write(write, b"one\n")
    os.close(write)
    wanted = Surroundings(stdin=f"/proc/self/fd/{read}")
    system = run(replace(shell("w", "cat; exec sleep 1000"), surroundings=wanted))
    assert eventually(lambda: system.output("w") == ("one",)), system.status("w").why
    os.close(read)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Surroundings(stdin="/nowhere/songs"), "No such file or directory, for its stdin"),
        (Surroundings(groups=("no-such-group",)), "there is no such group"),
        (Surroundings(rlimits=Rlimits(nofile="unlimited")), "cannot set rlimits.nofile: "),
    ],
)
def test_what_cannot_be_set_fails_the_start_with_one_sentence(
    run: Run, wanted: Surroundings, reason: str
) -> None:
    system = run(executed(wanted))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert reason in str(died.death)
