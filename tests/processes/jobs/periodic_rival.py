"""A process that enqueues a periodic job, as a supervisor does, until its standard input ends."""

from __future__ import annotations

import sys
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

from rekindle.actors.messages.internal.to_desks import DeclarePeriodic
from rekindle.actors.periodic_desk import PeriodicDesk
from rekindle.actors.ports import Store
from rekindle.actors.runtime.thread_runtime import ThreadRuntime
from rekindle.actors.spec.policies.queues.periodic import Periodic
from rekindle.persistence import open_queue


class Nobody:
    """Hears what the desk tells."""

    def tell(self, message: Any) -> None:
        """Forget it."""


def main(address: str) -> None:
    """Enqueue a job each second."""
    runtime = ThreadRuntime()
    with closing(open_queue(address)) as queue:
        store = cast("Store", SimpleNamespace(jobs=queue))
        desk = runtime.start(PeriodicDesk, runtime=runtime, store=store, persistence=Nobody(), watch=Nobody())
        desk.tell(DeclarePeriodic((Periodic("report", queue="tag", every="1s"),), ()))
        sys.stdin.read()
        runtime.stop_timers()
        runtime.close()


if __name__ == "__main__":
    main(sys.argv[1])
