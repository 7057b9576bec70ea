"""The scenario that several tests of chaos use, and a run of it in virtual time."""

from __future__ import annotations

from rekindle.actors.simulation import (
    Outcome,
    Scenario,
    Step,
    cannot_be_spawned,
    dies_after,
    hangs,
    ignores_term,
    needs_database,
    run_virtual,
    says_recovering,
    stops_heartbeating,
)
from rekindle.persistence import MemoryStore

ENDLESS = {"max_in_window": None, "max_lifetime": None}


def all_kinds_of_workers(moves: int = 60, lasts_s: float = 600.0) -> Scenario:
    """Workers of every kind under every preset, and moves of every kind."""
    return (
        Scenario("all kinds of workers", lasts_s)
        .worker("crashes", dies_after(7), restart=ENDLESS)
        .worker("patient", preset="patient")
        .worker("leaves", dies_after(30, exit=0), preset="notify", restart={"enabled": True})
        .worker("plugin", dies_after(1), preset="plugin")
        .worker("deaf", ignores_term())
        .worker(
            "moody",
            says_recovering(20),
            cannot_be_spawned(),
            hangs(after_s=20),
            stops_heartbeating(10),
            needs_database(until=30),
        )
        .worker("plain", dies_after(45), reports_health=False, preset="patient")
        .at_random(moves)
    )


def play(scenario: Scenario, seed: int = 0, steps: tuple[Step, ...] | None = None) -> Outcome:
    """Run a scenario in virtual time."""
    return run_virtual(scenario, seed, store=MemoryStore(), steps=steps)
