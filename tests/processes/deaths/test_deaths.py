"""A worker dies: what is noticed, what is written down, and who is back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, python, shell, sleeper, worker
from tests.processes.waiting import PATIENCE_S, Held, ended, eventually

from rekindle.actors import Cause, Exit, RestartOn, Status, System, WorkerDied, WorkerStarted, command
from rekindle.actors.processes.child import Child
from rekindle.actors.processes.watch.worker_output import WorkerOutput


def pid_of(system: System, id_: str) -> int:
    """The pid of the worker, once it is healthy."""
    pid = system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    return pid


@pytest.mark.parametrize("spec", [sleeper("w"), python("wait", "w")], ids=["command", "python"])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_f1_f2_a_killed_worker_is_written_down_before_it_is_back(
    run: Run, rows: Rows, spec: object, signum: signal.Signals
) -> None:
    system = run(spec)  # type: ignore[arg-type]
    with system.events() as events:
        os.kill(pid_of(system, "w"), signum)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
        assert isinstance(died, WorkerDied)
        assert (died.death.cause, died.death.exit) == (Cause.SIGNALLED, Exit(signal=signum))
        assert signum.name in str(died.death)
        again = events.until(lambda event: isinstance(event, WorkerStarted), PATIENCE_S)
    assert isinstance(again, WorkerStarted)
    assert again.generation == 2
    assert rows.deaths("w") == [(1, "signalled", None, signum, "restart")]
    assert rows.restart_count("w") == 1


@pytest.mark.parametrize(
    ("restart_on", "script", "restarted"),
    [
        (RestartOn.ALWAYS, "exit 0", True),
        (RestartOn.ALWAYS, "exit 7", True),
        (RestartOn.ON_FAILURE, "exit 0", False),
        (RestartOn.ON_FAILURE, "exit 7", True),
        (RestartOn.ON_FAILURE, "kill -9 $$", True),
        (RestartOn.NEVER, "exit 0", False),
        (RestartOn.NEVER, "exit 7", False),
        (RestartOn.NEVER, "kill -9 $$", False),
    ],
)
def test_f3_only_the_exits_that_the_policy_names_lead_to_a_restart(
    run: Run, rows: Rows, tmp_path: Path, restart_on: RestartOn, script: str, restarted: bool
) -> None:
    first = tmp_path / "first"
    once = f"[ -e {first} ] && exec sleep 1000; touch {first}; {script}"
    system = run(shell("w", once, restart=replace(QUICK, restart_on=restart_on)))
    if restarted:
        assert system.wait_until("w", lambda w: w.generation == 2, PATIENCE_S).restart_count == 1
    elif script == "exit 0":
        ended = system.wait_until("w", lambda w: w.shown == "stopped" and w.why != "", PATIENCE_S)
        assert (ended.restart_count, ended.why) == (0, "finished: exited with code 0")
    else:
        assert system.wait_until("w", lambda w: w.shown == "crashed", PATIENCE_S).restart_count == 0
        assert "restart_on" in system.status("w").why
    assert eventually(lambda: len(rows.deaths("w")) == 1)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """An executable file."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\nexec sleep 1000\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("problem", "errno_text"),
    [
        ("missing", "No such file or directory"),
        ("not executable", "Permission denied"),
        ("bad interpreter", "No such file or directory"),
        ("not a program", "Exec format error"),
        ("missing folder", "No such file or directory, for its working directory: '/no/such/folder'"),
    ],
)
def test_f4_a_program_that_cannot_start_fails_with_the_errno_text(
    run: Run, rows: Rows, script: Path, problem: str, errno_text: str
) -> None:
    match problem:
        case "missing":
            script.unlink()
        case "not executable":
            script.chmod(0o644)
        case "bad interpreter":
            script.write_text("#!/no/such/interpreter\n")
        case "not a program":
            script.write_bytes(b"\x00\x01\x02\x03")
        case _:
            pass  # the program is sound, its folder is not
    limited = replace(QUICK, max_consecutive=3, initial_delay_s=0.1)
    cwd = "/no/such/folder" if problem == "missing folder" else None
    system = run(worker("w", command(str(script)), restart=limited, cwd=cwd))
    failed = system.wait_for("w", Status.FAILED, timeout_s=PATIENCE_S)
    assert errno_text in (failed.failure_reason or "")
    assert (failed.restart_count, failed.generation, failed.pid) == (3, 4, None)
    assert eventually(lambda: len(rows.deaths("w")) == 4)
    assert {cause for _, cause, *_ in rows.deaths("w")} == {"spawn_failed"}
    stamps = rows("SELECT died_at_wall_ms, delay_ms FROM rekindle_death ORDER BY generation")
    assert [delay for _, delay in stamps] == [100, 200, 200, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start programs as another user")
def test_a_missing_folder_is_named_for_another_user_too(run: Run) -> None:
    spec = worker(
        "w", command("true"), restart=replace(QUICK, max_consecutive=1), cwd="/no/such", user="root"
    )
    failed = run(spec).wait_for("w", Status.FAILED, timeout_s=PATIENCE_S)
    assert "for its working directory: '/no/such'" in (failed.failure_reason or "")


def test_f4_an_exit_code_that_means_give_up_fails_at_once(run: Run, rows: Rows) -> None:
    system = run(shell("w", "exit 78", restart=replace(QUICK, give_up_exit_codes=(3, 78))))
    failed = system.wait_for("w", Status.FAILED, timeout_s=PATIENCE_S)
    assert "exit code 78" in (failed.failure_reason or "")
    assert eventually(lambda: rows.deaths("w") == [(1, "exited", 78, None, "mark_failed")])


@pytest.mark.usefixtures("both_ways")
def test_f4_a_function_that_does_not_exist_ends_with_its_code_and_says_why(run: Run) -> None:
    system = run(python("no_such_function", restart=replace(QUICK, give_up_exit_codes=(3,))))
    failed = system.wait_for("no_such_function", Status.FAILED, timeout_s=PATIENCE_S)
    assert "exit code 3" in (failed.failure_reason or "")
    assert any("no_such_function" in line for line in system.output("no_such_function"))


@pytest.mark.usefixtures("both_ways")
def test_pp_09_the_end_of_a_killed_worker_is_noticed_within_a_second(run: Run) -> None:
    """In the best of ten tries: a busy machine may delay any one of them."""
    system = run(python("wait", restart=replace(QUICK, max_lifetime=None, max_in_window=None)))
    took = []
    for _ in range(10):
        with system.events() as events:
            began = time.monotonic()
            os.kill(pid_of(system, "wait"), signal.SIGKILL)
            events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
            took.append(time.monotonic() - began)
        if took[-1] < 1.0:
            return
    raise AssertionError(took)


@pytest.mark.usefixtures("both_ways")
def test_pp_10_the_end_of_one_worker_is_noticed_although_its_twin_lives(run: Run) -> None:
    system = run(python("wait", "a"), python("wait", "b"))
    first, twin = pid_of(system, "a"), pid_of(system, "b")
    with system.events() as events:
        os.kill(first, signal.SIGKILL)
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.component_id == "a"
    assert system.status("b").pid == twin


@pytest.mark.usefixtures("both_ways")
def test_f8_grandchildren_in_the_group_end_with_their_worker_and_a_stray_is_listed(
    run: Run,
) -> None:
    system = run(python("start_grandchildren", restart=replace(QUICK, enabled=False)))
    id_ = "start_grandchildren"
    job = system.wait_until(id_, lambda w: w.current_job is not None, PATIENCE_S).current_job
    stays, leaves = map(int, str(job).split())
    with Held([stays, leaves]) as held:
        assert system.strays() == ((leaves, id_),)
        os.kill(pid_of(system, id_), signal.SIGKILL)
        system.wait_for(id_, Status.DEAD, timeout_s=PATIENCE_S)
        assert eventually(lambda: held.living() == [leaves])
        assert system.strays() == ((leaves, id_),)
        os.kill(leaves, signal.SIGKILL)
        assert held.all_end()
    assert system.strays() == ()


def test_f8_a_grandchild_that_keeps_the_output_open_does_not_delay_the_death(run: Run) -> None:
    once = replace(QUICK, enabled=False)
    system = run(shell("w", "setsid sleep 1000 & echo on its way; exec sleep 1000", restart=once))
    assert eventually(lambda: len(system.strays()) == 1 and "on its way" in system.output("w"))
    with system.events() as events:
        os.kill(pid_of(system, "w"), signal.SIGKILL)
        events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    os.kill(system.strays()[0][0], signal.SIGKILL)
    assert eventually(lambda: system.strays() == ())


@pytest.mark.usefixtures("both_ways")
def test_f9_a_worker_has_its_own_channel_and_no_other_descriptor_of_ours(run: Run) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    try:
        specs = [python("wait", f"python:{n}") for n in range(3)] + [sleeper(f"sleep:{n}") for n in range(3)]
        system = run(*specs)
        pids = {spec.id: pid_of(system, spec.id) for spec in specs}
        found = [beyond_stdio(id_, pid) for id_, pid in pids.items()]
        assert os.readlink(f"/proc/self/fd/{read}") not in {name for names in found for name in names}
        channels = [name for names in found for name in names if name.startswith("socket:")]
        assert len(channels) == len(set(channels)) == 3
        for pid in pids.values():
            assert os.readlink(f"/proc/{pid}/fd/0") == os.devnull
    finally:
        os.close(read)
        os.close(write)


def beyond_stdio(id_: str, pid: int) -> list[str]:
    """What a worker has open beside stdin, stdout and stderr."""
    folder = f"/proc/{pid}/fd"
    found = sorted(os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if int(fd) > 2)
    kinds = [name.partition(":")[0] for name in found]
    # Its channel, the place for its last words, and a pipe of its own that wakes its heartbeats.
    assert kinds == (["/memfd", "pipe", "pipe", "socket"] if id_.startswith("python") else []), found
    return found


@pytest.mark.usefixtures("both_ways")
def test_a_worker_is_the_leader_of_its_own_session(run: Run) -> None:
    system = run(python("wait"), sleeper())
    for id_ in ("wait", "sleeper"):
        pid = pid_of(system, id_)
        assert os.getsid(pid) == os.getpgid(pid) == pid


def test_a_command_with_pdeathsig_runs_as_itself_and_is_back_after_a_kill(run: Run) -> None:
    system = run(worker("w", command("sleep", "1000", pdeathsig=True)))
    pid = pid_of(system, "w")
    assert eventually(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\x00")
    os.kill(pid, signal.SIGKILL)
    system.wait_until("w", lambda w: w.generation == 2 and w.pid is not None, PATIENCE_S)
    assert ended(pid)


@pytest.mark.usefixtures("both_ways")
def test_a_worker_that_closes_its_channel_is_ended_and_replaced(run: Run, rows: Rows) -> None:
    system = run(python("close_the_channel"))
    id_ = "close_the_channel"
    system.wait_until(id_, lambda w: w.generation >= 2, PATIENCE_S)
    assert rows.deaths(id_)[0][1] == "channel_closed"


@pytest.mark.parametrize(
    ("of", "part"),
    [(WorkerOutput, "finish_at_once"), (WorkerOutput, "drain"), (Child, "read_frames"), (Child, "remains")],
)
@pytest.mark.usefixtures("both_ways")
def test_a_death_is_reported_although_evidence_cannot_be_gathered(
    run: Run, rows: Rows, of: type, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = run(python("wait", "w"))
    pid = pid_of(system, "w")
    if part == "drain":
        monkeypatch.setattr(WorkerOutput, "finish_at_once", lambda _: False)

    def raises(*_: object) -> None:
        raise OSError("no such page")

    monkeypatch.setattr(of, part, raises)
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: rows.deaths("w") != [])
    monkeypatch.undo()
    assert rows.deaths("w")[0] == (1, "signalled", None, signal.SIGKILL, "restart")
    assert pid_of(system, "w") != pid


_DEBUGGER = """
import ctypes, sys
SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(SEIZE, int(sys.argv[1]), None, None), flush=True)
sys.stdin.read()
"""


def test_an_ended_process_that_a_debugger_keeps_delays_no_other_worker(run: Run, rows: Rows) -> None:
    """The debugger has the first word on it. To wait for that stopped the watch over all others."""
    system = run(sleeper("kept"), sleeper("other"))
    kept, other = pid_of(system, "kept"), pid_of(system, "other")
    debugger = subprocess.Popen(
        [sys.executable, "-c", _DEBUGGER, str(kept)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with debugger:
        assert debugger.stdin is not None
        assert debugger.stdout is not None
        if debugger.stdout.readline().strip() != b"0":
            debugger.stdin.close()
            pytest.skip("no process may debug another one here")
        for pid in (kept, other):
            os.kill(pid, signal.SIGKILL)
        system.wait_until("other", lambda w: w.generation == 2 and w.pid is not None, PATIENCE_S)
        assert rows.deaths("kept") == []
        debugger.stdin.close()
        system.wait_until("kept", lambda w: w.generation == 2 and w.pid is not None, PATIENCE_S)
    assert rows.deaths("kept") == [(1, "signalled", None, 9, "restart")]


def test_a_last_frame_without_a_line_end_still_names_the_job_of_the_dead(run: Run, rows: Rows) -> None:
    script = (
        'printf \'{"status":"healthy"}\\n\' >&$REKINDLE_FD; sleep 0.2; '
        'printf \'{"status":"healthy","current_job":42}\' >&$REKINDLE_FD; kill -9 $$'
    )
    once = replace(QUICK, enabled=False)
    run(*[worker(f"w:{n}", command("sh", "-c", script, reports_health=True), restart=once) for n in range(6)])
    assert eventually(lambda: rows("SELECT count(*) FROM rekindle_death") == [(6,)])
    assert rows("SELECT DISTINCT job FROM rekindle_death") == [("42",)]
