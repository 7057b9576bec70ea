"""Standbys: forks of a warm process that wait before the first line, until a start uses them."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import worker
from tests.processes.spawn.test_warm_starts import healthy, warm_process, words
from tests.processes.waiting import eventually

from rekindle.actors import PythonCall, RecyclePolicy, System, WorkerSpec
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.actors.processes.spawn.warm.memory_pressure import is_memory_short
from rekindle.actors.processes.spawn.warm.standbys import Standbys
from rekindle.actors.processes.watch.epoll_loop import EpollLoop

GENEROUS_S = 20.0
STANDBYS = "rekindle.actors.processes.spawn.warm.standbys"
USED = "was a standby of its warm process"


@pytest.fixture(autouse=True)
def enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory that other programs of the machine use decides no test."""
    monkeypatch.setattr(STANDBYS + ".is_memory_short", lambda: False)


def ready(function: str = "serve", id_: str = "w", *, standby: int = 1) -> WorkerSpec:
    """A warm function of `warm_application.py` with standbys."""
    call = PythonCall(f"tests.processes.warm_application:{function}", warm=True, standby=standby)
    return worker(id_, call)


def standbys() -> list[int]:
    """The pids of the standbys of this process."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = words(f"{each}/cmdline")
            ours = f"PPid:\t{os.getpid()}\n" in (each / "status").read_text()
            if ours and command[1:] == ["-m", "rekindle.worker.warm", "standby"]:
                found.append(int(each.name))
        except OSError:
            continue
    return found


def one_standby(but: int = 0) -> int:
    """Wait until there is one that is not this one; its pid."""
    assert eventually(lambda: bool(set(standbys()) - {but}))
    return next(iter(set(standbys()) - {but}))


def restarted(system: System, generation: int) -> int:
    return healthy(system, after=generation)


def test_a_death_is_followed_by_the_standby_and_another_one_stands_by(run: Run, rows: Rows) -> None:
    system = run(ready())
    first, standby = healthy(system), one_standby()
    os.kill(first, signal.SIGKILL)
    assert restarted(system, 1) == standby
    assert system.status("w").start_note == USED
    assert rows.deaths("w") == [(1, "signalled", None, 9, "restart")]
    assert eventually(lambda: system.output("w")[-2:] == ("imported", "True w 2"))
    assert one_standby() != standby


def test_a_used_standby_looks_like_an_executed_worker(run: Run) -> None:
    system = run(ready())
    os.kill(healthy(system), signal.SIGKILL)
    pid = restarted(system, 1)
    assert words(f"/proc/{pid}/cmdline")[1:] == [
        "-m",
        "rekindle.worker.run",
        "tests.processes.warm_application:serve",
    ]
    assert {"REKINDLE_WORKER=w", "REKINDLE_GENERATION=2"} <= set(words(f"/proc/{pid}/environ"))
    assert os.getsid(pid) == pid
    system.stop()
    assert eventually(lambda: not standbys())


def test_a_standby_has_the_thread_of_its_heartbeat_before_it_is_used(run: Run) -> None:
    system = run(ready())
    first, standby = healthy(system), one_standby()
    assert eventually(lambda: len(os.listdir(f"/proc/{standby}/task")) == 2)
    os.kill(first, signal.SIGKILL)
    assert restarted(system, 1) == standby
    assert len(os.listdir(f"/proc/{standby}/task")) == 2


def test_a_standby_that_dies_is_replaced_and_not_counted(run: Run, rows: Rows) -> None:
    system = run(ready())
    first, standby = healthy(system), one_standby()
    os.kill(standby, signal.SIGKILL)
    again = one_standby(but=standby)
    assert again != standby
    assert (system.status("w").pid, system.status("w").restart_count) == (first, 0)
    assert rows.deaths("w") == []


def test_standbys_serve_the_workers_of_a_group_and_their_number_is_kept(run: Run) -> None:
    system = run(*(ready(id_=f"w:{number}", standby=2) for number in range(3)))
    pids = [healthy(system, f"w:{number}") for number in range(3)]
    assert eventually(lambda: len(standbys()) == 2)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for number in range(3):
        healthy(system, f"w:{number}", after=1)
    notes = [system.status(f"w:{number}").start_note for number in range(3)]
    assert notes.count(USED) >= 2
    assert eventually(lambda: len(standbys()) == 2)


def test_a_worker_outlives_the_warm_process_that_its_standby_came_from(run: Run, rows: Rows) -> None:
    system = run(ready())
    first, standby, zygote = healthy(system), one_standby(), warm_process()
    assert zygote is not None
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: warm_process() != zygote)
    os.kill(first, signal.SIGKILL)
    assert restarted(system, 1) == standby
    assert len(rows.deaths("w")) == 1


def test_a_standby_runs_the_new_code_after_a_change(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys\ndef serve(worker):\n    print({!r}, flush=True)\n    worker.wait()\n"
    file = tmp_path / "changing_application.py"
    file.write_text(code.format("old"))
    monkeypatch.syspath_prepend(str(tmp_path))
    system = run(worker("w", PythonCall("changing_application:serve", warm=True, standby=1)))
    first, standby = healthy(system), one_standby()
    file.write_text(code.format("the new code"))
    os.kill(first, signal.SIGKILL)
    assert restarted(system, 1) == standby
    assert eventually(lambda: system.output("w")[-1:] == ("the new code",))
    os.kill(standby, signal.SIGKILL)
    restarted(system, 2)
    assert eventually(lambda: system.output("w")[-2:] == ("the new code", "the new code"))


def test_a_restart_by_an_operator_uses_the_standby(run: Run, rows: Rows) -> None:
    system = run(ready())
    healthy(system)
    standby = one_standby()
    system.restart("w")
    assert restarted(system, 1) == standby
    assert rows.deaths("w") == []


def test_a_recycled_worker_goes_on_as_the_standby(run: Run, rows: Rows) -> None:
    system = run(replace(ready(), recycle=RecyclePolicy(after_s=1.0, jitter=0.0)))
    healthy(system)
    assert eventually(lambda: system.status("w").start_note == USED)
    assert rows.deaths("w") == []


def test_a_removed_worker_takes_its_standbys_along(run: Run) -> None:
    system = run(ready())
    healthy(system)
    one_standby()
    system.remove("w")
    assert eventually(lambda: not standbys() and warm_process() is None)


def test_no_standby_is_forked_while_memory_is_short(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    is_short = [True]
    asked: list[bool] = []

    def is_memory_short() -> bool:
        asked.append(True)
        return is_short[0]

    monkeypatch.setattr(STANDBYS + ".is_memory_short", is_memory_short)
    monkeypatch.setattr(STANDBYS + ".SHORT_AGAIN_S", 0.02)
    system = run(ready())
    first = healthy(system)
    assert eventually(lambda: len(asked) >= 3)
    assert standbys() == []
    os.kill(first, signal.SIGKILL)
    restarted(system, 1)
    assert system.status("w").start_note == "forked from its warm process"
    is_short[0] = False
    assert eventually(lambda: len(standbys()) == 1)


PRESSURE = "some avg10=80.00 avg60=2.00 avg300=1.00 total=1\nfull avg10={} avg60=0.00 avg300=0.00 total=1\n"


def test_no_standby_is_forked_while_other_starts_wait() -> None:
    loop, launcher = EpollLoop("test"), Launcher()
    goes_on, forked = threading.Event(), threading.Event()
    seen: list[bool] = []
    try:
        standbys = Standbys(loop, launcher, lambda: forked.set(), lambda change: None)
        standbys.wanted = 1
        launcher.start(goes_on.wait)  # a start that lasts
        standbys.refill_later()
        assert eventually(launcher.is_busy)  # the refill waits behind it
        launcher.start(lambda: seen.append(forked.is_set()))
        goes_on.set()
        assert forked.wait(GENEROUS_S)
        assert seen == [False]
    finally:
        goes_on.set()
        launcher.close(GENEROUS_S)
        loop.post(loop.end)
        loop.join(GENEROUS_S)


@pytest.mark.parametrize(
    ("said", "is_short"),
    [(PRESSURE.format("0.00"), False), (PRESSURE.format("12.50"), True), ("of a later kernel\n", False)],
)
def test_the_kernel_says_whether_memory_is_short(tmp_path: Path, said: str, is_short: bool) -> None:
    file = tmp_path / "pressure"
    assert not is_memory_short(str(file))
    file.write_text(said)
    assert is_memory_short(str(file)) == is_short
