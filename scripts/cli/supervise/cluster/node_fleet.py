"""The workers of a node: the cluster says which, not the file."""

from __future__ import annotations

from typing import Never

from rekindle.actors import RequestRefusedError

from ..fleet import Fleet, Summary


class NodeFleet(Fleet):
    """A fleet whose workers are those that the cluster assigns to this node."""

    def reload(self) -> Summary:
        """Refuse: the database says what runs."""
        self._refuse()

    def scale(self, name: str, count: int, /) -> Summary:
        """Refuse: the database says what runs."""
        del name, count
        self._refuse()

    def obstacle(self) -> str | None:
        """Why this supervisor cannot be replaced in its process."""
        return (
            "it is a node of a cluster: restart it; its workers stay with it if it is back within its lease"
        )

    def _refuse(self) -> Never:
        raise RequestRefusedError(
            "nothing was changed: this supervisor is a node of a cluster; use: rekindle cluster apply FILE"
        )
