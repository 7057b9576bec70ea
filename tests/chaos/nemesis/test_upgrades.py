"""Upgrades of a real supervisor at random instants; `./scripts/chaos/upgrades` makes a hundred of them."""

from __future__ import annotations

from pathlib import Path

from scripts.nemesis.upgrades import run


def test_upgrades_at_random_instants_lose_no_death_and_no_worker(tmp_path: Path) -> None:
    result = run(tmp_path, 3, 20, 1, lambda _: None)
    assert result.violations == []
    assert result.upgrades + result.refused.total() == 3
    assert result.deaths > 0
