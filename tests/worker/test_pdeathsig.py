"""The shim that ends a foreign program with its parent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.worker.conftest import Start

Script = Callable[[str], list[str]]

SHIM_AND_WAIT = """
import os, subprocess, sys
channel = int(os.environ["REKINDLE_FD"])
shim, program = sys.argv[1:5], sys.argv[5:]
child = subprocess.Popen([*shim, str(os.getpid()), *program], pass_fds=[channel])
os.close(channel)
child.wait()
"""

STUBBORN = """
trap '' TERM
printf '{"status": "healthy", "current_job": %d}\\n' $$ >&$REKINDLE_FD
cat <&$REKINDLE_FD
"""


def _run(command: list[str], *program: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    arguments = [*command, str(os.getpid()), *program]
    return subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=20)


def test_the_program_takes_the_place_of_the_shim(script: Script, environment: dict[str, str]) -> None:
    ended = _run(script("pdeathsig.py"), "sh", "-c", 'echo "$0 $1"; exit 9', "a b", "c", env=environment)
    assert (ended.returncode, ended.stdout, ended.stderr) == (9, "a b c\n", "")


def test_the_program_finds_the_environment_that_was_given(script: Script, mark: str) -> None:
    """Without the LC_CTYPE that an interpreter in the C locale adds to its own."""
    env = {"PATH": os.environ["PATH"], "REKINDLE_SYSTEM": mark}
    ended = _run(script("pdeathsig.py"), "cat", "/proc/self/environ", env=env)
    assert set(filter(None, ended.stdout.split("\0"))) == {f"{key}={value}" for key, value in env.items()}


def test_the_program_ignores_no_signal(script: Script, environment: dict[str, str]) -> None:
    """An interpreter ignores SIGPIPE, and an ignored signal stays ignored across exec."""
    ended = _run(script("pdeathsig.py"), "grep", "SigIgn", "/proc/self/status", env=environment)
    assert int(ended.stdout.split()[1], 16) == 0


def test_the_program_is_killed_with_its_parent(
    start: Start, script: Script, gone: Callable[[int], bool]
) -> None:
    parent = start([sys.executable, "-c", SHIM_AND_WAIT, *script("pdeathsig.py"), "bash", "-c", STUBBORN])
    program = parent.frame(status="healthy")["current_job"]
    parent.process.kill()
    assert gone(program)


def test_the_program_is_not_run_when_the_parent_has_gone_already(
    script: Script, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [*script("pdeathsig.py"), "1", "touch", str(tmp_path / "ran")]
    assert subprocess.run(command, env=environment, timeout=20).returncode == 1
    assert not (tmp_path / "ran").exists()


def test_a_missing_program_is_reported_in_one_line_and_127(
    script: Script, environment: dict[str, str]
) -> None:
    ended = _run(script("pdeathsig.py"), "no-such-program", env=environment)
    assert (ended.returncode, ended.stderr) == (127, "no-such-program: No such file or directory\n")


def test_a_file_that_is_not_a_program_is_reported_in_one_line_and_126(
    script: Script, environment: dict[str, str], tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.touch(mode=0o600)
    ended = _run(script("pdeathsig.py"), str(plain), env=environment)
    assert (ended.returncode, ended.stderr) == (126, f"{plain}: Permission denied\n")
