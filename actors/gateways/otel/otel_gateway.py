"""The gateway that exports traces: a span for each life of a worker, each job and each execution of one.

It runs on a thread of its own, and the supervisor never waits for it: a collector that is down, slow
or frozen costs nothing but spans, which wait in a bounded queue and are then dropped and counted. The
gateway reports once that spans are not taken, and once that they are again.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from types import TracebackType
from typing import Self

from loguru import logger

from ...errors import RekindleError
from ...facts.topic_states import JobTopicState
from ...messages import Published, Snapshot, StateChanged
from ...messages.topics import ALL_EVENTS, JOBS, QUEUES
from ..delivery_state import DeliveryState, now_ms, stored_origin
from ..event_source import EventSource
from ..gateway_state import GatewayState
from ..server_identity import Identity
from ..settings.otel_settings import OtelSettings
from .finished_span import FinishedSpan
from .job_reader import JobReader
from .job_spans import ENDED
from .life_spans import LifeSpans
from .span_exporter import SpanExporter, check
from .trace_ids import is_in_sample

NAME = "otel"
ORIGIN = "otel_origin"
"""The stored value that distinguishes the workers and jobs of this store from every other one's."""
GATHER_S = 0.5
"""Spans of this time are sent together."""
BATCH = 512
LOOKS = 3
"""How often the gateway looks at first for workers that run already: an upgrade takes them over meanwhile."""
GRACE_S = 1.0
"""How long the last spans may take once the gateway stops."""
STOP_S = 3.0


class OtelGateway:
    """One exporter of traces. A context manager, or call `start` and `stop`."""

    def __init__(self, source: EventSource, settings: OtelSettings, identity: Identity) -> None:
        """Describe a gateway; nothing runs yet.

        Raises:
            MissingExtraError: the packages of OpenTelemetry are not installed.
            GatewayError: the file with the headers is missing, invalid or unsafe.
        """
        self._settings = settings
        self._source = source
        self._exporter = SpanExporter(settings, identity, check(settings))
        self._process = os.getpid()
        self._life = threading.Lock()
        self._inbox = _Inbox(settings.most_waiting)
        self._report = DeliveryState(
            source, NAME, goods="traces", meanwhile="dropped", server=settings.endpoint
        )
        self._thread: threading.Thread | None = None
        self._sent = 0
        self._lost = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Export what ends from now on."""
        with self._life:
            if self._thread is None:
                self._source.subscribe(self, ALL_EVENTS, JOBS, QUEUES)
                self._thread = threading.Thread(target=self._run, name="rekindle-otel", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Send what waits within `GRACE_S`, then end. A second call does nothing, nor one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            if self._thread is None:
                return
            self._receive_the_rest()
            self._source.unsubscribe(self)
            self._inbox.end()
            self._thread.join(GRACE_S)
            self._exporter.end()  # a request that is under way gives up
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                logger.error("otel: gateway did not stop within {} s", STOP_S)
            self._thread = None

    def tell(self, message: object) -> None:
        """Receive an event; on the Broker's thread, which never waits here."""
        self._inbox.put(message)

    def state(self) -> GatewayState:
        """The current state."""
        return GatewayState(
            name=NAME,
            connected=self._report.problem is None,
            detail=self._report.detail,
            since_wall_ms=self._report.since_wall_ms,
            delivered=self._sent,
            dropped=self._lost + self._inbox.dropped,
            waiting=self._inbox.waiting,
        )

    def _receive_the_rest(self) -> None:
        """Wait for the events that the Broker already has: its next snapshot comes after them."""
        self._inbox.placed.clear()
        try:
            self._source.subscribe(self, ALL_EVENTS, JOBS, QUEUES)
        except RekindleError:
            return  # the system has ended and publishes nothing
        self._inbox.placed.wait(GRACE_S)

    # ── on the gateway's thread ──────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  # no error of the gateway may reach the host
            logger.opt(exception=error).error("otel: gateway ended")
            self._report.failed("the gateway has ended; the log has the details")

    def _work(self) -> None:
        origin = stored_origin(self._source, ORIGIN, size=8)
        lives, jobs = LifeSpans(origin), JobReader(self._source, origin)
        looks = LOOKS
        while True:
            if looks:
                looks -= 1
                self._learn(lives)
            is_last = self._inbox.wait(GATHER_S, is_due=jobs.is_due)
            spans: list[FinishedSpan] = []
            for message in self._inbox.take():
                match message:
                    case Published() if (span := lives.take(message)) is not None:
                        spans.append(span)
                    case StateChanged(state=JobTopicState(id=number, status=status)):
                        jobs.hear(number if status in ENDED else None)
                    case StateChanged():
                        jobs.hear(None)
                    case _:
                        pass
            spans += jobs.ended()
            wanted = [span for span in spans if self._is_wanted(span)]
            self._send([each for span in wanted for each in (span, *span.parts)])
            if is_last:
                return

    def _learn(self, lives: LifeSpans) -> None:
        try:
            report = self._source.report()
        except RekindleError:
            return  # the system ends; or it begins, and there will be events
        for worker in report.workers:
            lives.learn(worker, now_ms())

    def _is_wanted(self, span: FinishedSpan) -> bool:
        if span.parent is not None:
            return span.parent.is_sampled
        is_death = span.error is not None and not span.is_consumer
        return is_death or is_in_sample(span.place, self._settings.sample)

    def _send(self, spans: list[FinishedSpan]) -> None:
        for begin in range(0, len(spans), BATCH):
            batch = spans[begin : begin + BATCH]
            reason = self._exporter.send(batch)
            if reason is None:
                self._sent += len(batch)
                self._report.succeeded()
            else:
                self._lost += len(batch)
                self._report.failed(reason)


class _Inbox:
    """What was published and is not looked at yet. The Broker's thread writes, and never waits."""

    def __init__(self, most: int) -> None:
        self._messages: deque[Published | StateChanged] = deque()
        self._most = most
        self._changed = threading.Condition()
        self._is_ending = False
        self.dropped = 0
        self.placed = threading.Event()

    def put(self, message: object) -> None:
        """Keep a message, if there is room."""
        if isinstance(message, Snapshot):
            self.placed.set()
        if not isinstance(message, Published | StateChanged):
            return
        with self._changed:
            if len(self._messages) >= self._most:
                self.dropped += 1
                return
            self._messages.append(message)
            self._changed.notify()

    def end(self) -> None:
        """No more will come."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()

    def wait(self, gather_s: float, *, is_due: bool) -> bool:
        """Wait for messages, unless something is due, and a moment for more; whether all have come."""
        with self._changed:
            self._changed.wait_for(lambda: is_due or self._messages or self._is_ending)
            self._changed.wait_for(lambda: self._is_ending, gather_s)
            return self._is_ending

    def take(self) -> list[Published | StateChanged]:
        """All messages."""
        with self._changed:
            taken = list(self._messages)
            self._messages.clear()
            return taken

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._messages)
