"""A failed script is tried again once it has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

from rekindle.cli.client import ControlError

ID = "worker:app:0"
LIFTED = f"{ID} is no longer failed, counters cleared: its code changed"
FILE = """
[worker.app]
command = ["sh", "{script}"]
env = {{ GREETING = "hello" }}
[worker.app.restart]
max_consecutive = 1
initial_delay_s = 0.01
min_delay_s = 0.01
clear_failed_on_change = {setting}
"""


def failed_worker(run: Run, script: Path, setting: str = "true") -> Running:
    """A supervisor whose worker has failed."""
    script.write_text("exit 1\n")
    running = run(FILE.format(script=script, setting=setting))
    running.wait_for(ID, shown="failed")
    return running


def again(run: Run, former: Running) -> Running:
    """The supervisor again, with the same file."""
    assert former.stop() == 0
    return run(former.file.read_text())


def fix(script: Path) -> None:
    script.write_text("exec sleep 1000\n")


def test_ps_10_an_unchanged_script_stays_failed_and_a_changed_one_is_tried(run: Run, tmp_path: Path) -> None:
    running = again(run, failed_worker(run, tmp_path / "app.sh"))
    failed = running.wait_for(ID, shown="failed")
    assert (failed["generation"], failed["retried_if_changed"]) == (2, True)
    assert "no longer failed" not in running.text()

    fix(tmp_path / "app.sh")
    running = again(run, running)
    lifted = running.wait_for(ID, shown="healthy")
    assert (lifted["generation"], lifted["restart_count"]) == (3, 0)
    # An event is published once it is stored, which may be later than the status shows it.
    assert eventually(lambda: LIFTED in running.text())


def test_a_reload_tries_a_changed_script_and_a_changed_configuration(run: Run, tmp_path: Path) -> None:
    running = failed_worker(run, tmp_path / "app.sh")
    assert "lifted" not in running.order("reload")["detail"]
    running.file.write_text(running.file.read_text().replace("hello", "good day"))
    assert running.order("reload")["detail"]["lifted"] == [ID]
    running.wait_for(ID, shown="failed", generation=4)
    fix(tmp_path / "app.sh")
    assert running.order("reload")["detail"]["lifted"] == [ID]
    running.wait_for(ID, shown="healthy", generation=5)
    assert eventually(lambda: LIFTED in running.text())
    assert f"{ID} is no longer failed, counters cleared: its configuration changed" in running.text()


def test_a_start_by_hand_tries_a_changed_script_and_says_what_to_do_about_an_unchanged_one(
    run: Run, tmp_path: Path
) -> None:
    running = failed_worker(run, tmp_path / "app.sh")
    with pytest.raises(ControlError, match="it is still the version that failed: restart clears that"):
        running.order("workers", ID, "start")
    fix(tmp_path / "app.sh")
    running.order("workers", ID, "start")
    lifted = running.wait_for(ID, shown="healthy")
    assert (lifted["generation"], lifted["restart_count"]) == (3, 0)
    assert eventually(lambda: LIFTED in running.text())
    timeline = running.client.get(f"/workers/{ID}/timeline")["entries"]
    told = [each["text"] for each in timeline if "no longer failed" in each["text"]]
    assert told[0].startswith("is no longer failed, counters cleared: its code changed (")


def test_without_the_setting_a_changed_script_stays_failed(run: Run, tmp_path: Path) -> None:
    former = failed_worker(run, tmp_path / "app.sh", setting="false")
    fix(tmp_path / "app.sh")
    running = again(run, former)
    assert running.wait_for(ID, shown="failed")["generation"] == 2
    assert "lifted" not in running.order("reload")["detail"]


def test_a_python_module_beside_the_file_is_found_and_a_change_of_it_noticed(run: Run) -> None:
    """It was looked for where the supervisor imports from, and not where its worker does."""
    text = FILE.format(script="", setting="true").replace(
        'command = ["sh", ""]', 'python = "beside_the_file:main"\ncwd = "."'
    )
    running = run(text)
    module = running.file.parent / "beside_the_file.py"
    running.wait_for(ID, shown="failed")
    with pytest.raises(ControlError, match="its code cannot be read"):
        running.order("workers", ID, "start")
    module.write_text("def main():\n    raise SystemExit(1)\n")
    running.order("workers", ID, "start")
    running.wait_for(ID, shown="failed", generation=4)
    module.write_text("import time\n\n\ndef main():\n    time.sleep(1000)\n")
    running.order("workers", ID, "start")
    running.wait_for(ID, shown="healthy", generation=5)
