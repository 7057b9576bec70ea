"""How a run on real processes is judged."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.sample_scenarios import ENDLESS
from tests.processes.waiting import eventually

from rekindle.actors.simulation import Scenario, dies_after, draw, lines
from rekindle.actors.simulation.scenarios.history import Decided, Reported
from rekindle.actors.simulation.scenarios.known_state import Facts
from rekindle.cli.chaos.real.real_run import RealRun


class LookedAtLate(RealRun):
    """A run whose machine is busy just then: the worker dies between the report and its judgement."""

    def _lacks(self, facts: Facts, entry: Reported) -> bool:
        lacks = super()._lacks(facts, entry)
        if not lacks:
            assert eventually(lambda: self._deaths() > len(facts.workers[entry.worker].decided))
        return lacks

    def _deaths(self) -> int:
        return sum(isinstance(each, Decided) for each in self._entries())


def test_a_report_is_held_against_what_happened_before_it(tmp_path: Path) -> None:
    scenario = Scenario("dying", 10.0).worker("mayfly", dies_after(3), restart={**ENDLESS, "max_delay_s": 2})
    outcome = LookedAtLate(scenario, draw(scenario, 0), 10.0, tmp_path).run(0)
    assert (outcome.violations, outcome.unmet) == ((), ()), "\n".join(lines(outcome.history))
    assert len(outcome.history.of(Reported)) == 1
