"""Starting and stopping: in time, for everyone, and without a trace."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, SHORT, python, shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    RequestRefusedError,
    RestartPolicy,
    Status,
    StatusChanged,
    StopPolicy,
    StoreOwnedError,
    System,
    WorkerDied,
    WorkerStopped,
)
from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.records import Remembered
from rekindle.actors.messages import StopResult, StopStepTaken
from rekindle.actors.system.assembly import Actors
from rekindle.actors.system.lifecycle import Lifecycle
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes


@pytest.mark.usefixtures("both_ways")
def test_sd_06_a_worker_that_stops_when_asked_exits_0_and_no_death_is_reported(run: Run, rows: Rows) -> None:
    system = run(python("wait"))
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    with system.events() as events:
        result = system.stop_worker("wait")
        stopped = events.until(lambda event: isinstance(event, WorkerStopped), PATIENCE_S)
        assert not [e for e in events.within(0.2) if isinstance(e, WorkerDied | StatusChanged)]
    assert result.exit is not None
    assert (result.exit.code, result.forced, result.gone) == (0, None, True)
    assert isinstance(stopped, WorkerStopped)
    assert system.status("wait").shown == "stopped"
    assert rows.deaths("wait") == []


def test_every_step_of_a_stop_is_reported_with_its_time(run: Run) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done"
    system = run(shell("deaf", deaf, stop=SHORT))
    assert eventually(lambda: system.output("deaf") == ("deaf",))
    assert system.stop_worker("deaf").killed

    def told() -> list[tuple[str, str]]:
        kinds = ("worker_stopping", "stop_step_taken", "worker_stopped")
        log = [each for each in system.event_log().events if each.type in kinds]
        assert [each.at_wall_ms for each in log] == sorted(each.at_wall_ms for each in log)
        return [(each.type, json.loads(each.payload).get("step", "")) for each in log]

    assert eventually(lambda: len(told()) == 4), told()
    assert told() == [
        ("worker_stopping", ""),
        ("stop_step_taken", "SIGTERM"),
        ("stop_step_taken", "SIGKILL"),
        ("worker_stopped", ""),
    ]


def test_a_program_that_ends_on_sigint_only_is_stopped_by_the_signal_of_its_policy(run: Run) -> None:
    picky = "trap '' TERM; trap 'exit 0' INT; echo ready; while :; do sleep 0.05; done"
    system = run(shell("picky", picky, stop=StopPolicy(signal="INT", ask_s=PATIENCE_S)))
    assert eventually(lambda: system.output("picky") == ("ready",))
    with system.events() as events:
        result = system.stop_worker("picky")
        step = events.until(lambda event: isinstance(event, StopStepTaken), PATIENCE_S)
    assert isinstance(step, StopStepTaken)
    assert (step.step, result.exit, result.forced) == ("SIGINT", Exit(code=0), signal.SIGINT)


def test_sd_07_a_second_stop_does_nothing(run: Run) -> None:
    system = run(sleeper())
    assert len(system.stop()) == 1
    assert system.stop() == ()


def test_sd_07_two_stops_at_once_stop_once(run: Run) -> None:
    system = run(*(sleeper(f"s:{n}") for n in range(5)))
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(len(system.stop()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(results) == [0, 0, 0, 5]


def test_sd_07_a_stop_within_a_stop_does_nothing(run: Run) -> None:
    """As of a host's signal handler, which runs in the thread that it interrupts."""
    system = run(sleeper())
    nested: list[tuple[StopResult, ...]] = []
    system.at_stop(lambda: nested.append(system.stop()))
    assert [result.gone for result in system.stop()] == [True]
    assert nested == [()]


def test_a_system_that_is_interrupted_while_it_starts_leaves_nothing(database: Path) -> None:
    class Interrupted(System):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Interrupted([sleeper()], store=open_store(database)):
        pass
    open_store(database).close()


def test_a_system_that_was_never_opened_lets_go_of_its_store(database: Path) -> None:
    system = System([sleeper()], store=open_store(database))
    assert system.stop() == ()
    open_store(database).close()
    with pytest.raises(RequestRefusedError, match="has been stopped"):
        system.start()


def test_a_system_that_was_made_before_a_fork_is_neither_started_nor_stopped_there(database: Path) -> None:
    """The fork does not own the store: another supervisor could start beside it. Nor may it let go of it."""
    system = System([sleeper()], store=open_store(database))
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(RequestRefusedError, match="before a fork: create it, and open its store, in"):
                system.start()
            os._exit(0 if system.stop() == () else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(StoreOwnedError):
        open_store(database)
    with system:
        system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_stop_while_it_is_opened_is_obeyed_as_soon_as_it_is(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a host's signal handler: what is half made cannot be stopped yet."""

    release = Lifecycle._release_left_work

    def interrupted(lifecycle: Lifecycle, actors: Actors, remembered: Remembered, mark: str) -> None:
        assert system.stop() == ()
        release(lifecycle, actors, remembered, mark)

    monkeypatch.setattr(Lifecycle, "_release_left_work", interrupted)
    system = System([sleeper()], store=open_store(database))
    with pytest.raises(RequestRefusedError, match="stopped while it was opened"):
        system.start()
    open_store(database).close()


def test_a_stopped_system_refuses_to_start_again(run: Run) -> None:
    """Its store is closed, and another supervisor may own it by now."""
    system = run(sleeper())
    system.stop()
    with pytest.raises(RequestRefusedError, match="has been stopped"):
        system.start()
    with pytest.raises(RequestRefusedError):
        system.report()
    assert (system.strays(), system.output("sleeper")) == ((), ())


def test_sd_08_a_second_start_starts_what_is_missing_and_leaves_the_others(run: Run) -> None:
    system = run(sleeper("a"), sleeper("b"), sleeper("c"))
    before = {id_: system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid for id_ in "abc"}
    system.stop_worker("b")
    system.start()
    after = {id_: system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S).pid for id_ in "abc"}
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert after["b"] != before["b"]
    # A process that has just become its program shows no environment for an instant.
    assert eventually(lambda: len(marked_processes(system.mark)) == 3)


def test_sd_17_ten_stubborn_workers_are_stopped_at_the_same_time(run: Run) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done"
    stop = replace(SHORT, ask_s=1.0)
    system = run(*(shell(f"deaf:{n}", deaf, stop=stop) for n in range(10)))
    assert eventually(lambda: all(system.output(f"deaf:{n}") == ("deaf",) for n in range(10)))
    began = time.monotonic()
    results = system.stop()
    # One after the other would be ten graces.
    assert time.monotonic() - began < 8 * stop.ask_s
    assert len(results) == 10
    assert all(result.killed for result in results)


@pytest.mark.usefixtures("both_ways")
def test_sd_18_24_starts_and_stops_leave_nothing(database: Path, marks: list[str], no_traces: None) -> None:
    before = set(threading.enumerate())
    for _ in range(24):
        store = open_store(database)
        with System([sleeper(), python("wait")], store=store) as system:
            marks.append(system.mark)
            system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
        assert not [
            t.name for t in threading.enumerate() if t.name.startswith("rekindle-") and t not in before
        ]


@pytest.mark.usefixtures("both_ways")
def test_a_stop_right_after_the_start_leaves_nothing(
    database: Path, marks: list[str], no_traces: None
) -> None:
    for _ in range(5):
        specs = [python("wait", f"p:{n}") for n in range(4)] + [sleeper(f"s:{n}") for n in range(4)]
        with System(specs, store=open_store(database)) as system:
            marks.append(system.mark)
        assert marked_processes(marks[-1]) == []


def test_a_worker_that_is_removed_is_not_reported_and_comes_back_with_its_counters(
    run: Run, rows: Rows
) -> None:
    system = run(sleeper("a"), sleeper("b"))
    pid = system.wait_for("a", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    system.wait_until("a", lambda w: w.generation == 2 and w.pid is not None, PATIENCE_S)
    system.remove("a")
    assert [w.component_id for w in system.report().workers] == ["b"]
    assert rows.restart_count("a") == 1
    assert [id_ for _, id_ in marked_processes(system.mark)] == ["b"]
    system.add(sleeper("a"))
    back = system.wait_for("a", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert (back.restart_count, back.generation) == (1, 3)


@contextmanager
def nemesis(mark: str, seed: int) -> Iterator[None]:
    """Kills the system's processes at random."""
    chance, over = random.Random(seed), threading.Event()

    def kill() -> None:
        while not over.wait(chance.uniform(0.0, 0.01)):
            living = marked_processes(mark)
            if living:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(living)[0], chance.choice([signal.SIGKILL, signal.SIGSEGV]))

    thread = threading.Thread(target=kill, name="nemesis")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("both_ways")
def test_f17_a_stop_amid_crashes_and_starts_ends_in_time_and_restarts_no_worker(
    run: Run, rows: Rows, seed: int
) -> None:
    eager = replace(QUICK, initial_delay_s=0.01)
    specs = [
        *(sleeper(f"sleep:{n}", restart=eager) for n in range(6)),
        *(python("crash_after_a_moment", f"crash:{n}", restart=eager) for n in range(2)),
        python("wait", restart=eager),
    ]
    system = run(*specs)
    mark = system.mark
    with nemesis(mark, seed):
        assert eventually(lambda: sum(w.restart_count for w in system.report().workers) > 20)
        results = system.stop()
    assert {result.component_id for result in results} == {spec.id for spec in specs}
    assert all(result.gone for result in results)
    assert marked_processes(mark) == []
    for spec in specs:
        restarts = [row for row in rows.deaths(spec.id) if row[-1] == "restart"]
        assert (rows.restart_count(spec.id) or 0) == len(restarts)


def test_a_stop_that_is_given_no_time_kills_what_is_left(run: Run) -> None:
    system = run(shell("deaf", "trap '' TERM; echo deaf; while :; do sleep 1000; done"))
    assert eventually(lambda: system.output("deaf") == ("deaf",))
    mark = system.mark
    assert system.stop(timeout_s=0.1) == ()
    assert marked_processes(mark) == []


def test_sd_04_a_stop_during_the_delay_before_a_restart_starts_no_worker(run: Run) -> None:
    slow = RestartPolicy(initial_delay_s=1.0)
    system = run(sleeper(restart=slow))
    pid = system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    system.wait_for("sleeper", Status.DEAD, timeout_s=PATIENCE_S)
    system.stop_workers()
    with system.events() as events:
        # The death may still be on its way; nothing may follow it.
        assert [event for event in events.within(1.5) if not _is_the_death(event)] == []
    assert system.status("sleeper").shown == "stopped"


def _is_the_death(event: object) -> bool:
    return isinstance(event, WorkerDied) or (isinstance(event, StatusChanged) and event.new is Status.DEAD)


def test_sd_19_a_start_in_the_middle_of_a_stop_is_refused_and_starts_no_worker(run: Run) -> None:
    system = run(*(sleeper(f"s:{n}") for n in range(10)))
    mark = system.mark
    stopping = threading.Thread(target=system.stop)
    stopping.start()

    def start_is_refused() -> bool:
        try:
            system.start()
        except RequestRefusedError:
            return True
        return False

    assert eventually(start_is_refused)
    stopping.join(PATIENCE_S)
    assert start_is_refused()
    assert marked_processes(mark) == []
