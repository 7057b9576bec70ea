"""Every death leaves a bundle, and what stands in it is true."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import QUICK, SHORT, python, shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import RestartPolicy, Status, System, UnknownDeathError, command
from rekindle.actors.deaths.evidence import Fingerprint
from rekindle.actors.deaths.findings import Confidence, Finding
from rekindle.persistence import open_store

TWICE = RestartPolicy(max_in_window=1, initial_delay_s=0.0, min_delay_s=0.0)
BURN = "sum(range(10_000_000)); bytearray(300_000_000)"

CRASHES = (
    python("fault", restart=TWICE),
    python("raise_an_error", restart=TWICE),
    python("abort", restart=TWICE),
    python("child_faults_and_worker_exits", restart=TWICE),
    python("write_too_many_last_words", restart=TWICE),
    shell("words", "echo hello; echo trouble >&2; exit 7", restart=TWICE),
    shell("foreign", "python3 -c 'import nothing_of_that_name'", restart=TWICE),
    shell("hungry", f"exec python3 -c '{BURN}'", restart=TWICE),
    worker("missing", command("/no/such/program"), restart=TWICE),
)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system in which all of these died twice and were given up."""
    database = tmp_path_factory.mktemp("bundles") / "rekindle.db"
    with System(CRASHES, store=open_store(database)) as system:
        for spec in CRASHES:
            system.wait_for(spec.id, Status.FAILED, timeout_s=3 * PATIENCE_S)
            assert eventually(lambda id_=spec.id: len(system.bundles(id_)) == 2)  # type: ignore[misc]
        yield system


@pytest.mark.parametrize(
    ("id_", "words"),
    [
        ("missing", "it could not be started: [Errno 2] No such file or directory: '/no/such/program'"),
        ("raise_an_error", "exited with code 1. Found: LookupError: no such song"),
    ],
)
def test_what_was_found_is_part_of_the_explanation(crashed: System, id_: str, words: str) -> None:
    assert words in crashed.explain(id_)


def test_a_segmentation_fault_leaves_its_stack_although_no_code_can_run(
    crashed: System,
) -> None:
    bundle = crashed.bundle("fault", 1)
    assert (bundle.finding, bundle.confidence) == (Finding.SEGMENTATION_FAULT, Confidence.CERTAIN)
    assert (bundle.exit_code, bundle.signal) == (None, signal.SIGSEGV)
    assert bundle.last_words.startswith("Fatal Python error: Segmentation fault")
    assert "in fault" in bundle.last_words
    assert "in string_at" in bundle.sentence
    assert (bundle.job, bundle.progress) == ("song.mp3", 7)
    assert ("out", "about to read") in bundle.output
    assert not any("Fatal" in text for _, text in bundle.output)


def test_an_exception_is_reported_with_its_traceback_and_without_our_own_frames(crashed: System) -> None:
    bundle = crashed.bundle("raise_an_error", 1)
    assert (bundle.finding, bundle.confidence) == (Finding.EXCEPTION, Confidence.CERTAIN)
    assert bundle.sentence.startswith("LookupError: no such song in raise_an_error (")
    assert bundle.exit_code == 1
    assert "rekindle/worker/run.py" not in bundle.last_words
    assert ("err", "about to raise") in bundle.output


def test_an_abort_is_a_fatal_signal(crashed: System) -> None:
    bundle = crashed.bundle("abort", 1)
    assert (bundle.finding, bundle.confidence) == (Finding.FATAL_SIGNAL, Confidence.CERTAIN)
    assert "SIGABRT in abort" in bundle.sentence


@pytest.mark.usefixtures("both_ways")
def test_a_bare_sigkill_is_never_called_a_lack_of_memory(run: Run) -> None:
    system = run(python("wait", restart=QUICK))
    pid = system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: bool(system.bundles("wait")))
    bundle = system.bundle("wait", 1)
    assert (bundle.finding, bundle.confidence) == (Finding.UNKNOWN, Confidence.GUESS)
    assert "killed by SIGKILL, which Rekindle did not send" in bundle.sentence
    assert bundle.pid == pid
    assert bundle.heartbeat_wall_ms is not None
    assert bundle.at_wall_ms - 60_000 < bundle.heartbeat_wall_ms <= bundle.at_wall_ms


@pytest.mark.usefixtures("both_ways")
def test_a_stop_by_an_operator_is_marked_as_such_and_is_not_a_death(run: Run) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done"
    system = run(python("wait"), shell("deaf", deaf, stop=SHORT))
    system.wait_for("wait", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(lambda: system.output("deaf") == ("deaf",))
    for id_ in ("wait", "deaf"):
        system.stop_worker(id_)
        assert eventually(lambda id_=id_: bool(system.bundles(id_)))  # type: ignore[misc]
    willing, forced = system.bundle("wait", 1), system.bundle("deaf", 1)
    assert (willing.finding, willing.confidence) == (Finding.OPERATOR, Confidence.CERTAIN)
    assert willing.sentence == "an operator stopped or restarted it; it exited with code 0"
    assert forced.finding is Finding.OPERATOR
    assert (forced.signal, forced.sent, forced.detail) == (9, 9, "operator_stop")
    assert ("out", "deaf") in forced.output
    assert forced.pid is not None
    assert system.deaths("wait") == system.deaths("deaf") == ()


def test_the_event_of_a_death_says_what_it_died_of(crashed: System) -> None:
    found = {
        (each.component_id, fields["finding"], fields["confidence"])
        for each in crashed.event_log(0, 1000).events
        if each.type == "worker_died" and (fields := json.loads(each.payload))
    }
    assert {
        ("fault", "segmentation_fault", "certain"),
        ("raise_an_error", "exception", "certain"),
        ("words", "exit", "certain"),
        ("missing", "not_started", "certain"),
    } <= found


def test_a_command_leaves_its_last_lines_and_its_code(crashed: System) -> None:
    bundle = crashed.bundle("words", 1)
    assert (bundle.finding, bundle.exit_code, bundle.last_words) == (Finding.EXIT, 7, "")
    assert sorted(bundle.output) == [("err", "trouble"), ("out", "hello")]


def test_a_python_program_that_is_not_ours_is_believed_by_its_stderr_only_likely(
    crashed: System,
) -> None:
    bundle = crashed.bundle("foreign", 1)
    assert (bundle.finding, bundle.confidence) == (Finding.EXCEPTION, Confidence.LIKELY)
    assert "ModuleNotFoundError" in bundle.sentence


def test_a_program_that_is_not_there_was_never_started(crashed: System) -> None:
    bundle = crashed.bundle("missing", 1)
    assert bundle.finding is Finding.NOT_STARTED
    assert "No such file or directory" in bundle.sentence


def test_the_usage_of_a_process_comes_from_the_kernel(crashed: System) -> None:
    bundle = crashed.bundle("hungry", 1)
    assert bundle.usage is not None
    assert bundle.usage.user_ms >= 50
    assert bundle.usage.peak_rss_kb >= 300_000_000 // 1024
    # The kernel hands our own peak down: where these tests grew above it, only a bound is known.
    ours_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not bundle.usage.peak_is_a_bound or ours_kb >= 300_000_000 // 1024


def test_the_peak_of_a_small_process_is_reported_as_a_bound_since_the_kernel_mixes_it_with_ours(
    crashed: System,
) -> None:
    bundle = crashed.bundle("words", 1)
    assert bundle.usage is not None
    assert bundle.usage.peak_is_a_bound


def test_the_fault_of_a_forked_child_is_not_taken_for_the_worker_s(crashed: System) -> None:
    bundle = crashed.bundle("child_faults_and_worker_exits", 1)
    assert (bundle.finding, bundle.exit_code, bundle.last_words) == (Finding.EXIT, 5, "")


def test_last_words_have_a_limit(crashed: System) -> None:
    bundle = crashed.bundle("write_too_many_last_words", 1)
    assert bundle.finding is Finding.EXCEPTION
    assert len(bundle.last_words) < 20_000


@pytest.mark.parametrize("name", ["fault", "raise_an_error", "words", "missing"])
def test_the_same_crash_has_the_same_fingerprint_each_time(crashed: System, name: str) -> None:
    second, first = crashed.bundles(name)
    assert (second.generation, first.generation) == (2, 1)
    assert second.crash == first.crash
    assert second.fingerprint == first.fingerprint


def test_different_crashes_have_different_fingerprints(crashed: System) -> None:
    names = ("fault", "raise_an_error", "abort", "words", "missing")
    assert len({crashed.bundle(name, 1).crash for name in names}) == len(names)


def test_nothing_is_reported_about_a_generation_that_did_not_die(crashed: System) -> None:
    with pytest.raises(UnknownDeathError, match="generation 3"):
        crashed.bundle("fault", 3)


def known_code(system: System) -> list[Fingerprint]:
    """The fingerprints that were looked up before the process died."""
    return [bundle.fingerprint for bundle in system.bundles("w") if bundle.fingerprint.code]


def test_code_and_configuration_have_fingerprints_of_their_own(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text("exit 1\n")
    system = run(worker("w", command("bash", str(script)), restart=QUICK))
    assert eventually(lambda: known_code(system))
    old = known_code(system)[0]
    script.write_text("exit 2\n")
    # A start that was under way may have looked at the old script and run the new one.
    assert eventually(lambda: system.bundles("w")[0].fingerprint.code not in {old.code, ""})
    new = system.bundles("w", limit=1)[0]
    assert new.exit_code == 2
    assert new.fingerprint.configuration == old.configuration


def test_a_bundle_names_the_directory_that_the_worker_was_told_to_work_in(run: Run, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    system = run(shell("at_work", "exit 3", cwd=str(workspace), restart=replace(QUICK, enabled=False)))
    assert eventually(lambda: system.bundles("at_work"))
    (bundle,) = system.bundles("at_work")
    assert bundle.cwd == str(workspace)
