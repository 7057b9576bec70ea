"""A worker that a debugger holds: its end cannot be reaped until the debugger lets go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Status, System

TRACER = """
import ctypes, signal, sys
PTRACE_SEIZE = 0x4206
library = ctypes.CDLL(None, use_errno=True)
library.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
failed = library.ptrace(PTRACE_SEIZE, int(sys.argv[1]), None, None)
print("failed" if failed else "traces", flush=True)
signal.pause()
"""


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(") ")[2][0]


def healthy_pid(system: System) -> int:
    pid = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    return pid


def test_an_exit_that_cannot_be_reaped_at_the_first_look_is_looked_at_again(run: Run, rows: Rows) -> None:
    system = run(sleeper())
    pid = healthy_pid(system)
    with subprocess.Popen([sys.executable, "-c", TRACER, str(pid)], stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        if tracer.stdout.readline() != b"traces\n":
            tracer.kill()
            pytest.skip("no process may be traced here")
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: state_of(pid) == "Z")
        # The watcher has looked by now: it is told of the end before it answers.
        system.check_answers()
        assert system.status("sleeper").generation == 1
        tracer.kill()
    system.wait_until("sleeper", lambda w: w.generation == 2 and w.status is Status.HEALTHY, PATIENCE_S)
    assert rows.deaths("sleeper")[0][:4] == (1, "signalled", None, signal.SIGKILL)
