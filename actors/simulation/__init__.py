"""The virtual-time runtime: the same actors, one thread, a seed, no waiting."""

from .processes import Life, Script, ScriptedProcesses, crashes_after, runs_forever
from .runtime import SimulationRuntime, VirtualClock

__all__ = [
    "Life",
    "Script",
    "ScriptedProcesses",
    "SimulationRuntime",
    "VirtualClock",
    "crashes_after",
    "runs_forever",
]
