"""Warm workers and standbys under kills at random instants, and over many forks.

`./scripts/chaos/warm` runs the same with more kills and forks.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run, unreaped
from tests.processes.policies import QUICK, worker
from tests.processes.supervisors import Supervisor, children_of, command_of
from tests.processes.waiting import Held, eventually
from tests.processes.warm_application import exit_code

from rekindle.actors import PythonCall
from rekindle.worker.guardian import marked_processes

KILLS = int(os.environ.get("REKINDLE_WARM_KILLS", "4"))
FORKS = int(os.environ.get("REKINDLE_FORKS", "300"))
GENEROUS_S = 20.0
AT_ONCE = replace(
    QUICK, max_in_window=None, max_lifetime=None, initial_delay_s=0.0, max_delay_s=0.0, min_delay_s=0.0
)


def warm_processes_of(pid: int) -> list[int]:
    """The warm processes and standbys of a supervisor."""
    return [child for child in children_of(pid) if b"rekindle.worker.warm" in command_of(child)]


def kill_a_warm_process(supervisor: Supervisor, chance: random.Random) -> None:
    found = warm_processes_of(supervisor.process.pid)
    if found:
        with suppress(ProcessLookupError):
            os.kill(chance.choice(found), signal.SIGKILL)


def told_deaths(database: Path) -> list[tuple[str, int, int | None, int | None]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT component_id, generation, exit_code, signal FROM rekindle_death"
            " WHERE cause IN ('exited', 'signalled')"
        ).fetchall()


def test_killed_at_random_instants_nothing_is_orphaned_and_every_death_is_told_once_as_it_was(
    database: Path, marks: list[str], no_traces: None
) -> None:
    chance = random.Random(19)
    for number in range(KILLS):
        with Supervisor("warm", database) as supervisor:
            marks.append(supervisor.mark)
            eventually(lambda: False, within_s=chance.uniform(0.0, 0.5))
            kill_a_warm_process(supervisor, chance)
            eventually(lambda: False, within_s=chance.uniform(0.0, 0.5))
            with Held() as held:
                for pid in supervisor.family():
                    with suppress(ProcessLookupError):  # it has ended meanwhile
                        held.add(pid)
                supervisor.kill()
                assert held.all_end(GENEROUS_S), (number, held.living())
        assert eventually(lambda: marked_processes(marks[-1]) == [], GENEROUS_S)
    deaths = told_deaths(database)
    ended = [death for death in deaths if death[0].startswith("dies")]
    assert len({(id_, generation) for id_, generation, *_ in deaths}) == len(deaths)
    wrong = [each for each in ended if each[2:] != (exit_code(each[1]), None)]
    # A standby that was about to be killed may have become a worker.
    assert [each[2:] for each in wrong] == [(None, signal.SIGKILL)] * min(len(wrong), KILLS)
    assert len(ended) > KILLS


def test_many_forks_leave_no_descriptor_no_memory_and_no_zombie(run: Run) -> None:
    end = PythonCall("tests.processes.warm_application:end_with_generation", warm=True, standby=1)
    before = set(unreaped())
    system = run(worker("w", end, restart=AT_ONCE))
    reached: Callable[[int], bool] = lambda number: system.status("w").generation >= number  # noqa: E731
    assert eventually(lambda: reached(FORKS // 3), GENEROUS_S + FORKS / 5)
    descriptors, memory = _descriptors(), _resident_kb()
    assert eventually(lambda: reached(FORKS), GENEROUS_S + FORKS / 5)
    assert _resident_kb() - memory < 16 * 1024
    assert _descriptors() - descriptors < 20  # those of the process that runs now, and of one that ends
    assert eventually(lambda: len(set(unreaped()) - before) <= 1)
    system.stop()
    assert eventually(lambda: set(unreaped()) <= before)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize("victim", ["warm process", "standby"])
def test_a_stop_at_the_moment_of_a_kill_leaves_nothing(run: Run, victim: str) -> None:
    serve = PythonCall("tests.processes.warm_application:serve", warm=True, standby=1)
    system = run(worker("w", serve))
    assert eventually(lambda: _by_kind().keys() == {"warm process", "standby"})
    os.kill(_by_kind()[victim], signal.SIGKILL)
    system.stop()
    assert eventually(lambda: not warm_processes_of(os.getpid()))


def _by_kind() -> dict[str, int]:
    pids = warm_processes_of(os.getpid())
    return {"standby" if b"standby" in command_of(pid) else "warm process": pid for pid in pids}
