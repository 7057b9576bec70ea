"""`engine = "none"`: the machines are those whose agents have joined, and their capacity is all there is."""

from __future__ import annotations

from ..ports import Receiver
from ..runtime.resilient_actor import tell
from .engine_messages import RoomClaim, RoomDenied, RoomGranted


class NoEngine:
    """Grants every reservation on a node: the plan has reckoned with what is reserved already."""

    def reserve(self, claim: RoomClaim, receiver: Receiver) -> None:
        """Grant it; demand for more machines is denied, since nothing can start one."""
        pinned = claim.node_id is not None
        tell(receiver, RoomGranted(claim) if pinned else RoomDenied(claim, "no engine can start a machine"))

    def keep(self, claims: tuple[RoomClaim, ...]) -> None:
        """Nothing was reserved outside the database."""

    def want_agent(self, engine_node: str) -> None:
        """A service manager, a DaemonSet or an operator starts the agents."""
