"""Bookkeeping: which callers wait for which workers to stop."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...deaths.death import Exit
from ...messages import StopResult, WorkersStopped
from ...ports import Receiver


class _Watch(msgspec.Struct):
    reply_to: Receiver
    pending: set[str]
    results: dict[str, StopResult] = msgspec.field(default_factory=dict)


class StopWatch:
    """Collects the ends of workers and says which waits are over."""

    def __init__(self) -> None:
        self._watches: list[_Watch] = []

    def watch(self, ids: Iterable[str], reply_to: Receiver) -> None:
        """Answer this receiver once all of these workers have come to rest."""
        self._watches.append(_Watch(reply_to, set(ids)))

    def settled(
        self, component_id: str, exit_: Exit | None, forced: int | None, *, relaunched: bool = False
    ) -> None:
        """A worker came to rest, or ended and is being started again."""
        self._note(StopResult(component_id, exit_, forced, relaunched=relaunched))

    def unkillable(self, component_id: str) -> None:
        """A worker will not come to rest."""
        self._note(StopResult(component_id, None, 9, gone=False))

    def finished(self) -> list[tuple[Receiver, WorkersStopped]]:
        """The waits that are over, with their answers; each is returned once."""
        over = [watch for watch in self._watches if not watch.pending]
        self._watches = [watch for watch in self._watches if watch.pending]
        return [(watch.reply_to, WorkersStopped(tuple(watch.results.values()))) for watch in over]

    def _note(self, result: StopResult) -> None:
        for watch in self._watches:
            if result.component_id in watch.pending:
                watch.pending.discard(result.component_id)
                watch.results[result.component_id] = result
