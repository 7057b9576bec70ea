"""What workers detached, at the end of a run."""

from __future__ import annotations

from collections.abc import Container

from loguru import logger

from rekindle.actors.processes.strays import end_descendants, living_descendants
from rekindle.worker.guardian import marked_processes, sweep

STRAYS_S = 2.0
"""How long to wait until killed stray processes have ended."""


def end_strays(mark: str, spared: Container[int]) -> None:
    """Kill processes that workers detached; they would also end if the supervisor were killed."""
    strays = dict.fromkeys(living_descendants(spared), "") | dict(marked_processes(mark))
    if strays:
        listed = ", ".join(f"{pid} of {id_}" if id_ else str(pid) for pid, id_ in strays.items())
        logger.warning("supervisor: killing processes that workers detached: {}", listed)
        if end_descendants(spared, STRAYS_S) or not sweep(mark, STRAYS_S):
            logger.error("supervisor: detached processes are still alive after {} s", STRAYS_S)
