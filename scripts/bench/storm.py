"""How fast chaos runs in virtual time: storms of ten workers, and whole scenarios.

They run as in `rekindle chaos`: the real actors, every rule checked at every entry of the history.
The cost of a virtual second depends on the number of deaths in it, so there are three storms:

- an hour under the preset `steady`: all ten die 3 s after every start until they are given up, and
  nothing happens in the rest of the hour;
- 100,000 seconds under `patient` without its limits, with lives of 60 to 69 s and delays of up to ten
  minutes: no worker is ever given up (1.6 deaths in 100 s);
- the same with delays of up to a minute (8 deaths in 100 s).

Times are this process's CPU time, which is also longer on a busy machine: compare only figures that
were measured side by side.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors.simulation import Scenario, dies_after, run_virtual
from rekindle.actors.simulation.scenarios.history import Ended
from rekindle.cli.chaos.scenario_file import load_scenario
from rekindle.persistence import MemoryStore

CHAOS = Path(__file__).resolve().parents[1] / "chaos"
ENDLESS = {"max_in_window": None, "max_lifetime": None}


@dataclass(frozen=True, slots=True)
class StormFigures:
    """One storm."""

    name: str
    virtual_s: float
    deaths: int
    cpu_s: float

    @property
    def virtual_s_per_s(self) -> float:
        """Virtual seconds per second of CPU time."""
        return self.virtual_s / self.cpu_s


@dataclass(frozen=True, slots=True)
class ChaosFigures:
    """The figures of chaos in virtual time."""

    storms: tuple[StormFigures, ...]
    scenarios: int
    scenarios_cpu_s: float
    moves: int
    moves_cpu_s: float

    @property
    def scenarios_per_s(self) -> float:
        """Scenarios of the library in a second, without the ones with random moves."""
        return self.scenarios / self.scenarios_cpu_s

    @property
    def moves_per_s(self) -> float:
        """Random moves in a second."""
        return self.moves / self.moves_cpu_s


def endless_storm(longest_delay_s: float) -> Scenario:
    """Ten workers that die a minute after every start, restarted without limit after growing delays."""
    scenario = Scenario(f"endless, delays up to {longest_delay_s:g} s", 100_000.0)
    restart = {**ENDLESS, "max_delay_s": longest_delay_s}
    for number in range(10):
        life = dies_after(60 + number)
        scenario = scenario.worker(f"worker:storm:{number}", life, preset="patient", restart=restart)
    return scenario


def storm_until_given_up() -> Scenario:
    """Ten workers that die three seconds after every start, until they are given up."""
    scenario = Scenario("an hour, preset steady", 3600.0)
    for number in range(10):
        scenario = scenario.worker(f"worker:storm:{number}", dies_after(3 + number / 20), preset="steady")
    return scenario


def measure_chaos(*, rounds: int = 3) -> ChaosFigures:
    """Measure the storms and scenarios; the best of several rounds counts."""
    storms = (storm_until_given_up(), endless_storm(600.0), endless_storm(60.0))
    gc.collect()
    gc.disable()
    try:
        figures = tuple(_storm(storm, rounds) for storm in storms)
        scenarios, scenarios_cpu_s = _library(rounds)
        moves, moves_cpu_s = _random(10 * rounds)
    finally:
        gc.enable()
    return ChaosFigures(figures, scenarios, scenarios_cpu_s, moves, moves_cpu_s)


def _storm(storm: Scenario, rounds: int) -> StormFigures:
    times, deaths = [], 0
    for _ in range(rounds):
        began = time.process_time()
        outcome = run_virtual(storm, 1, store=MemoryStore())
        times.append(time.process_time() - began)
        assert outcome.passed
        deaths = sum(1 for entry in outcome.history if isinstance(entry, Ended))
        gc.collect()
    return StormFigures(storm.name, storm.lasts_s, deaths, min(times))


def _library(rounds: int) -> tuple[int, float]:
    scenarios = [load_scenario(path) for path in sorted(CHAOS.glob("*.toml"))]
    fixed = [scenario for scenario in scenarios if not scenario.chance]
    began = time.process_time()
    for seed in range(rounds):
        for scenario in fixed:
            assert run_virtual(scenario, seed, store=MemoryStore()).passed
    return rounds * len(fixed), time.process_time() - began


def _random(rounds: int) -> tuple[int, float]:
    scenario = load_scenario(CHAOS / "everything_at_random.toml")
    began = time.process_time()
    moves = sum(len(run_virtual(scenario, seed, store=MemoryStore()).steps) for seed in range(rounds))
    return moves, time.process_time() - began


def chaos_table(figures: ChaosFigures) -> str:
    """The figures as text."""
    lines = ["chaos in virtual time, by seconds of our own CPU time:"]
    for storm in figures.storms:
        pace = f"{storm.virtual_s_per_s:,.0f} virtual s/s, {storm.deaths / storm.cpu_s:,.0f} deaths/s"
        lines.append(f"  storm of 10 workers, {storm.name}: {pace}")
    lines.append(
        f"  whole scenarios: {figures.scenarios_per_s:.0f}/s; random moves: {figures.moves_per_s:,.0f}/s"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(chaos_table(measure_chaos()))
