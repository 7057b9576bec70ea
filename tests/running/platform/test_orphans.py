"""F8: what dying workers leave behind is adopted, and reaped when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, Held, ended, eventually
from tests.running.conftest import Run, Running

from rekindle.actors.processes.cgroups.hierarchy import find

AS_PID_1 = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGTERM")

DEATHS = 4

# The one is killed with its worker, the other has left its session and may live on.
LEAVING = f"""
[worker.leaving]
command = ["bash", "-c", "sleep 2000 & read < <(setsid sh -c 'echo; exec sleep 1000'); exit 1"]
restart = {{ initial_delay_s = 0.01, min_delay_s = 0, max_delay_s = 0.01, max_in_window = {DEATHS - 1} }}
stop = {{ end_detached = false }}
"""


def children(parent: int) -> dict[int, tuple[str, str]]:
    """The children of a process: by pid, the name and the state."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, ppid = tail.split()[:2]
        if int(ppid) == parent:
            found[int(stat.parent.name)] = (head.partition("(")[2], state)
    return found


def living_orphans(supervisor: int) -> list[int]:
    return [pid for pid, (name, state) in children(supervisor).items() if name == "sleep" and state != "Z"]


def no_zombies(supervisor: int) -> bool:
    return all(state != "Z" for _, state in children(supervisor).values())


def can_unshare() -> bool:
    return subprocess.run([*AS_PID_1, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("within", [(), AS_PID_1], ids=["as one of many", "as PID 1"])
def test_f8_orphans_of_dead_workers_are_reaped_when_they_end(run: Run, within: tuple[str, ...]) -> None:
    if within and not can_unshare():
        pytest.skip("no namespaces of our own here")
    running = run(LEAVING, within=within)
    running.wait_for("worker:leaving:0", shown="failed")
    supervisor = next(iter(children(running.process.pid))) if within else running.process.pid
    assert eventually(lambda: len(living_orphans(supervisor)) == DEATHS)
    for orphan in living_orphans(supervisor):
        os.kill(orphan, signal.SIGKILL)
    assert eventually(lambda: living_orphans(supervisor) == [] and no_zombies(supervisor))
    os.kill(supervisor, signal.SIGTERM)
    assert running.end() == 0


def test_f8_no_exit_status_of_a_worker_is_lost_to_the_reaping_of_orphans(run: Run) -> None:
    many = LEAVING.replace("exit 1", "exit 7").replace("exec sleep 1000", "exit") + "count = 5\n"
    running = run(many)
    for number in range(5):
        running.wait_for(f"worker:leaving:{number}", shown="failed")
        # The last of them may still be on its way into the database.
        assert eventually(lambda: exit_codes(running, f"worker:leaving:{number}") == [7] * DEATHS)  # noqa: B023


def exit_codes(running: Running, name: str) -> list[int]:
    return [death["exit_code"] for death in running.client.get(f"/workers/{name}/history")["deaths"]]


def test_f8_a_guardian_that_was_killed_is_renewed_by_a_supervisor_that_adopts(run: Run) -> None:
    running = run('[worker.sleep]\ncommand = ["sleep", "1000"]\n')
    worker = running.wait_for("worker:sleep:0", status="healthy")["pid"]
    (guardian,) = set(children(running.process.pid)) - {worker}
    os.kill(guardian, signal.SIGKILL)
    assert eventually(lambda: "guardian: ended and is started again" in running.text())
    assert eventually(lambda: len(set(children(running.process.pid)) - {worker, guardian}) == 1)
    assert eventually(lambda: no_zombies(running.process.pid))


# Detaches a process as a daemon does, with nothing of ours in its environment; its number goes to a file.
DETACH = "read < <(setsid env -i sh -c 'echo $$ >> {file}; echo; exec sleep 1000')"

SIMPLE = """
[worker.{name}]
command = ["bash", "-c", '''{script}''']
restart = {{ initial_delay_s = 0.01, min_delay_s = 0, max_delay_s = 0.01, max_in_window = {restarts} }}
"""


def detaching(name: str, file: Path, then: str, restarts: int = DEATHS - 1) -> str:
    script = f"{DETACH.format(file=file)}; {then}"
    return SIMPLE.format(name=name, script=script, restarts=restarts)


def numbers(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def test_a_program_that_daemonises_leaves_no_copies_and_log_and_explanation_say_why(
    run: Run, tmp_path: Path
) -> None:
    """Four copies of it ran at once, and none of them ended with the supervisor."""
    pids = tmp_path / "pids"
    running = run(detaching("daemon", pids, "exit 0"))
    running.wait_for("worker:daemon:0", shown="failed")
    assert len(numbers(pids)) == DEATHS
    assert all(ended(pid) for pid in numbers(pids))
    hint = f"and left process {numbers(pids)[0]}: does it daemonise? Run it in the foreground: leave out &"
    assert hint in running.text()
    failure = running.worker("worker:daemon:0")["failure_reason"]
    assert f"exited with code 0 (left process {numbers(pids)[-1]}: does it daemonise?)" in failure
    hint = f"and left process {numbers(pids)[-1]}: does it daemonise? Run it in the foreground: leave out &"
    # The last death may still be on its way into the database.
    assert eventually(lambda: hint in str(running.client.get("/workers/worker:daemon:0/explain")))


def test_what_a_worker_detached_ends_with_the_worker_and_nothing_of_its_neighbour(
    run: Run, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    wait = "exec sleep 1000"
    running = run(detaching("one", one, wait) + detaching("other", other, wait))
    assert eventually(lambda: len(numbers(one)) == len(numbers(other)) == 1)
    with Held([*numbers(one), *numbers(other)]) as held:
        running.wait_for("worker:one:0", status="healthy")
        os.kill(running.worker("worker:one:0")["pid"], signal.SIGKILL)
        assert eventually(lambda: held.living() == numbers(other))
        running.order("workers", "worker:other:0", "stop")
        assert held.all_end(PATIENCE_S)


def test_a_detached_process_that_hides_every_mark_ends_with_a_clean_stop(run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    hiding = f"prlimit --rttime=1000000000:1000000000 --pid $$; {DETACH.format(file=pids)}; exec sleep 1000"
    running = run(SIMPLE.format(name="hiding", script=hiding, restarts=3))
    assert eventually(lambda: numbers(pids))
    with Held(numbers(pids)) as held:
        assert running.stop() == 0
        assert held.all_end(PATIENCE_S)


def test_a_detached_process_with_a_clean_environment_ends_when_the_supervisor_is_killed(
    run: Run, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    running = run(detaching("daemon", pids, "exec sleep 1000"))
    running.wait_for("worker:daemon:0", status="healthy")
    with Held(numbers(pids)) as held:
        running.kill()
        assert held.all_end(PATIENCE_S)


@pytest.mark.skipif(isinstance(find(), str), reason=str(find()))
def test_a_control_group_leaves_nothing_when_the_supervisor_is_killed(run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    hiding = f"prlimit --rttime=1000000000:1000000000 --pid $$; {DETACH.format(file=pids)}; exec sleep 1000"
    running = run(SIMPLE.format(name="hiding", script=hiding, restarts=3) + "cgroup = {}\n")
    assert eventually(lambda: numbers(pids))
    with Held(numbers(pids)) as held:
        running.kill()
        assert held.all_end(PATIENCE_S)


def test_what_a_shell_started_before_it_became_the_supervisor_is_left_alone(run: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    shell = ("bash", "-c", f'sleep 1000 & echo $! > {pids}; exec "$@"', "bash")
    running = run(SIMPLE.format(name="w", script="exec sleep 1000", restarts=3), within=shell)
    running.wait_for("worker:w:0", status="healthy")
    with Held(numbers(pids)) as held:
        assert running.stop() == 0
        assert held.living() == numbers(pids)
        os.kill(numbers(pids)[0], signal.SIGKILL)


def test_what_workers_detached_ends_with_a_clean_stop_too(run: Run) -> None:
    running = run('[worker.det]\ncommand = ["bash", "-c", "setsid sleep 8881 & echo $! ; exec sleep 1000"]\n')
    running.wait_for("worker:det:0", status="healthy")
    assert eventually(lambda: running.client.get("/workers/worker:det:0/output")["lines"])
    stray = int(running.client.get("/workers/worker:det:0/output")["lines"][0])
    with Held([stray]) as held:
        running.stop()
        assert held.all_end(PATIENCE_S)
    assert f"worker:det:0 left process {stray}; the supervisor ends what is left" in running.text()
