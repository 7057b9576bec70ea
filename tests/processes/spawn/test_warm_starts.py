"""Workers that are forked from a warm process: they cannot be told from executed ones."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import worker
from tests.processes.waiting import eventually

from rekindle.actors import Finding, PythonCall, Status, System, WorkerSpec

PATIENCE_S = 20.0
FORKED = "forked from its warm process"


def warm(function: str, id_: str = "w") -> WorkerSpec:
    """A warm function of `warm_application.py`."""
    return worker(id_, PythonCall(f"tests.processes.warm_application:{function}", warm=True))


def healthy(system: System, id_: str = "w", after: int = 0) -> int:
    """Wait until a process with a later generation is healthy; its pid."""

    def found() -> bool:
        status = system.status(id_)
        return status.generation > after and status.status is Status.HEALTHY and status.pid is not None

    assert eventually(found), system.explain(id_)
    return system.status(id_).pid or 0


def words(path: str) -> list[str]:
    """The words of a file of /proc that are separated by NUL characters."""
    return [word for word in Path(path).read_text().split("\0") if word]


def warm_process() -> int | None:
    """The pid of the warm process of this system."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            is_warm = "rekindle.worker.warm" in words(f"{each}/cmdline")
            if is_warm and f"PPid:\t{os.getpid()}\n" in (each / "status").read_text():
                return int(each.name)
        except OSError:
            continue
    return None


def test_a_fork_looks_like_an_executed_worker(run: Run) -> None:
    system = run(warm("serve"))
    pid = healthy(system)
    assert system.status("w").start_note == FORKED
    assert eventually(lambda: system.output("w") == ("imported", "True w 1"))
    assert words(f"/proc/{pid}/cmdline")[1:] == [
        "-m",
        "rekindle.worker.run",
        "tests.processes.warm_application:serve",
    ]
    environment = words(f"/proc/{pid}/environ")
    assert {"REKINDLE_WORKER=w", "REKINDLE_GENERATION=1"} <= set(environment)
    assert os.getsid(pid) == pid


def test_a_killed_fork_is_back_with_its_true_exit(run: Run) -> None:
    system = run(warm("serve"))
    os.kill(healthy(system), signal.SIGKILL)
    healthy(system, after=1)
    assert system.status("w").start_note == FORKED
    assert [(each.exit_code, each.signal) for each in system.deaths("w")] == [(None, signal.SIGKILL)]


def test_an_exception_and_a_fault_of_a_fork_leave_the_evidence_of_an_executed_worker(run: Run) -> None:
    system = run(warm("fail", "fails"), warm("crash", "crashes"))
    assert eventually(lambda: system.bundles("fails") and system.bundles("crashes"))
    failed, crashed = system.bundles("fails")[-1], system.bundles("crashes")[-1]
    assert failed.finding is Finding.EXCEPTION
    assert "ValueError: trouble" in failed.last_words
    assert "Segmentation fault" in crashed.last_words
    assert "in crash" in crashed.last_words


def test_the_end_of_the_warm_process_costs_no_worker_a_restart(run: Run) -> None:
    system = run(warm("serve"))
    first = healthy(system)
    zygote = warm_process()
    assert zygote is not None
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: warm_process() is None)
    assert system.status("w").pid == first
    os.kill(first, signal.SIGKILL)
    healthy(system, after=1)
    assert len(system.deaths("w")) == 1


def test_an_application_that_starts_a_thread_is_executed_and_the_thread_is_named(run: Run) -> None:
    system = run(worker("w", PythonCall("tests.processes.spawn.threaded_application:serve", warm=True)))
    healthy(system)
    note = system.status("w").start_note
    assert note.startswith("executed, not forked from a warm process: the import of ")
    assert "a thread running: poller" in note
    assert "starts a thread" in note


def test_a_module_that_cannot_be_imported_fails_as_an_executed_worker_does(run: Run) -> None:
    system = run(worker("w", PythonCall("tests.processes.no_such_module:serve", warm=True)))
    assert eventually(lambda: bool(system.bundles("w")))
    assert "ModuleNotFoundError" in system.bundles("w")[-1].last_words


FAILING = "1 / 0\n"
ENDING = """
import os, signal, sys

if "rekindle.worker.warm" in sys.orig_argv:
    os.kill(os.getpid(), signal.SIGKILL)

def serve(worker):
    worker.wait()
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (FAILING, "the_application cannot be imported: ZeroDivisionError: division by zero"),
        (ENDING, "it ended: killed by SIGKILL"),
    ],
)
def test_each_start_says_in_one_line_why_there_is_no_warm_process(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    (tmp_path / "the_application.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    system = run(worker("w", PythonCall("the_application:serve", warm=True)))
    executed = f"executed, not forked from a warm process: {reason}"
    assert eventually(lambda: system.status("w").start_note == executed), system.status("w")


def test_a_system_leaves_no_warm_process_behind(run: Run) -> None:
    system = run(warm("serve"))
    healthy(system)
    system.stop()
    assert warm_process() is None


NUMPY = "import random\n_numbers = random.Random(1)\nseed, random = _numbers.seed, _numbers.random\n"
DRAWING = """
import random, ssl, numpy.random

def serve(worker):
    print(random.random(), ssl.RAND_bytes(8).hex(), numpy.random.random(), flush=True)
    worker.wait()
"""


def test_each_fork_draws_other_random_numbers(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").touch()
    (tmp_path / "numpy" / "random.py").write_text(NUMPY)  # as far as it matters here
    (tmp_path / "drawing_application.py").write_text(DRAWING)
    monkeypatch.syspath_prepend(str(tmp_path))
    call = PythonCall("drawing_application:serve", warm=True, standby=1)
    system = run(*(worker(f"w:{number}", call) for number in range(3)))
    assert eventually(lambda: all(system.output(f"w:{number}") for number in range(3)))
    os.kill(healthy(system, "w:0"), signal.SIGKILL)
    healthy(system, "w:0", after=1)
    assert eventually(lambda: len(system.output("w:0")) == 2)
    drawn = [line.split() for number in range(3) for line in system.output(f"w:{number}")]
    for kind in zip(*drawn, strict=True):
        assert len(set(kind)) == 4
