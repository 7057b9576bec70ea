"""What a host declares about alerts; checked when it is constructed."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import Policy, seconds, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy(Policy):
    """When an alert is resolved, and when it is escalated."""

    enabled: bool = setting(True, "Whether alerts are raised; recovery does not depend on it.")
    settle_s: float = seconds(30.0, "How long a worker must stay healthy before its alerts are resolved.")
    escalate_after_s: float | None = seconds(
        900.0, "An alert that is not acknowledged for this long is sent once more; none: never."
    )
    recent_s: float = seconds(3600.0, "The period over which recent deaths are counted, in seconds.")
