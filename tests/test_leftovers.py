"""A killed test run leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.processes.waiting import ended, eventually

ROOT = Path(__file__).parents[1]

TESTS = """
import subprocess, sys
from pathlib import Path
from tests.leftovers import ends_with_tests, removed_with_tests
started = subprocess.Popen(["sleep", "1000"], start_new_session=True)
ends_with_tests(started.pid)
removed_with_tests(Path(sys.argv[1]))
print(started.pid, flush=True)
started.wait()
"""


def test_what_tests_have_started_ends_when_their_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    command = [sys.executable, "-c", TESTS, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        started = int(tests.stdout.readline())
        assert not ended(started)
        tests.kill()
    assert eventually(lambda: ended(started))
    assert eventually(lambda: not folder.exists())
