"""`rekindle cluster try`: what a newcomer sees first."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.usefixtures("postgres_service")  # is skipped where PostgreSQL does not start
def test_a_trial_shows_where_the_workers_of_a_killed_node_go_and_leaves_nothing() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "rekindle", "cluster", "try", "--nodes", "2"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (found.returncode, found.stderr) == (0, "")
    before, _, after = found.stdout.partition("The agent of k2 is killed")
    assert re.search(r"^k2 +up .* 2$", before, re.MULTILINE)
    assert re.search(r"^k1 +up .* 4$", after, re.MULTILINE)
    assert re.search(r"^k2 +lost", after, re.MULTILINE)
