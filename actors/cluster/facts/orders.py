"""Pure: an order to a worker of another node, as a row of the database carries it.

pending ─ its node takes it ─▶ taken ─ carried out ─▶ done
   │                             └──── not possible ─▶ refused
   └─ nothing takes it in time ─▶ expired
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class OrderState(StrEnum):
    """How far an order is."""

    PENDING = "pending"
    TAKEN = "taken"
    DONE = "done"
    REFUSED = "refused"
    EXPIRED = "expired"

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self not in (OrderState.PENDING, OrderState.TAKEN)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_order`, which is also the audit of what was ordered across nodes."""

    id: str
    component_id: str
    node_id: str
    """The node that carries it out."""
    from_node: str
    """The node that was given it, and is told when it is over."""
    action: str
    """`restart`, `start`, `stop`, `reset`, `pause`, `resume`, `signal` or `run_now`."""
    arguments: str = "{}"
    """JSON."""
    given_by: str = ""
    given_ms: int = 0
    until_ms: int = 0
    """It is not begun after this time of the database."""
    state: OrderState = OrderState.PENDING
    result: str = ""
    """JSON of what the order returned; or the text of the refusal."""
    ended_ms: int | None = None
