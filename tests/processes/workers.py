"""The functions that the tests have supervised. They run in processes of their own."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from rekindle.worker import Worker, slow_start


def wait(worker: Worker) -> None:
    worker.wait()


def chatter(worker: Worker) -> None:
    while not worker.wait(0.001):
        with worker.busy(60):
            worker.healthy()


def crash(worker: Worker) -> None:
    sys.exit(1)


def crash_after_a_moment(worker: Worker) -> None:
    worker.wait(random.uniform(0.0, 0.05))
    os._exit(1)


@slow_start
def never_ready(worker: Worker) -> None:
    worker.wait()


def ignore_everything(worker: Worker) -> None:
    """Neither a request nor SIGTERM ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    worker.current_job = "deaf"
    threading.Event().wait()


def listen_to_sigterm_only(worker: Worker) -> None:
    """The request to stop goes unheard; SIGTERM has its default action."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    worker.current_job = "deaf"
    threading.Event().wait()


def hold_the_lock(worker: Worker) -> None:
    """Tells on the file OVERLAP if another process of this worker is alive."""
    lock = os.open(os.environ["LOCK"], os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        Path(os.environ["OVERLAP"]).touch()
    worker.wait()


def hold_the_lock_and_ignore_sigterm(worker: Worker) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hold_the_lock(worker)
    threading.Event().wait()


def follow_pauses(worker: Worker) -> None:
    number = 0
    while worker.running:
        number += 1
        with worker.job(number):
            while not worker.paused and not worker.wait(0.005):
                pass
        worker.wait_while_paused()


def work_on_42_until_let_go(worker: Worker) -> None:
    """Lets go of its job when the file LET_GO is there."""
    with worker.job(42):
        while not Path(os.environ["LET_GO"]).exists() and not worker.wait(0.01):
            pass
    worker.wait()


def start_grandchildren(worker: Worker) -> None:
    """Two of them: one stays in the group, one leaves the session. Their pids are the job."""
    stays = subprocess.Popen(["sleep", "1000"])
    leaves = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    worker.current_job = f"{stays.pid} {leaves.pid}"
    worker.wait()


def say_words(worker: Worker) -> None:
    sys.stdout.write("braces {} {0} {missing!r} %s\n")
    sys.stderr.write("on stderr\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(b"control \x1b[31mred\x1b[0m \x07 \x00 \xff <red>markup</red>\r\n")
    sys.stdout.buffer.write(b"\xe2\x82\xac is a euro\nwithout an end")
    sys.stdout.flush()
    worker.current_job = "said"
    worker.wait()


def flood_the_output(worker: Worker) -> None:
    """Far more than a pipe holds, and text that never ends its line."""
    for number in range(20_000):
        sys.stdout.write(f"line {number} {'x' * 200}\n")
    sys.stderr.write("y" * 3_000_000)
    sys.stdout.write("the last line\n")
    sys.stdout.flush()
    worker.current_job = "flooded"
    worker.wait()


def write_a_hundred_megabytes(worker: Worker) -> None:
    """In lines of 100 bytes."""
    block = (b"x" * 99 + b"\n") * 1000
    for _ in range(1000):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.write(b"the last line\n")
    sys.stdout.flush()
    worker.current_job = "written"
    worker.wait()


def send_raw(worker: Worker) -> None:
    """Writes the file RAW to its channel, unchecked, then waits."""
    channel = worker._channel
    assert channel is not None
    fd = channel._fd
    os.set_blocking(fd, True)
    data = Path(os.environ["RAW"]).read_bytes()
    while data:
        data = data[os.write(fd, data) :]
    worker.wait()


def send_garbage_endlessly(worker: Worker) -> None:
    """As much as the supervisor takes: lines without an end, and lines without a sense."""
    channel = worker._channel
    assert channel is not None
    os.set_blocking(channel._fd, True)
    while True:
        os.write(channel._fd, b"\x00\xff{[" * 16_000)


def close_the_channel(worker: Worker) -> None:
    channel = worker._channel
    assert channel is not None
    os.close(channel._fd)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Event().wait()


def show_the_import_path_of_a_program(worker: Worker) -> None:
    subprocess.run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"], check=True)
    worker.wait()


def take_memory_once(worker: Worker) -> None:
    """The first incarnation takes 300 MB, the others nothing."""
    hoard = bytearray(300_000_000) if worker.generation == 1 else bytearray()
    hoard[::4096] = bytes(len(hoard[::4096]))
    worker.wait()


# ── how workers die ──────────────────────────────────────────────────────────────────────


def fault(worker: Worker) -> None:
    """Reads where nothing is."""
    import ctypes

    worker.progress(7)
    with worker.job("song.mp3"):
        sys.stdout.write("about to read\n")
        ctypes.string_at(0)


def raise_an_error(worker: Worker) -> None:
    sys.stderr.write("about to raise\n")
    raise LookupError("no such song")


def abort(worker: Worker) -> None:
    os.abort()


def child_faults_and_worker_exits(worker: Worker) -> None:
    """A forked child's segmentation fault is not the worker's."""
    import ctypes

    child = os.fork()
    if child == 0:
        ctypes.string_at(0)
    os.waitpid(child, 0)
    sys.exit(5)


def write_too_many_last_words(worker: Worker) -> None:
    raise ValueError("x" * 1_000_000)


# ── how workers hang ─────────────────────────────────────────────────────────────────────


def deadlock(worker: Worker) -> None:
    """Its work waits for itself; its heartbeats go on."""
    lock = threading.Lock()
    with worker.job("deadlocked"), lock:
        worker.progress("took the lock")
        lock.acquire()


def hold_the_gil(worker: Worker) -> None:
    """A loop in C that lets no other thread run, not even the heartbeats."""
    import re

    worker.progress("begins")
    spin_in_c(re)


def spin_in_c(re: object) -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")  # type: ignore[attr-defined]


def be_busy_then_rest(worker: Worker) -> None:
    """Longer than the timeout without a mark, but it announces that."""
    with worker.job("long"), worker.busy(for_s=60):
        worker.wait(2.5)
    worker.current_job = "rested"
    worker.wait()


def report_a_full_disk(worker: Worker) -> None:
    """Alive and talkative, but unhealthy by its own report after a moment."""
    worker.healthy()
    worker.wait(0.3)
    worker.unhealthy("disk nearly full")
    worker.wait()


def drain(worker: Worker) -> None:
    """Say what it is told, and that it has no work left."""

    def told() -> None:
        sys.stdout.write("told\n")

    worker.on_drain(told)
    worker.healthy()
    while not worker.draining:
        worker.wait(0.01)
    sys.stdout.write(f"{worker.draining} {worker.running}\n")
    worker.drained()
    worker.wait()
    sys.stdout.write("asked to stop\n")
