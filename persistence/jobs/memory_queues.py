"""What is set for queues that are kept in memory."""

from __future__ import annotations

from rekindle.actors.facts.queues import QueuePause


class MemoryQueues:
    """The pauses of the queues."""

    def __init__(self) -> None:
        self._pauses: dict[str, QueuePause] = {}

    def pauses(self, now_wall_ms: int) -> tuple[QueuePause, ...]:
        """The pauses that are not over."""
        return tuple(self._pauses[name] for name in sorted(self._pauses) if self.is_paused(name, now_wall_ms))

    def is_paused(self, queue: str, now_wall_ms: int) -> bool:
        """Whether jobs of the queue may not be started now."""
        pause = self._pauses.get(queue)
        return pause is not None and (pause.until_wall_ms is None or pause.until_wall_ms > now_wall_ms)

    def pause(self, pause: QueuePause) -> QueuePause:
        """Pause a queue."""
        self._pauses[pause.queue] = pause
        return pause

    def resume(self, queue: str, now_wall_ms: int) -> bool:
        """End the pause of a queue; False if there was none."""
        was_paused = self.is_paused(queue, now_wall_ms)
        self._pauses.pop(queue, None)
        return was_paused
