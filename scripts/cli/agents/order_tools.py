"""The tools that change something: each needs a reason, and is audited with the client's name.

With proposals nothing is done: the order waits until a person confirms it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..client import ControlClient, ControlError, path_of
from ..console.options import LONG_S
from ..console.targets import Known
from .proposals import Proposals, ProposedOrder

SHORTEST_REASON = 8
LONGEST_REASON = 500
Answer = dict[str, Any]
Client = Callable[[str, str], ControlClient]
"""Makes a client from the name of the agent and the reason."""


class ReasonMissingError(ValueError):
    """An order without a reason that a person could judge."""


@dataclass(frozen=True, slots=True)
class OrderTools:
    """Gives orders to one supervisor, or proposes them."""

    client_for: Client
    proposals: Proposals | None
    agent: Callable[[], str]
    """The name of the program that asks, as it gave it itself."""

    def restart(self, name: str, reason: str) -> Answer:
        """Restart a worker, or all workers of a group, with their counters cleared."""
        return self._to_workers("restart", name, reason)

    def start(self, name: str, reason: str) -> Answer:
        """Start a worker, or all workers of a group, now."""
        return self._to_workers("start", name, reason)

    def stop(self, name: str, reason: str) -> Answer:
        """Stop a worker, or all workers of a group, until they are started again."""
        return self._to_workers("stop", name, reason)

    def reset(self, name: str, reason: str) -> Answer:
        """Clear the restart counters and the failure of a worker or group, without starting it."""
        return self._to_workers("reset", name, reason)

    def pause(self, name: str, reason: str, for_s: float | None = None) -> Answer:
        """End the processes of a worker or group and start none until it is resumed, or for some seconds."""
        return self._to_workers("pause", name, reason, {"reason": reason, "for_s": for_s})

    def resume(self, name: str, reason: str) -> Answer:
        """End the pause of a worker or group."""
        return self._to_workers("resume", name, reason)

    def scale(self, group: str, count: int, reason: str) -> Answer:
        """Set the number of workers of a group until the file is loaded again."""
        return self._give(
            ProposedOrder("scale", path_of("groups", group, "scale"), {"count": count}, reason, "")
        )

    def acknowledge(self, alert: int, reason: str) -> Answer:
        """Acknowledge an alert, so that it notifies again only if it gets worse."""
        path = path_of("alerts", str(alert), "acknowledge")
        return self._give(
            ProposedOrder("acknowledge", path, {"by": f"{self.agent()} (mcp)"[:64]}, reason, "")
        )

    def retry_job(self, job: int, reason: str) -> Answer:
        """Make a toxic or failed job pending again, with its counts cleared."""
        return self._give(ProposedOrder("retry_job", path_of("jobs", str(job), "retry"), {}, reason, ""))

    def drop_job(self, job: int, reason: str) -> Answer:
        """Delete a job that is not running, with its crashes."""
        return self._give(ProposedOrder("drop_job", path_of("jobs", str(job), "drop"), {}, reason, ""))

    def _to_workers(self, action: str, name: str, reason: str, body: Answer | None = None) -> Answer:
        known = Known.of(self.client_for(self.agent(), reason).get("/workers"))
        orders = [
            ProposedOrder(action, path_of("workers", id_, action), body or {}, reason, "")
            for id_ in known.found(name)
        ]
        return {"results": [self._give(order) for order in orders]}

    def _give(self, order: ProposedOrder) -> Answer:
        reason = checked(order.reason)
        order = ProposedOrder(order.action, order.path, order.body, reason, self.agent())
        if self.proposals is not None:
            number = self.proposals.add(order)
            note = f"not done yet: a person confirms it with `rekindle mcp confirm {number}`"
            return {"proposal": number, "order": order.words, "note": note}
        return carried_out(self.client_for(order.client, reason), order)


def checked(reason: str) -> str:
    """The reason, on one line.

    Raises:
        ReasonMissingError: it is too short to say why, or too long.
    """
    line = " ".join(reason.split())
    if not SHORTEST_REASON <= len(line) <= LONGEST_REASON:
        raise ReasonMissingError(
            f"give a reason of {SHORTEST_REASON} to {LONGEST_REASON} characters: why is this needed?"
        )
    return line


def carried_out(client: ControlClient, order: ProposedOrder) -> Answer:
    """Give an order to the supervisor; its answer, or why it was refused."""
    try:
        answer = client.post(order.path, order.body, timeout_s=LONG_S)
    except ControlError as error:
        return {"order": order.words, "result": error.error or "failed", "message": str(error)}
    return {"order": order.words, **answer}


TOOLS = (
    OrderTools.restart,
    OrderTools.start,
    OrderTools.stop,
    OrderTools.reset,
    OrderTools.pause,
    OrderTools.resume,
    OrderTools.scale,
    OrderTools.acknowledge,
    OrderTools.retry_job,
    OrderTools.drop_job,
)
