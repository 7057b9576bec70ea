"""How the runner makes a process out of a function."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.worker.conftest import Start

CANNOT_START = 3


@pytest.mark.parametrize(
    ("target", "code"), [("return_a_number", 0), ("exit_with_a_number", 7), ("raise_an_error", 1)]
)
def test_the_exit_code_tells_how_the_function_ended(start: Start, target: str, code: int) -> None:
    assert start(target).exit_code() == code


def test_an_exception_is_on_stderr_with_its_traceback(start: Start) -> None:
    worker = start("raise_an_error")
    worker.exit_code()
    shown = worker.stderr()
    assert "Traceback" in shown
    assert shown.endswith("ArithmeticError: the sum is wrong\n")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module:main", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("workers:no_such_function", "AttributeError: module 'workers' has no attribute 'no_such_function'"),
        ("workers:NOT_A_FUNCTION", "TypeError: NOT_A_FUNCTION is a int, not a function"),
        ("workers:Tagger", "TypeError: Tagger is a class: its method runs it, workers:Tagger.main"),
        ("workers:", "AttributeError: module 'workers' has no attribute ''"),
        (":main", "ValueError: Empty module name"),
    ],
)
def test_a_target_that_cannot_be_called_is_reported_in_one_line_and_a_traceback(
    start: Start, target: str, reason: str
) -> None:
    worker = start(target)
    assert worker.exit_code() == CANNOT_START
    first, *rest = worker.stderr().splitlines()
    assert first == f"rekindle: cannot start {target}: {reason}"
    assert rest[0].startswith("Traceback")


def test_a_module_that_raises_while_it_is_imported_cannot_start(start: Start, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise LookupError('no configuration')\n")
    worker = start("broken:main", REKINDLE_PATH=str(tmp_path))
    assert worker.exit_code() == CANNOT_START
    assert worker.stderr().startswith("rekindle: cannot start broken:main: LookupError: no configuration\n")


def test_the_path_of_the_host_is_taken_over_in_its_order(start: Start, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "found.py").write_text(f"def main(worker): worker.current_job = {name!r}\n")
    worker = start("found:main", REKINDLE_PATH=f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    worker.frame(current_job="first")


@pytest.mark.parametrize("own", [None, "/of/the/worker"])
def test_a_program_that_a_worker_starts_has_the_import_path_of_the_worker_and_not_ours(
    start: Start, own: str | None
) -> None:
    worker = start("show_what_a_program_inherits", REKINDLE_PYTHONPATH=own)
    assert worker.exit_code() == 0
    assert worker.stdout() == f"{[own, None, None]}\n"


@pytest.mark.parametrize(
    ("target", "argument"),
    [
        ("takes_nothing", "nothing"),
        ("takes_anything", "Worker"),
        ("wrapped", "nothing"),
        ("bound", "Worker"),
        ("Holder.method", "Worker"),
    ],
)
def test_a_function_gets_the_worker_if_it_takes_a_parameter(start: Start, target: str, argument: str) -> None:
    worker = start(target)
    assert worker.exit_code() == 0
    assert worker.stdout() == f"called with {argument}\n"


def test_a_coroutine_function_is_run_to_its_end(start: Start) -> None:
    worker = start("run_as_a_coroutine")
    worker.frame(current_job="awaiting")
    worker.say("stop")
    worker.frame(current_job="awaited")
    assert worker.exit_code() == 0


def test_a_printed_line_is_out_before_the_worker_ends(start: Start) -> None:
    worker = start("print_and_wait", PYTHONUNBUFFERED=None)
    assert worker.process.stdout is not None
    assert worker.process.stdout.readline() == "on its way\n"


def test_an_interrupt_is_ignored_by_the_worker_but_not_by_what_it_starts(start: Start) -> None:
    worker = start("ignore_interrupts")
    worker.frame(current_job="child ignores SIGINT: False")
    assert worker.exit_code() == 0


def test_signals_that_the_supervisor_had_blocked_are_not_blocked_in_a_worker(start: Start) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
    try:
        worker = start("show_the_signal_mask")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    worker.frame(current_job=0)


def test_a_second_worker_in_one_process_is_refused_with_a_sentence(start: Start) -> None:
    worker = start("make_a_second_worker")
    assert worker.exit_code() == 1
    assert "this process has its Worker already" in worker.stderr()


def test_the_runner_without_a_target_says_how_it_is_used(start: Start) -> None:
    worker = start([sys.executable, "-m", "rekindle.worker.run"])
    assert worker.exit_code() == CANNOT_START
    assert worker.stderr() == "usage: python -m rekindle.worker.run package.module:function\n"


def test_the_runner_works_by_hand_without_a_supervisor(start: Start) -> None:
    worker = start("say_who_it_is", REKINDLE_FD=None, REKINDLE_SUPERVISOR_PID=None)
    assert worker.exit_code() == 0
    assert list(worker.frames()) == []
