"""Programs with an executor: how they end, what they print, and who may talk to their workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.processes.executor import tasks
from tests.processes.executor.test_executor_life import S
from tests.processes.supervisors import IMPORT_PATH
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    RekindleExecutor,
)
from rekindle.worker.guardian import marked_processes


def program(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a host to its end."""
    file = folder / "program.py"
    file.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_program_that_ends_without_shutdown_finishes_its_tasks_and_leaves_nothing(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os, sys
        from rekindle.actors import RekindleExecutor

        def note(file):
            with open(file, "a") as kept:
                kept.write("x")
            return os.environ["REKINDLE_SYSTEM"]

        if __name__ == "__main__":
            executor = RekindleExecutor(2)
            first = executor.submit(note, sys.argv[1])
            for _ in range(9):
                executor.submit(note, sys.argv[1])
            print(first.result())
        """,
        str(tmp_path / "notes"),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "notes").read_text() == "x" * 10
    assert marked_processes(ran.stdout.strip()) == []


def test_a_program_without_a_main_guard_gets_an_error(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        from rekindle.actors import RekindleExecutor

        def one():
            return 1

        with RekindleExecutor(1) as executor:
            print(executor.submit(one).result(30))
        """,
    )
    assert ran.returncode == 1
    assert "if __name__ == '__main__':" in ran.stderr


def test_a_function_below_the_main_guard_gets_an_error_that_says_so(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        from rekindle.actors import RekindleExecutor

        if __name__ == "__main__":
            def one():
                return 1

            with RekindleExecutor(1) as executor:
                print(repr(executor.submit(one).exception(30)))
        """,
    )
    assert "does not find __main__:one: define it outside of `if __name__ ==" in ran.stdout


INTRUDE = """
import socket, struct, sys
line = socket.socket(socket.AF_UNIX)
line.settimeout(20)
try:
    line.connect(sys.argv[1])
    line.sendall(struct.pack(">BQQ", 1, 0, 5000) + b"x")
    print(line.recv(1))
except (ConnectionError, PermissionError):
    print(b"")
"""


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(
            "nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another")
        ),
        None,
    ],
)
def test_only_our_workers_are_listened_to(user: str | None, no_traces: None) -> None:
    """Another user cannot reach the socket, and a stranger of our own announces no long message."""
    with RekindleExecutor(1) as executor:
        assert executor.submit(tasks.square, 2).result(S) == 4
        assert executor._dispatcher is not None
        # Ours may lie where another user cannot read it.
        python = sys.executable if user is None else "/usr/bin/python3"
        argv = [python, "-c", INTRUDE, executor._dispatcher.address]
        intruder = subprocess.run(argv, user=user, capture_output=True, text=True, timeout=S, check=True)
        assert intruder.stdout == "b''\n"
        assert executor.submit(tasks.square, 3).result(S) == 9


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_another_user_finds_no_socket_of_an_executor_that_it_could_block(no_traces: None) -> None:
    """Every user could reach a socket without a file; a descriptor sent to it blocked the executor."""
    with RekindleExecutor(1) as executor:
        assert executor.submit(tasks.square, 2).result(S) == 4
        mine = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
        inodes = {name[8:-1] for name in mine if name.startswith("socket:[")}
        lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
        names = [words[7] for words in lines if len(words) > 7 and words[6] in inodes]
        assert executor._dispatcher is not None
        assert executor._dispatcher.address in names
        assert [name for name in names if name.startswith("@")] == []
        folder = Path(executor._dispatcher.address).parent
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


SLOW = """
import os, sys, time
from rekindle.actors import RekindleExecutor

def hang(file):
    with open(file, "w") as note:
        note.write(os.environ["REKINDLE_SYSTEM"])
    time.sleep(1000)

if __name__ == "__main__":
    {begin}
        running = executor.submit(hang, sys.argv[1])
        waiting = executor.submit(hang, sys.argv[1])
        {wait}
"""


WITH = "with RekindleExecutor(1) as executor:"


@pytest.mark.parametrize(
    ("begin", "wait"),
    [
        (WITH, "running.result()"),
        (WITH, "pass"),
        ("executor = RekindleExecutor(1)\n    if True:", "running.result()"),
        ("executor = RekindleExecutor(1)\n    if True:", "pass"),
    ],
    ids=["in a with block", "while a with block ends", "without one", "while the program ends"],
)
def test_ctrl_c_ends_a_program_whose_task_runs(tmp_path: Path, begin: str, wait: str) -> None:
    """It waited for the task, for as long as that takes."""
    file, note = tmp_path / "program.py", tmp_path / "note"
    file.write_text(SLOW.format(begin=begin, wait=wait))
    with subprocess.Popen(
        [sys.executable, str(file), str(note)],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as host:
        assert eventually(lambda: note.exists() and note.read_text())
        os.killpg(host.pid, signal.SIGINT)  # as a terminal does
        _, error = host.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in error
    # A KeyboardInterrupt that the interpreter swallows at its end, in an exit handler, ends it as usual.
    assert host.returncode == (0 if begin != WITH and wait == "pass" else -signal.SIGINT)
    assert marked_processes(note.read_text()) == []


def test_what_a_task_prints_is_seen_on_the_host_s_own_streams(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os, subprocess, sys
        from rekindle.actors import RekindleExecutor

        def talk(number):
            print("task", number)
            subprocess.run(["echo", "child"], check=True)
            print("problem", number, file=sys.stderr)

        if __name__ == "__main__":
            with RekindleExecutor(2) as executor:
                list(executor.map(talk, range(3)))
        """,
    )
    assert ran.returncode == 0
    assert sorted(ran.stdout.splitlines()) == ["child"] * 3 + ["task 0", "task 1", "task 2"]
    assert sorted(ran.stderr.splitlines()) == ["problem 0", "problem 1", "problem 2"]


def test_what_a_task_prints_can_be_left_to_the_evidence(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os
        from rekindle.actors import RekindleExecutor

        def talk():
            print("task")
            os._exit(1)

        if __name__ == "__main__":
            with RekindleExecutor(1, show_output=False) as executor:
                print(executor.submit(talk).exception().output)
        """,
    )
    assert (ran.stdout, ran.stderr) == ("('task',)\n", "")
