"""A failure that holds for one version only, and what a version is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.builders import TAG

from rekindle.actors import supervision
from rekindle.actors.deaths.evidence import Fingerprint, changed
from rekindle.actors.facts.records import RememberedWorker, RestartReset
from rekindle.actors.messages import FailureLifted
from rekindle.actors.processes.fingerprints import Fingerprints
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.spec.program import PythonCall, command
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision import failures
from rekindle.actors.supervision.worker import Announce, Failed, KeepRecord, Launch, SupervisedWorker, World
from rekindle.actors.views.worker_status import worker_status

OLD = "code-settings"
NOW = World(now_ms=1_000, wall_ms=90_000)


def failed(version: str | None = OLD, *, setting: bool = True) -> SupervisedWorker:
    """A worker that a former run gave up."""
    spec = WorkerSpec.from_preset(TAG, command("app"), restart={"clear_failed_on_change": setting})
    known = RememberedWorker(
        restart_count=20,
        streak_count=5,
        failed_at_wall_ms=80_000,
        failure_reason="too often",
        failed_fingerprint=version,
        last_generation=21,
    )
    return supervision.remembered(spec, known, NOW).worker


def world(version: str | None) -> World:
    """The moment, with the version that the worker is now."""
    return World(now_ms=1_000, wall_ms=90_000, version=version)


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("other-settings", "its code changed"),
        ("code-others", "its configuration changed"),
        ("other-others", "its code and its configuration changed"),
    ],
)
def test_another_version_is_started_with_a_fresh_budget_and_recorded_as_such(new: str, what: str) -> None:
    step = failures.start(failed(), world(new))
    assert step.worker.restarts == RestartState()
    assert KeepRecord(RestartReset(TAG, 90_000)) in step.effects
    assert Announce(FailureLifted(TAG, OLD, new, what)) in step.effects
    assert Launch(22) in step.effects


@pytest.mark.parametrize(
    ("old", "new", "setting"),
    [
        (OLD, OLD, True),
        (OLD, "other-settings", False),
        (OLD, None, True),
        (None, "other-settings", True),
        (OLD, "-settings", True),
        (OLD, "-others", True),
    ],
    ids=["the same", "not wanted", "now unknown", "then unknown", "unreadable", "unreadable, others"],
)
def test_ps_10_everything_else_stays_failed(old: str | None, new: str | None, setting: bool) -> None:
    before = failed(old, setting=setting)
    assert isinstance(before.phase, Failed)
    step = failures.start(before, world(new))
    assert (step.worker, step.effects) == (before, ())


def test_a_version_that_failed_because_it_could_not_be_read_is_lifted_once_it_can() -> None:
    assert changed("-settings", "code-settings") == "its code changed"


def test_a_status_tells_of_the_retry_only_where_there_is_one() -> None:
    assert worker_status(failed(), 0).retried_if_changed
    assert not worker_status(failed(None), 0).retried_if_changed
    assert not worker_status(failed(setting=False), 0).retried_if_changed


def test_versions_are_looked_up_for_those_alone_whose_failure_a_change_may_lift(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("1")
    on, off = (
        WorkerSpec.from_preset(
            id_, command("/bin/sh", str(script)), restart={"clear_failed_on_change": wanted}
        )
        for id_, wanted in (("on", True), ("off", False))
    )
    prints = Fingerprints()
    before = prints.versions([on, off])
    assert list(before) == ["on"]
    assert Fingerprints().versions([on]) == before
    script.write_text("22")
    assert changed(before["on"], prints.versions([on])["on"]) == "its code changed"


def test_code_that_cannot_be_read_has_no_fingerprint(tmp_path: Path) -> None:
    spec = WorkerSpec.from_preset(TAG, command(str(tmp_path / "nothing")))
    assert Fingerprints().of(spec).code == ""
    assert Fingerprint().version is None


def test_a_fifo_in_place_of_a_file_has_no_fingerprint_and_is_not_waited_for(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.touch()
    spec, prints = WorkerSpec.from_preset(TAG, command("bash", str(script))), Fingerprints()
    assert prints.of(spec).code
    script.unlink()
    os.mkfifo(script)
    assert prints.of(spec).code == ""


def test_a_large_file_is_identified_by_its_size_and_its_time_and_never_read(tmp_path: Path) -> None:
    film = tmp_path / "film"
    film.touch()
    os.truncate(film, 1 << 40)  # to read it would take an hour, without supervision meanwhile
    spec = WorkerSpec.from_preset(TAG, command("/bin/sh", str(film)))
    before = Fingerprints().of(spec)
    assert Fingerprints().of(spec) == before
    os.truncate(film, (1 << 40) + 1)
    assert changed(before.version, Fingerprints().of(spec).version) == "its code changed"


def test_a_module_is_looked_for_where_its_worker_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "here.py").write_text("1")
    (tmp_path / "deep" / "there.py").write_text("2")
    monkeypatch.chdir(tmp_path)
    deep = {"env": {"PYTHONPATH": "deep"}, "cwd": str(tmp_path)}
    for name, more in (("here", {}), ("here", {"cwd": str(tmp_path)}), ("there", deep)):
        spec = WorkerSpec.from_preset(TAG, PythonCall(f"{name}:main"), **more)
        assert Fingerprints().of(spec).code
    lost = Fingerprints()
    spec = WorkerSpec.from_preset(TAG, PythonCall("there:main"))
    assert lost.of(spec).code == ""
    (tmp_path / "there.py").write_text("3")
    assert lost.of(spec).code, "it is there by now"
