"""How fast chaos runs in virtual time: a storm of ten workers, and whole scenarios.

The storm: ten workers under the preset `patient` that die 60 to 69 seconds after every start, for
100,000 seconds, as `rekindle chaos` runs it: the real actors, every rule checked at every entry of
the history. Their limits are lifted: under those of the presets all ten are given up within
minutes, and the rest would be silence, of which any amount passes in no time. What a second of
it costs depends on how often somebody dies, so there are two of them: with delays of up to a minute
(8 deaths in 100 seconds) and of up to ten minutes (1.6 deaths).

All is measured in seconds of our own CPU time. On a busy machine these are longer ones too: compare
only what was measured side by side.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors.simulation import Scenario, dies_after, run_virtual
from rekindle.cli.chaos.reading import load_scenario
from rekindle.persistence import MemoryStore

CHAOS = Path(__file__).resolve().parents[1] / "chaos"
STORM_S = 100_000.0
ENDLESS = {"max_in_window": None, "max_lifetime": None}


@dataclass(frozen=True, slots=True)
class ChaosFigures:
    """What was measured."""

    storm_virtual_s: float
    storm_deaths: int
    storm_cpu_s: float
    """With delays of up to a minute: each worker dies every two minutes."""
    thin_deaths: int
    thin_cpu_s: float
    """With delays of up to ten minutes."""
    scenarios: int
    scenarios_cpu_s: float
    moves: int
    moves_cpu_s: float

    @property
    def virtual_s_per_s(self) -> float:
        """Seconds of the storm in a second."""
        return self.storm_virtual_s / self.storm_cpu_s

    @property
    def scenarios_per_s(self) -> float:
        """Scenarios of the library in a second, those with moves at random left out."""
        return self.scenarios / self.scenarios_cpu_s

    @property
    def moves_per_s(self) -> float:
        """Moves at random in a second."""
        return self.moves / self.moves_cpu_s


def storm(workers: int = 10, lasts_s: float = STORM_S, longest_delay_s: float = 60.0) -> Scenario:
    """Workers that die a minute after every start, for ever, restarted after ever longer delays."""
    scenario = Scenario("storm", lasts_s)
    restart = {**ENDLESS, "max_delay_s": longest_delay_s}
    for number in range(workers):
        life = dies_after(60 + number)
        scenario = scenario.worker(f"worker:storm:{number}", life, preset="patient", restart=restart)
    return scenario


def measure_chaos(*, rounds: int = 3) -> ChaosFigures:
    """Measure all of it; of several rounds the best counts."""
    gc.collect()
    gc.disable()
    try:
        cpu_s, deaths = min(_storm(60.0) for _ in range(rounds))
        thin_cpu_s, thin_deaths = min(_storm(600.0) for _ in range(rounds))
        scenarios, scenarios_cpu_s = _library(rounds)
        moves, moves_cpu_s = _random(10 * rounds)
    finally:
        gc.enable()
    return ChaosFigures(
        STORM_S, deaths, cpu_s, thin_deaths, thin_cpu_s, scenarios, scenarios_cpu_s, moves, moves_cpu_s
    )


def _storm(longest_delay_s: float) -> tuple[float, int]:
    began = time.process_time()
    outcome = run_virtual(storm(longest_delay_s=longest_delay_s), 1, store=MemoryStore())
    took = time.process_time() - began
    assert outcome.passed
    gc.collect()
    return took, sum(1 for entry in outcome.history if type(entry).__name__ == "Ended")


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
    """The figures in lines."""
    lines = ["chaos in virtual time, by seconds of our own CPU time:"]
    for longest, deaths, cpu_s in (
        (60, figures.storm_deaths, figures.storm_cpu_s),
        (600, figures.thin_deaths, figures.thin_cpu_s),
    ):
        rate = figures.storm_virtual_s / cpu_s
        pace = f"{rate:,.0f} virtual s/s, {deaths / cpu_s:,.0f} deaths/s"
        lines.append(f"  storm of 10 workers, delays up to {longest} s: {pace}")
    lines.append(
        f"  whole scenarios: {figures.scenarios_per_s:.0f}/s; random moves: {figures.moves_per_s:,.0f}/s"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(chaos_table(measure_chaos()))
