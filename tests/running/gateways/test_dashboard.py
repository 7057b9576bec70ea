"""`rekindle run --http` and `rekindle dashboard`: the real executable."""

from __future__ import annotations

import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.running.conftest import IMPORT_PATH, REKINDLE, Run

WORKER = '[worker.a]\ncommand = ["sleep", "1000"]\n'
ANY_PORT = "127.0.0.1:0"


def rekindle(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*REKINDLE, *words, "--state", str(state)],
        env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_dashboard_is_off_until_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    run(WORKER).wait_for("worker:a:0", shown="healthy")
    done = rekindle("dashboard", state=tmp_path / ".rekindle")
    assert (done.returncode, "the dashboard is off" in done.stderr) == (1, True)
    assert not list((tmp_path / ".rekindle").glob("*.token"))


def test_a_link_gives_access_and_the_log_does_not_contain_its_token(run: Run, tmp_path: Path) -> None:
    running = run(WORKER, "--http", ANY_PORT)
    running.wait_for("worker:a:0", shown="healthy")
    viewer = rekindle("dashboard", state=tmp_path / ".rekindle").stdout.strip()
    operator = rekindle("dashboard", "--operator", state=tmp_path / ".rekindle").stdout.strip()
    url, _, token = viewer.partition("#token=")
    assert operator.startswith(f"{url}#token=")
    assert url in running.text()
    assert token not in running.text()
    assert status(f"{url}api/v1/workers", token) == 200
    assert status(f"{url}api/v1/workers/worker:a:0/restart", token, method="POST") == 403
    assert status(f"{url}api/v1/workers", "wrong") == 401
    assert running.stop() == 0


def status(url: str, token: str, method: str = "GET") -> int:
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("address", ["0.0.0.0:8377", "[::]:8377", "example.org:8377", "8377"])
def test_an_address_that_is_not_safe_is_refused_before_anything_starts(
    run: Run, address: str, tmp_path: Path
) -> None:
    """F29."""
    running = run(WORKER, "--http", address)
    assert running.end() == 2
    assert "--http" in running.text()
    assert not (tmp_path / ".rekindle" / "supervisor.lock").exists()


def test_without_a_supervisor_there_is_no_link(tmp_path: Path) -> None:
    assert rekindle("dashboard", state=tmp_path).returncode == 3


def test_a_link_that_was_opened_in_a_browser_leaves_no_file_with_its_token(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(WORKER, "--http", ANY_PORT).wait_for("worker:a:0", shown="healthy")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {tmp_path}/seen.html\n')
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    done = rekindle("dashboard", "--open", state=tmp_path / ".rekindle")
    assert done.returncode == 0, done.stderr
    assert "#token=" in (tmp_path / "seen.html").read_text()
    assert not (tmp_path / ".rekindle" / "dashboard.html").exists()
