"""Jobs that kill their workers, while workers are killed at random: the short form of a bench."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.bench.jobs.fairness import run_fairness
from tests.services import postgres_service, postgres_url

__all__ = ["postgres_service", "postgres_url"]

JOBS = 300


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_job_is_lost_done_twice_or_convicted_for_the_deaths_of_others(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    where = str(tmp_path / "rekindle.db") if database == "sqlite" else request.getfixturevalue("postgres_url")
    account = run_fairness(where, tmp_path, JOBS, seed=7, supervisor_every_s=3.0)
    assert account.is_fair, account
    assert account.done + account.toxic == JOBS
