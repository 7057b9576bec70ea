"""Pure: what happens to the runs of scheduled workers, as an entry of a history; only in virtual time."""

from __future__ import annotations

from .history_entry import HistoryEntry


class RunRecorded(HistoryEntry, frozen=True, gc=False):
    """The supervisor recorded the state of a run, or of several due times at which there was none."""

    worker: str
    number: int
    state: str
    reason: str | None
    trigger: str
    due_ms: int
    last_due_ms: int
    times: int
    wall_ms: int
    """The wall clock in this moment."""
    ended_ms: int | None = None
    """When it ended, by that clock."""
