"""What a host chose for a whole system, as `System` was called."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..facts.queues import QueueLimits
from ..handover import Inheritance
from ..processes.spawn.launcher import Launcher
from ..spec.policies.alert_policy import AlertPolicy
from ..spec.policies.queues.periodic import Periodic
from ..spec.policies.retention_policy import Retention


class SystemSettings(msgspec.Struct, frozen=True):
    """What a host chose for the whole system."""

    max_concurrent_starts: int | None
    guarded: bool
    adopts_orphans: bool
    launcher: Launcher | None
    """Where processes are started, if not on a thread of the system's own."""
    inheritance: Inheritance | None
    """What the former program of this process left, if it was upgraded."""
    alerts: AlertPolicy | None
    retention: Retention | None
    inherited_sockets: Mapping[str, int] | None = None
    periodic: tuple[Periodic, ...] = ()
    limits: tuple[QueueLimits, ...] = ()
