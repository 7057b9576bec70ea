"""How long processes live: those of a node, of a group, or all of them may be ill for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cluster_moves import EVERYTHING, Sicken
from .cluster_rules import Sickened

if TYPE_CHECKING:
    from .cluster_run import ClusterRun


class Illness:
    """What makes processes die, at the moment."""

    def __init__(self, run: ClusterRun) -> None:
        self._run = run
        self._ill: list[Sicken] = []

    def life_s(self, node: str, worker: str) -> float | None:
        """How long a process lives on average; None: forever."""
        lives = [each.life_s for each in self._ill if self._hits(each, node, worker)]
        usual = self._run.scenario.worker_life_s
        return min([*lives, *([] if usual is None else [usual])], default=None)

    def begin(self, move: Sicken) -> None:
        """Let processes fall ill, those that run already too."""
        run = self._run
        self._ill.append(move)
        if move.what in run.nodes:
            run.note(Sickened(run.clock.now, move.what))
        for node in run.nodes.values():
            for process in list(node.processes.values()):
                if self._hits(move, node.id, process.worker):
                    node.crash_later(process, move.life_s)
        run.later(move.for_s, lambda: self._ill.remove(move))

    def end(self) -> None:
        """Let everything be well."""
        self._ill.clear()

    def _hits(self, move: Sicken, node: str, worker: str) -> bool:
        return move.what in (EVERYTHING, node, worker, self._run.scenario.group_of(worker))
