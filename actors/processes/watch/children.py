"""The latest process of each worker, found by the worker's id or by its pid."""

from __future__ import annotations

from ..child import Child


class Children:
    """Written by the thread that starts processes; any thread may read."""

    def __init__(self) -> None:
        self._by_id: dict[str, Child] = {}
        self._by_pid: dict[int, Child] = {}
        """Of three thousand, none is searched for whenever a process ends."""

    def get(self, component_id: str) -> Child | None:
        """The latest process of a worker."""
        return self._by_id.get(component_id)

    def __contains__(self, component_id: str) -> bool:
        return component_id in self._by_id

    def put(self, child: Child) -> None:
        """Add a process, in place of the former one of its worker."""
        self.remove(child.id)
        self._by_id[child.id] = self._by_pid[child.pid] = child

    def remove(self, component_id: str) -> None:
        """Drop the process of a worker."""
        child = self._by_id.pop(component_id, None)
        if child is not None and self._by_pid.get(child.pid) is child:
            del self._by_pid[child.pid]

    def living(self) -> list[Child]:
        """Those that have not been reaped."""
        return [child for child in tuple(self._by_id.values()) if child.exit is None]

    def is_living(self, pid: int) -> bool:
        """Whether a process with this pid has not been reaped."""
        child = self._by_pid.get(pid)
        return child is not None and child.exit is None
