"""The pytest plugin as a user's test suite meets it: another pytest, in a folder of its own."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = "rekindle.testing.plugin"

APP = """
from rekindle.worker import Worker


def tag(worker: Worker) -> None:
    while worker.running:
        with worker.job("song.mp3"):
            print("tagging", flush=True)
            worker.wait(0.2)
"""
DIED = r"died after .+ in job song\.mp3: killed by SIGKILL; restart in 50 ms: 1st in a row, .+"
HEAD = """
import pytest
from rekindle.actors import PythonCall, WorkerSpec

TAG = WorkerSpec.from_preset(
    "worker:tag:0", PythonCall("app:tag"), restart={"initial_delay_s": 0.05, "min_delay_s": 0}
)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a worker in it."""
    pytester.makepyfile(app=APP)
    # Of all the plugins that happen to be installed, ours alone: the others take seconds to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'scripts' / 'import_root'}:{pytester.path}")
    return pytester


def run(suite: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    suite.makepyfile(test_app=HEAD + test)
    return suite.runpytest_subprocess("-p", PLUGIN, "-p", "no:cacheprovider", *arguments, timeout=100)


def test_a_worker_that_is_killed_in_a_job_comes_back_and_leaves_nothing_behind(
    suite: pytest.Pytester,
) -> None:
    test = """
def test_kill(rekindle_system):
    system = rekindle_system(TAG)
    system.wait_for_job("song.mp3")
    pid = system.kill()
    again = system.wait_until_back()
    (death,) = system.wait_for_deaths()
    assert (death.signal, death.job) == (9, "song.mp3")
    assert (again.restart_count, again.pid != pid) == (1, True)

def test_nothing_is_left(rekindle_system):
    import threading, psutil
    assert threading.active_count() == 1
    assert psutil.Process().children() == []
"""
    run(suite, test).assert_outcomes(passed=2)


def test_a_store_in_a_file_is_remembered_by_the_next_system_of_the_test(suite: pytest.Pytester) -> None:
    test = """
def test_memory(rekindle_system):
    first = rekindle_system(TAG, store="sqlite")
    first.wait_until_healthy()
    first.kill()
    first.wait_until_back()
    first.stop()
    assert rekindle_system(TAG, store="sqlite").wait_until_healthy().restart_count == 1
"""
    run(suite, test).assert_outcomes(passed=1)


def test_a_failed_test_tells_what_happened_to_each_worker(suite: pytest.Pytester) -> None:
    test = """
def test_wrong(rekindle_system):
    other = WorkerSpec("worker:other:0", PythonCall("app:tag"))
    system = rekindle_system(TAG, other)
    system.wait_for_job("song.mp3", "worker:tag:0")
    system.wait_until_healthy("worker:other:0")
    system.kill("worker:tag:0")
    system.wait_for_deaths(1, "worker:tag:0")
    assert system.wait_until_back("worker:tag:0").restart_count == 7
"""
    said = run(suite, test)
    said.assert_outcomes(failed=1)
    text = said.stdout.str()
    section = text[text.index("- rekindle: worker:tag:0 -") : text.index("- rekindle: worker:other:0 -")]
    lines = [line.partition(" s  ")[2] for line in section.splitlines() if " s  " in line]
    assert re.fullmatch(r"started, pid \d+, generation 1", lines[0])
    assert any(re.fullmatch(DIED, line) for line in lines)
    assert re.fullmatch(r"started, pid \d+, generation 2", lines[-2])
    assert lines[-1] == "is healthy"
    assert "  | tagging" in section


def test_what_passes_is_silent(suite: pytest.Pytester) -> None:
    test = "\ndef test_right(rekindle_system):\n    rekindle_system(TAG).wait_until_healthy()\n"
    assert "rekindle:" not in run(suite, test, "-rA").stdout.str()


def test_a_failure_of_the_test_does_not_keep_its_workers_alive(suite: pytest.Pytester) -> None:
    test = """
import os
PIDS = []

def test_wrong(rekindle_system):
    PIDS.append(rekindle_system(TAG).wait_until_healthy().pid)
    raise RuntimeError("the test itself is wrong")

def test_gone():
    with pytest.raises(ProcessLookupError):
        os.kill(PIDS[0], 0)
"""
    run(suite, test).assert_outcomes(failed=1, passed=1)


def test_impossible_requests_are_refused_with_the_reason(suite: pytest.Pytester) -> None:
    test = """
def test_errors(rekindle_system):
    from rekindle.actors import RequestRefusedError, RequestTimeoutError
    other = WorkerSpec("worker:other:0", PythonCall("app:tag"))
    system = rekindle_system(TAG, other)
    with pytest.raises(RequestRefusedError, match="name one of worker:tag:0, worker:other:0"):
        system.kill()
    system.stop_worker(other.id)
    with pytest.raises(RequestRefusedError, match="has no process to send a signal to: it is stopped"):
        system.kill(other.id)
    with pytest.raises(RequestTimeoutError, match="died 0 times in 0.1 s, not 1"):
        system.wait_for_deaths(1, other.id, timeout_s=0.1)
"""
    run(suite, test).assert_outcomes(passed=1)


# ── seeds ────────────────────────────────────────────────────────────────────────────────

SEEDED = """
@pytest.mark.chaos(seeds=3)
def test_seeds(chaos):
    assert chaos.random.random() >= 0
    assert chaos.seed != 1, "seed 1 shows a bug"
"""


def test_a_marked_test_runs_once_for_each_seed_and_a_failure_names_its_own(suite: pytest.Pytester) -> None:
    said = run(suite, SEEDED, "--strict-markers")
    said.assert_outcomes(passed=2, failed=1)
    said.stdout.fnmatch_lines(
        [
            "*- rekindle: chaos -*",
            "repeat with: pytest 'test_app.py::test_seeds[[]seed=1]' --chaos-seed 1",
        ]
    )
    again = run(suite, SEEDED, "test_app.py::test_seeds[seed=1]", "--chaos-seed", "1")
    again.assert_outcomes(failed=1)


def test_the_number_of_seeds_can_be_raised_from_outside(suite: pytest.Pytester) -> None:
    said = run(suite, SEEDED, "--chaos-seeds", "10")
    said.assert_outcomes(passed=9, failed=1)


def test_the_same_seed_chooses_the_same(suite: pytest.Pytester) -> None:
    test = """
@pytest.mark.chaos(seeds=[7, 7])
def test_same(chaos):
    assert [chaos.choose(range(1000)) for _ in range(3)] == [331, 154, 404]
"""
    expected = random.Random(7)
    numbers = [expected.choice(range(1000)) for _ in range(3)]
    run(suite, test.replace("[331, 154, 404]", str(numbers))).assert_outcomes(passed=2)


@pytest.mark.parametrize("seeds", ["0", "-1", "'x'", "[]", "True"])
def test_invalid_seeds_are_refused(suite: pytest.Pytester, seeds: str) -> None:
    test = f"\n@pytest.mark.chaos(seeds={seeds})\ndef test_none(chaos):\n    pass\n"
    suite.makepyfile(test_app=HEAD + test)
    said = suite.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider")
    assert "seeds must be a number above 0 or a list of numbers" in said.stdout.str()
    assert said.ret != 0


def test_a_chaos_marker_of_another_plugin_keeps_its_meaning(suite: pytest.Pytester) -> None:
    test = "\n@pytest.mark.chaos('monkey', level=3)\ndef test_own():\n    pass\n"
    run(suite, test).assert_outcomes(passed=1)


def test_chaos_kills_at_a_time_of_its_own_choosing_and_the_worker_comes_back(suite: pytest.Pytester) -> None:
    test = """
@pytest.mark.chaos(seeds=2)
def test_whenever(rekindle_system, chaos):
    system = rekindle_system(TAG)
    chaos.wait(0.0, 0.3)
    chaos.kill(system)
    assert system.wait_until_back().restart_count == 1
    chaos.freeze(system, most_s=0.05)
    system.wait_until_healthy()
"""
    run(suite, test).assert_outcomes(passed=2)


# ── virtual time ─────────────────────────────────────────────────────────────────────────


def test_an_hour_of_crashes_passes_in_virtual_time_under_the_workers_own_policy(
    suite: pytest.Pytester,
) -> None:
    """RD-09."""
    test = """
from rekindle.actors.simulation import Scenario, dies_after, moves, runs

STEADY = WorkerSpec("worker:tag:0", PythonCall("app:tag"))

def test_hour(virtual_time):
    system = virtual_time(STEADY, lives=dies_after(3))
    system.run_for(3600)
    assert system.starts(STEADY.id) == [0, 4, 9, 16, 27, 46]
    assert system.status(STEADY.id).shown == "failed"
    assert system.deaths(STEADY.id)[-1].action == "mark_failed"
    assert system.finish().violations == ()

def test_lives(virtual_time):
    system = virtual_time(STEADY, lives={STEADY.id: [dies_after(5), runs()]})
    system.run_for(100)
    system.make(moves.Kill(STEADY.id))
    system.run_for(100)
    assert system.starts(STEADY.id) == [0, 6, 102]

def test_wrong(virtual_time):
    system = virtual_time(Scenario("mine").worker("tag", dies_after(3)))
    system.run_for(10)
    assert system.status("tag").shown == "failed"
"""
    said = run(suite, test)
    said.assert_outcomes(passed=2, failed=1)
    said.stdout.fnmatch_lines(
        [
            "*- rekindle: tag in virtual time -*",
            "*0.000*#1 starts, pid*",
            "*3.000*died: exited; decided: restart in 1 s",
        ]
    )


def test_chaos_plays_with_policies_in_virtual_time_and_says_what_was_not_met(suite: pytest.Pytester) -> None:
    test = """
from rekindle.actors.simulation import Scenario, dies_after, reaches

@pytest.mark.chaos(seeds=5)
def test_any_faults(chaos):
    outcome = chaos.play(TAG, lives=dies_after(40), moves=20)
    assert outcome.lasted_s >= 600

def test_unmet(chaos):
    chaos.play(Scenario("calm", 60).worker("tag").expect(reaches("tag", "failed", by=50)))
"""
    said = run(suite, test)
    said.assert_outcomes(passed=5, failed=1)
    said.stdout.fnmatch_lines(["E*tag*failed*", "*- rekindle: chaos -*", "played 'calm': 0 moves*"])


# ── a guest in everyone's test runs ──────────────────────────────────────────────────────


def test_pytest_finds_the_plugin_which_loads_nothing_until_a_test_asks_for_it(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    suite.makepyfile(
        test_app="""
import sys

def test_light():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert loaded.isdisjoint({"loguru", "msgspec", "pykka", "sqlalchemy", "psutil", "click"})
    ours = {name for name in sys.modules if name.startswith("rekindle")}
    assert ours <= {"rekindle", "rekindle.testing", "rekindle.testing.plugin"}
    assert "rekindle.testing.plugin" in ours
"""
    )
    suite.runpytest_subprocess("-p", "no:cacheprovider", timeout=100).assert_outcomes(passed=1)


def test_the_plugin_takes_no_time_to_load() -> None:
    """What it imports beside pytest itself: two small modules."""
    code = "import pytest, sys; before = set(sys.modules); import rekindle.testing.plugin\n"
    code += "print(*sorted(set(sys.modules) - before))"
    environment = {"PYTHONPATH": str(ROOT / "scripts" / "import_root")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["rekindle", "rekindle.testing", "rekindle.testing.plugin"], done.stderr


def test_the_public_names_are_there_when_they_are_wanted() -> None:
    import rekindle.testing

    for name in rekindle.testing.__all__:
        assert getattr(rekindle.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        rekindle.testing.nonsense  # noqa: B018
