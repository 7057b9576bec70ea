"""Whom the Supervisor tells."""

from __future__ import annotations

from ..ports import Processes, Receiver


class Colleagues:
    """Whom the Supervisor tells."""

    def __init__(
        self,
        *,
        supervisor: Receiver,
        monitor: Receiver,
        broker: Receiver,
        processes: Processes,
        desk: Receiver,
        releases: Receiver | None = None,
    ) -> None:
        self.supervisor = supervisor
        self.desk = desk
        self.monitor = monitor
        self.broker = broker
        self.processes = processes
        self.releases = releases
