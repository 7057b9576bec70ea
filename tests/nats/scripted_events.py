"""An event log that a test writes, with everything that the NATS gateway needs of a supervisor."""

from __future__ import annotations

import threading

from tests.control.operator_double import OperatorDouble

from rekindle.actors import StatusReport
from rekindle.actors.facts.records import EventPage, EventRecord
from rekindle.actors.messages import Event, Published, Snapshot, WorkerStarted
from rekindle.actors.messages.event_json import numbered
from rekindle.actors.ports import Receiver
from rekindle.actors.system.remembered_texts import RememberedTexts


class ScriptedEvents(OperatorDouble):
    """Events as the Broker publishes them and as the store returns them; there is no system behind them."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.announced: list[Event] = []
        self.settings: dict[str, str] = {}
        self.reads = 0
        self._listeners: list[Receiver] = []
        self._lock = threading.Lock()

    def write(self, *events: Event) -> None:
        """Let these happen."""
        with self._lock:
            for event in events:
                record = numbered(len(self.records) + 1, 1_700_000_000_000 + len(self.records), event)
                self.records.append(record)
                for listener in self._listeners:
                    listener.tell(Published(record.id, record.at_wall_ms, event, record))

    def write_many(self, count: int) -> None:
        """Write this number of starts of a worker."""
        self.write(*(WorkerStarted("worker:tag:0", number, 1000 + number) for number in range(count)))

    def report(self) -> StatusReport:
        return StatusReport((), False, 0, None)

    def subscribe(self, receiver: Receiver, *topics: str) -> None:
        assert topics == ("event:*",)
        with self._lock:
            receiver.tell(Snapshot(len(self.records), ()))
            self._listeners = [receiver]

    def unsubscribe(self, receiver: Receiver) -> None:
        with self._lock:
            self._listeners = []

    def event_log(self, after_id: int = 0, limit: int = 100) -> EventPage:
        self.reads += 1
        return EventPage(tuple(self.records[after_id : after_id + limit]), 1, len(self.records))

    def announce(self, event: Event) -> None:
        self.announced.append(event)

    def notes(self) -> RememberedTexts:
        return RememberedTexts(self.settings, lambda note: self.settings.update({note.key: note.value or ""}))
