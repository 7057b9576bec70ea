"""A worker that tries to block its supervisor: the deaths of the other workers are noticed all the same."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import SHORT, python, sleeper, worker
from tests.processes.waiting import PATIENCE_S, eventually
from tests.processes.watch import hostile_workers

from rekindle.actors import Cause, RequestTimeoutError, Status, System, WorkerDied, WorkerSpec, command
from rekindle.actors.messages import Event, SupervisionStalled
from rekindle.actors.processes import channel
from rekindle.actors.processes.watch.epoll_loop import EpollLoop
from rekindle.actors.supervisor import stall_checks
from rekindle.actors.system import system_view


def hostile(name: str, **changes: object) -> WorkerSpec:
    """A worker that runs a program of `hostile_workers.py`."""
    run = command(sys.executable, str(Path(hostile_workers.__file__)), name, reports_health=True)
    return worker("hostile", run, stop=SHORT, **changes)


def kill(system: System, component_id: str) -> None:
    pid = system.wait_for(component_id, Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=[True, False], ids=["refusing", "older"])
def refuses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether the kernel refuses descriptors on a channel, as Linux 6.16 does."""
    channel.refuses_descriptors.cache_clear()
    if not request.param:
        monkeypatch.setattr(channel, "SO_PASSRIGHTS", 9999)  # which no kernel knows
    elif not channel.refuses_descriptors():
        pytest.skip("this kernel cannot refuse descriptors")
    yield request.param
    channel.refuses_descriptors.cache_clear()


def test_a_descriptor_sent_over_a_channel_does_not_block_supervision(run: Run, refuses: bool) -> None:
    """The kernel closed it on the thread that watches all processes, for as long as the worker chose."""
    system = run(hostile("hand_over_a_socket_that_closes_slowly"), sleeper())
    assert eventually(lambda: "tried" in system.output("hostile"))
    kill(system, "sleeper")
    system.wait_until("sleeper", lambda w: w.generation == 2 and w.status is Status.HEALTHY, PATIENCE_S)
    if refuses:
        assert system.status("hostile").generation == 1
    else:
        assert eventually(lambda: system.deaths("hostile") != ())
        assert system.deaths("hostile")[0].cause is Cause.PROTOCOL


@pytest.mark.usefixtures("both_ways")
def test_a_channel_of_either_kind_carries_frames_and_orders(run: Run, refuses: bool) -> None:
    system = run(python("wait"))
    assert system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).generation == 1
    (result,) = system.stop()
    assert (result.gone, result.killed) == (True, False)


def test_a_worker_that_floods_its_channel_with_blank_lines_is_ended(run: Run) -> None:
    """They counted for nothing, and a third of a processor was spent on them forever."""
    system = run(hostile("send_blank_lines"))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert died.death.cause is Cause.PROTOCOL


SWAP = """
until [ -e "$0.go" ]; do sleep 0.02; done
mv "$0" "$0.away" && mkfifo "$0"
exit 1
"""


def test_a_fifo_in_place_of_its_script_does_not_block_supervision(run: Run, tmp_path: Path) -> None:
    """The supervisor read the script again to tell which code had died, and waited for a writer."""
    script = tmp_path / "script"
    script.write_text(SWAP)
    system = run(worker("hostile", command("bash", str(script)), stop=SHORT), sleeper())
    system.wait_for("hostile", Status.HEALTHY, timeout_s=PATIENCE_S)
    (tmp_path / "script.go").touch()
    system.wait_until("hostile", lambda w: w.generation == 2 and w.pid is not None, PATIENCE_S)
    kill(system, "sleeper")
    system.wait_until("sleeper", lambda w: w.generation == 2 and w.status is Status.HEALTHY, PATIENCE_S)


class Stalls:
    """Collects the stalls that are published."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def tell(self, message: Event) -> None:
        if isinstance(message, SupervisionStalled):
            self.parts.append(message.part)


@contextmanager
def blocked_watcher(system: System) -> Iterator[None]:
    """Keeps the watcher from answering."""
    freed = threading.Event()

    def block(_loop: EpollLoop) -> list[int]:
        freed.wait(PATIENCE_S)
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpollLoop, "_polled", block)
        system.restart("sleeper")  # wakes the thread, which then blocks
        patch.setattr(system_view, "REPLY_TIMEOUT_S", 0.1)
        patch.setattr(stall_checks, "WATCHER_STALL_S", 0.1)
        yield
    freed.set()
    system.check_answers()


def test_a_watcher_that_is_blocked_does_not_answer_and_each_stall_is_published_once(run: Run) -> None:
    """The stall was a line in the log of the watchdog, and neither the dashboard nor an alert showed it."""
    system, stalls = run(sleeper()), Stalls()
    system.subscribe(stalls)
    system.check_answers()
    for number in (1, 2):
        with blocked_watcher(system):
            with pytest.raises(RequestTimeoutError, match="watches the processes did not answer"):
                eventually(system.check_answers)
            with pytest.raises(RequestTimeoutError):
                system.check_answers()
            assert eventually(lambda: len(stalls.parts) == number)  # noqa: B023
    with system.events() as events:
        kill(system, "sleeper")
        events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert stalls.parts == ["watcher", "watcher"]


@pytest.mark.usefixtures("both_ways")
def test_a_blocked_watcher_is_published_without_a_watchdog_that_asks(run: Run) -> None:
    """Only systemd's watchdog had it looked at: elsewhere deaths went unseen, and nothing said so."""
    system, stalls = run(sleeper(), python("wait")), Stalls()
    system.subscribe(stalls)
    with blocked_watcher(system):
        assert eventually(lambda: stalls.parts == ["watcher"])


def test_without_heartbeats_a_blocked_watcher_is_published_when_a_question_comes(run: Run) -> None:
    system, stalls = run(sleeper()), Stalls()
    system.subscribe(stalls)
    with blocked_watcher(system):
        assert eventually(lambda: system.report().workers and stalls.parts)
    assert stalls.parts == ["watcher"]
