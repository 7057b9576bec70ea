"""The nemesis for a moment, on each database: real processes, real signals, real outages."""

from __future__ import annotations

import os
import sys

import pytest
from scripts.nemesis.run import run
from tests.services import unavailable

MINUTES = float(os.environ.get("REKINDLE_NEMESIS_MINUTES", "0.5"))
"""How long each database is attacked; the release check takes ten minutes with `./scripts/chaos/nemesis`."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("database", "seed"), [("sqlite", 1), ("postgresql", 2)])
def test_an_attack_on_everything_breaks_no_promise(database: str, seed: int) -> None:
    try:
        verdict = run(database, seed, MINUTES, lambda text: print(text, file=sys.stderr))  # noqa: T201
    except RuntimeError as error:
        if database == "postgresql" and "PostgreSQL" in str(error):
            unavailable(str(error))
        raise
    found = [f"{each.check}: {each.text}" for each in verdict.violations]
    assert found == [], f"the files of the run are in {verdict.folder}"
    assert verdict.figures["signals"] > 0
