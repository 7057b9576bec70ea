"""Real systems with metrics, behind real sockets."""

from __future__ import annotations

from tests.processes.conftest import database, marks, no_traces, run

__all__ = ["database", "marks", "no_traces", "run"]
