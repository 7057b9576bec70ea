"""Existing task queues as supervised commands."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import System, WorkerSpec
from rekindle.cli.config import load, parse
from rekindle.persistence import MemoryStore

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "scripts" / "adapters"
STARTS_WITHIN_S = 3 * PATIENCE_S


@pytest.mark.parametrize("file", sorted(ADAPTERS.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_is_a_configuration_without_problems(file: Path) -> None:
    config = parse(file.read_text(), file)
    assert config.warnings == ()
    assert config.specs()


def test_a_celery_worker_that_is_killed_in_the_middle_of_a_task_comes_back_and_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("celery_app.py", "celery.toml"):
        shutil.copy(ADAPTERS / name, tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts" / "import_root"))
    specs = load(tmp_path / "celery.toml").specs()
    lines = tmp_path / "lines"
    task_id = _submitted(tmp_path, lines)
    # An application finds Rekindle where it is installed; here it is not.
    specs = tuple(_finding_rekindle(spec) for spec in specs)
    with System(specs, store=MemoryStore()) as system:
        worker = system.wait_until("worker:celery:0", lambda w: w.current_job == task_id, STARTS_WITHIN_S)
        assert worker.pid is not None
        assert eventually(lambda: _said(lines) == [("begun", worker.pid)])
        os.kill(worker.pid, signal.SIGKILL)
        assert eventually(lambda: ("done",) in [said[:1] for said in _said(lines)], STARTS_WITHIN_S)
        [death] = system.deaths("worker:celery:0")
        [result] = system.stop()
    began, again, done = _said(lines)
    assert (began, again[0], done) == (("begun", worker.pid), "begun", ("done", again[1]))
    assert again[1] != worker.pid
    assert (death.signal, death.job) == (signal.SIGKILL, task_id)
    assert result.forced is None, "asked to stop, Celery ends by itself"


def _finding_rekindle(spec: WorkerSpec) -> WorkerSpec:
    return replace(spec, inherit_env=(*spec.inherit_env, "PYTHONPATH"))


def _submitted(folder: Path, lines: Path) -> str:
    send = f"from celery_app import report; print(report.delay({str(lines)!r}, 2.0).id)"
    ran = subprocess.run(
        [sys.executable, "-c", send], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return ran.stdout.strip()


def _said(lines: Path) -> list[tuple[str, int]]:
    text = lines.read_text() if lines.exists() else ""
    return [(word, int(pid)) for word, pid in re.findall(r"(begun|done) by (\d+)\n", text)]
