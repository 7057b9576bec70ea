"""The workers that the tests run by name. They run in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial, wraps
from pathlib import Path

from rekindle.worker import Worker, slow_start
from rekindle.worker.jobs import JobWorker

NOT_A_FUNCTION = 42


def wait(worker: Worker) -> None:
    worker.wait()


def say_who_it_is(worker: Worker) -> None:
    worker.current_job = f"{worker.component_id} #{worker.generation}"


def hold_a_job_for_thirty_intervals(worker: Worker) -> None:
    with worker.job(42):
        worker.wait(30 * float(os.environ["REKINDLE_HEARTBEAT_S"]))
    worker.wait()


def lose_a_job_by_an_exception(worker: Worker) -> None:
    try:
        with worker.job("album-7"):
            raise KeyError("track")
    except KeyError:
        worker.unhealthy("survived")
    worker.wait()


def take_the_next_job_inside_a_job(worker: Worker) -> None:
    with worker.job(1):
        worker.current_job = 2
    worker.unhealthy("after the first")
    worker.wait()


def make_progress(worker: Worker) -> None:
    worker.progress()
    worker.progress()
    worker.healthy()
    worker.progress("chapter 3")
    worker.wait()


def recover_by_hand(worker: Worker) -> None:
    worker.recovering(for_s=20)
    worker.wait(0.2)
    worker.healthy()
    worker.wait()


def recover_in_a_block(worker: Worker) -> None:
    with worker.recovering(for_s=20):
        worker.current_job = "repair"
    worker.wait()


def fail_to_recover(worker: Worker) -> None:
    try:
        with worker.recovering():
            raise OSError("disk full")
    except OSError:
        worker.wait()


def recover_too_slowly(worker: Worker) -> None:
    worker.recovering(for_s=0.1)
    worker.wait()


@slow_start
def start_slowly(worker: Worker) -> None:
    worker.current_job = "loading"
    worker.wait(0.2)
    worker.healthy()
    worker.wait()


def flood(worker: Worker) -> None:
    for number in range(3000):
        worker.current_job = f"{number:01000}"


def follow_pauses(worker: Worker) -> None:
    while worker.running:
        worker.current_job = "work"
        while not worker.paused and not worker.wait(0.005):
            pass
        worker.current_job = None
        worker.wait_while_paused()


def loop_while_running(worker: Worker) -> None:
    while worker.running:
        worker.wait(0.001)
    worker.current_job = "left the loop"


def speak_without_supervisor_and_finish(worker: Worker) -> None:
    worker.wait()
    for number in range(100):
        worker.current_job = number
    worker.healthy()
    Path(os.environ["FINISHED"]).touch()


def ignore_the_stop(worker: Worker) -> None:
    worker.current_job = subprocess.Popen(["sleep", "1000"]).pid
    threading.Event().wait()


def stop_but_leave_a_child(worker: Worker) -> None:
    worker.current_job = subprocess.Popen(["sleep", "1000"]).pid
    worker.wait()


def fork_a_child_that_speaks(worker: Worker) -> None:
    child = os.fork()
    if child == 0:
        worker.current_job = "child"
        worker.healthy()
        os._exit(0)
    os.waitpid(child, 0)
    worker.current_job = "parent"


def fork_a_child_that_stays(worker: Worker) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    worker.current_job = child
    worker.wait()
    os._exit(0)


def terminate_a_forked_child(worker: Worker) -> None:
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    worker.current_job = os.waitstatus_to_exitcode(status)


def show_what_a_child_inherits(worker: Worker) -> None:
    probe = "import os, sys; print(*sorted(os.listdir('/proc/self/fd')), os.environ.get('REKINDLE_FD'))"
    shown = subprocess.run([sys.executable, "-c", probe], close_fds=False, capture_output=True, text=True)
    worker.current_job = shown.stdout.strip()


def make_a_second_worker() -> None:
    Worker()


def return_a_number() -> int:
    return 5


def exit_with_a_number() -> None:
    sys.exit(7)


def raise_an_error(worker: Worker) -> None:
    raise ArithmeticError("the sum is wrong")


def print_and_wait(worker: Worker) -> None:
    print("on its way", end="\n")  # noqa: T201
    worker.wait()


def takes_nothing() -> None:
    sys.stdout.write("called with nothing\n")


def takes_anything(*values: object) -> None:
    sys.stdout.write(f"called with {type(values[0]).__name__}\n")


@wraps(takes_nothing)
def wrapped(*values: object) -> None:
    takes_nothing(*values)


bound = partial(takes_anything)


class Holder:
    @staticmethod
    def method(worker: Worker) -> None:
        sys.stdout.write(f"called with {type(worker).__name__}\n")


async def run_as_a_coroutine(worker: Worker) -> None:
    import asyncio

    worker.current_job = "awaiting"
    await asyncio.to_thread(worker.wait)
    worker.current_job = "awaited"


def ignore_interrupts(worker: Worker) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    shown = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True)
    ignored = int(shown.stdout.split()[1], 16)
    worker.current_job = f"child ignores SIGINT: {bool(ignored >> (signal.SIGINT - 1) & 1)}"


def show_the_signal_mask(worker: Worker) -> None:
    worker.current_job = len(signal.pthread_sigmask(signal.SIG_BLOCK, []))


def show_what_a_program_inherits() -> None:
    names = ("PYTHONPATH", "REKINDLE_PATH", "REKINDLE_PYTHONPATH")
    code = f"import os; print([os.environ.get(name) for name in {names}])"
    subprocess.run([sys.executable, "-c", code], check=True)


def hold_a_thousand_jobs(worker: Worker) -> None:
    """Jobs of no length, one after the other, and a last one that is held."""
    for number in range(1000):
        with worker.job(number):
            pass
    worker.current_job = "the last"
    worker.wait()


class Tagger(JobWorker):
    """Named without its method by mistake."""
