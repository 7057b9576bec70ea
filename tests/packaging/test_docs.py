"""The manual and the API reference build as one site, without a warning."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.packaging.conftest import ROOT


def test_the_site_has_every_page_and_the_public_api_in_its_search(tmp_path: Path) -> None:
    site = tmp_path / "site"
    built = subprocess.run(
        ["./scripts/docs", str(site)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"] for entry in index["docs"]}
    assert {"index.html", "actors/index.html", "scripts/cli/index.html", "tests/index.html"} <= found
    assert "api/actors.html#rekindle.actors.System.stop" in found
    assert "api/worker.html#rekindle.worker.jobs.JobWorker" in found
