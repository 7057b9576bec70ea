"""A store that neither takes a record nor refuses it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace

from tests.processes.policies import QUICK, sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import Status, System
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import DeathRecord, Record
from rekindle.persistence import MemoryStore


class HangingStore(MemoryStore):
    """Hangs on deaths until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        if any(isinstance(record, DeathRecord) for record in records):
            self.answers.wait(PATIENCE_S)
        return super().commit(records)


def test_a_store_that_hangs_holds_a_restart_up_for_two_seconds_and_is_shown_as_unsaved(
    no_traces: None,
) -> None:
    store = HangingStore()
    at_once = replace(QUICK, initial_delay_s=0.0, max_delay_s=0.0)
    with System([sleeper("w", restart=at_once)], store=store) as system:
        first = system.wait_for("w", Status.HEALTHY, timeout_s=PATIENCE_S).pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        system.wait_until("w", lambda w: w.pid not in (None, first), PATIENCE_S)
        report = system.report()
        assert (report.unsaved, report.degraded) == (1, "the store does not answer")
        store.answers.set()
        assert eventually(lambda: system.report().degraded is None)
        assert len(system.deaths("w")) == 1
