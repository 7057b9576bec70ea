"""The virtual-time runtime: the same actors, one thread, a seed, no waiting.

A `Scenario` declares what happens, `run_virtual` runs it, its `History` records the run, and the
invariants must hold in every history. `Life`, `Script` and `ScriptedProcesses` are for tests that drive
single actors directly.
"""

from .history_check import HistoryCheck, violations
from .scenarios import moves
from .scenarios.behaviours import (
    Behaviour,
    cannot_be_spawned,
    dies_after,
    exits,
    hangs,
    ignores_term,
    needs_database,
    never_healthy,
    runs,
    says_recovering,
    stops_heartbeating,
)
from .scenarios.counterexample import account
from .scenarios.expectations import (
    Expectation,
    Tolerance,
    counts,
    delays,
    events_in_order,
    nothing_starts_after_failed,
    reaches,
    reasons,
    starts,
    unmet,
)
from .scenarios.history import History
from .scenarios.history_lines import lines
from .scenarios.invariants import RULES, Slack, Violation
from .scenarios.moves import MOVES, ActorName, DatabaseState, Move, Phase
from .scenarios.scenario import (
    Chance,
    Moment,
    Planned,
    Role,
    Scenario,
    ScenarioError,
    Step,
)
from .scenarios.shrinker import shrink
from .scripted.scripted_processes import Life, Script, ScriptedProcesses, crashes_after, runs_forever
from .seeded_steps import draw
from .simulation_runtime import SimulationRuntime, VirtualClock
from .virtual_run import Outcome, run_virtual
from .virtual_system import VirtualSystem

__all__ = [
    "MOVES",
    "RULES",
    "ActorName",
    "Behaviour",
    "Chance",
    "DatabaseState",
    "Expectation",
    "History",
    "HistoryCheck",
    "Life",
    "Moment",
    "Move",
    "Outcome",
    "Phase",
    "Planned",
    "Role",
    "Scenario",
    "ScenarioError",
    "Script",
    "ScriptedProcesses",
    "SimulationRuntime",
    "Slack",
    "Step",
    "Tolerance",
    "Violation",
    "VirtualClock",
    "VirtualSystem",
    "account",
    "cannot_be_spawned",
    "counts",
    "crashes_after",
    "delays",
    "dies_after",
    "draw",
    "events_in_order",
    "exits",
    "hangs",
    "ignores_term",
    "lines",
    "moves",
    "needs_database",
    "never_healthy",
    "nothing_starts_after_failed",
    "reaches",
    "reasons",
    "run_virtual",
    "runs",
    "runs_forever",
    "says_recovering",
    "shrink",
    "starts",
    "stops_heartbeating",
    "unmet",
    "violations",
]
